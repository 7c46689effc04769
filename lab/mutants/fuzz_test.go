package mutants

import (
	"errors"
	"testing"

	"github.com/samya-db/samya/internal/testfuzz"
)

// FuzzParse: a file is refused as malformed, or it describes an edit.
func FuzzParse(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add("says: a\nrule: b\nvariant: core\nkind: rule\nmodes: star auto\nsites: 3\nseeds: 9\n--- file a.go\n--- old\nx\n--- new\ny\n")
	f.Add("says: a\nrule: b\nvariant: mux\nkind: race\njudge: test\ntests: ./a\nrun: TestA\ntimeout: 1s\nhangs: yes\n--- file a.go\n--- old\nx\n--- new\ny\n")
	f.Add("says: a\nrule: b\nvariant: kvpart\nkind: race\njudge: order\nsubject: partitions=2\nexpect: deadlock\n--- file a.go\n--- old\nx\n--- new\ny\n")
	f.Add("--- new\n")
	f.Add("--- old\n")
	f.Add("says: a\n--- file ../a.go\n--- old\nx\n")
	f.Fuzz(func(t *testing.T, text string) {
		b, err := Parse("bug", text)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		if len(b.Edits) == 0 || b.Edits[0].Old == "" || b.Says == "" || len(b.Modes)+len(b.Tests)+len(b.Subject) == 0 {
			t.Fatalf("%q is taken as %+v", text, b)
		}
	})
}
