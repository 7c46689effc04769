package apierr_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
)

var update = flag.Bool("update", false, "write the reasons into docs/api.md anew")

// TestReasonsInTheDocs: docs/api.md has every reason as the table has it.
func TestReasonsInTheDocs(t *testing.T) {
	const page, begin, end = "../../docs/api.md", "<!-- reasons: written by the tests of internal/apierr -->\n", "<!-- end of reasons -->\n"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	is, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the reasons", page)
	}
	var want strings.Builder
	want.WriteString("\n| Reason | gRPC | HTTP | Meaning | Nothing was done |\n|---|---|---|---|---|\n")
	for _, r := range apierr.Reasons() {
		sure := "not known"
		if r.NothingDone() {
			sure = "yes"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %d | %s | %s |\n", r, r.Code(), r.HTTPStatus(), r.Title(), sure)
	}
	want.WriteString("\n")
	switch {
	case is == want.String():
	case *update:
		if err := os.WriteFile(page, []byte(before+begin+want.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s does not have the reasons as they are; run this test with -update", page)
	}
}
