package name_test

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/testfuzz"
)

var grammar = regexp.MustCompile(`\A[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*\z`)

// FuzzEntity compares the checks with the grammar written as a regular expression, and
// with path cleaning of the name.
func FuzzEntity(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, s := range []string{"", "a", "acme/vm", "a//b", "../a", "a/..", "a/", "é", "a\x00", strings.Repeat("a", 257)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		good := len(s) <= 256 && grammar.MatchString(s)
		for part := range strings.SplitSeq(s, "/") {
			good = good && part != "." && part != ".."
		}
		err := name.Entity("entity", s)
		if (err == nil) != good {
			t.Fatalf("Entity(%q) = %v, want good = %v", s, err, good)
		}
		if err != nil {
			if len(err.Error()) > 200 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if path.Clean("/"+s) != "/"+s {
			t.Fatalf("%q does not survive path cleaning", s)
		}
		for i := range s {
			if err := name.Prefix("prefix", s[:i]); err != nil {
				t.Fatalf("Prefix(%q) of the good name %q: %v", s[:i], s, err)
			}
		}
	})
}

// FuzzRequestID compares the check with the grammar as a regular expression.
func FuzzRequestID(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, s := range []string{"", "x", "a b", "~!", "\x7f", strings.Repeat("x", 129)} {
		f.Add(s)
	}
	printable := regexp.MustCompile(`\A[!-~]{1,128}\z`)
	f.Fuzz(func(t *testing.T, s string) {
		if err := name.RequestID("request_id", s); (err == nil) != printable.MatchString(s) {
			t.Fatalf("RequestID(%q) = %v", s, err)
		}
	})
}
