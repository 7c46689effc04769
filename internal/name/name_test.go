package name_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/name"
)

// check compares an answer with the problem wanted, "" for none.
func check(t *testing.T, err error, field, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
		return
	}
	bad, ok := errors.AsType[*name.Error](err)
	if !ok {
		t.Fatalf("got %v, want a *name.Error", err)
	}
	if bad.Field != field || bad.Problem != want {
		t.Errorf("got %q: %q, want %q: %q", bad.Field, bad.Problem, field, want)
	}
	if got := err.Error(); got != field+": "+want {
		t.Errorf("Error() = %q", got)
	}
}

func TestMode(t *testing.T) {
	for _, mode := range name.Modes() {
		check(t, name.Mode("protocol", mode), "", "")
	}
	for _, mode := range []string{"", "paxos", "Star", " star"} {
		check(t, name.Mode("protocol", mode), "protocol", "must be one of auto, majority, star")
	}
}

func TestEntity(t *testing.T) {
	const letters = ", allowed are letters, digits, '.', '_', '-' and '/'"
	const gap = "empty segment: begins or ends with '/', or has '//'"
	for _, tc := range []struct{ in, want string }{
		{"a", ""},
		{"acme/clothing/vm", ""},
		{"A-z_0.9", ""},
		{"...", ""},
		{".hidden/..x/x..", ""},
		{strings.Repeat("a", 256), ""},
		{strings.Repeat("a/", 127) + "aa", ""},
		{"", "empty, at least 1 character"},
		{strings.Repeat("a", 257), "257 characters, at most 256"},
		{"/", gap},
		{"/a", gap},
		{"a/", gap},
		{"a//b", gap},
		{".", `segment "." is not allowed`},
		{"a/../b", `segment ".." is not allowed`},
		{"a/.", `segment "." is not allowed`},
		{"a b", "' ' at position 2" + letters},
		{"a:acquire", "':' at position 2" + letters},
		{"a\x00", `'\x00' at position 2` + letters},
		{"é", "byte 0xc3 at position 1" + letters},
		{"a\xff", "byte 0xff at position 2" + letters},
	} {
		t.Run(tc.in, func(t *testing.T) { check(t, name.Entity("entity", tc.in), "entity", tc.want) })
	}
}

func TestParent(t *testing.T) {
	check(t, name.Parent("parent", ""), "parent", "")
	check(t, name.Parent("parent", "acme/clothing"), "parent", "")
	check(t, name.Parent("parent", "acme/"), "parent", "empty segment: begins or ends with '/', or has '//'")
}

func TestPrefix(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", ""},
		{"acme/", ""},
		{"acme/.", ""},
		{"acme/..", ""},
		{"acme/v", ""},
		{strings.Repeat("a", 257), "257 characters, at most 256"},
		{"/", "empty segment: begins or ends with '/', or has '//'"},
		{"a//", "empty segment: begins or ends with '/', or has '//'"},
		{"../", `segment ".." is not allowed`},
		{"*", "'*' at position 1, allowed are letters, digits, '.', '_', '-' and '/'"},
	} {
		t.Run(tc.in, func(t *testing.T) { check(t, name.Prefix("prefix", tc.in), "prefix", tc.want) })
	}
}

func TestRequestID(t *testing.T) {
	const printable = ", allowed are printable ASCII without space"
	for _, tc := range []struct{ in, want string }{
		{"x", ""},
		{"!~{}\"/:", ""},
		{strings.Repeat("x", 128), ""},
		{"", "empty, at least 1 character"},
		{strings.Repeat("x", 129), "129 characters, at most 128"},
		{"a b", "' ' at position 2" + printable},
		{"\n", `'\n' at position 1` + printable},
		{"a\x7f", "byte 0x7f at position 2" + printable},
		{"ü", "byte 0xc3 at position 1" + printable},
	} {
		t.Run(tc.in, func(t *testing.T) { check(t, name.RequestID("request_id", tc.in), "request_id", tc.want) })
	}
}

func TestSite(t *testing.T) {
	const lower = ", allowed are lower-case letters, digits and '-'"
	for _, tc := range []struct{ in, want string }{
		{"us", ""},
		{"us-east1-b", ""},
		{"0", ""},
		{strings.Repeat("x", 63), ""},
		{"", "empty, at least 1 character"},
		{strings.Repeat("x", 64), "64 characters, at most 63"},
		{"-us", "begins or ends with '-'"},
		{"us-", "begins or ends with '-'"},
		{"US", "'U' at position 1" + lower},
		{"a.b", "'.' at position 2" + lower},
		{"a/b", "'/' at position 2" + lower},
	} {
		t.Run(tc.in, func(t *testing.T) { check(t, name.Site("site", tc.in), "site", tc.want) })
	}
}

func TestNumbers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		check func(string, int64) error
		in    int64
		want  string
	}{
		{"tokens least", name.Tokens, 1, ""},
		{"tokens most", name.Tokens, 9007199254740991, ""},
		{"tokens zero", name.Tokens, 0, "0, at least 1"},
		{"tokens negative", name.Tokens, -3, "-3, at least 1"},
		{"tokens one above", name.Tokens, 9007199254740992, "9007199254740992, at most 9007199254740991"},
		{"tokens min", name.Tokens, math.MinInt64, "-9223372036854775808, at least 1"},
		{"limit zero", name.Limit, 0, ""},
		{"limit most", name.Limit, 9007199254740991, ""},
		{"limit negative", name.Limit, -1, "-1, at least 0"},
		{"limit max", name.Limit, math.MaxInt64, "9223372036854775807, at most 9007199254740991"},
		{"page default", name.PageSize, 0, ""},
		{"page most", name.PageSize, 1000, ""},
		{"page above", name.PageSize, 1001, "1001, at most 1000"},
		{"page negative", name.PageSize, -1, "-1, at least 0"},
	} {
		t.Run(tc.name, func(t *testing.T) { check(t, tc.check("n", tc.in), "n", tc.want) })
	}
}

func TestWait(t *testing.T) {
	for _, tc := range []struct {
		in   time.Duration
		want string
	}{
		{0, ""},
		{time.Minute, ""},
		{-time.Nanosecond, "-1ns, at least 0s"},
		{time.Minute + 1, "1m0.000000001s, at most 60s"},
	} {
		t.Run(tc.in.String(), func(t *testing.T) { check(t, name.Wait("wait", tc.in), "wait", tc.want) })
	}
}

func TestGoodValuesAllocateNothing(t *testing.T) {
	allocs := testing.AllocsPerRun(100, func() {
		if name.Entity("entity", "acme/clothing/vm") != nil ||
			name.RequestID("request_id", "01J9ZQ4M6V") != nil ||
			name.Prefix("prefix", "acme/") != nil ||
			name.Site("site", "us-east1") != nil ||
			name.Tokens("tokens", 7) != nil ||
			name.Limit("limit", 5000) != nil ||
			name.Wait("wait", time.Second) != nil {
			t.Error("a good value was refused")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}
