package name_test

import (
	"errors"
	"math"
	"slices"
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
		{strings.Repeat("a", 257), "257 bytes, at most 256"},
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
		{strings.Repeat("a", 257), "257 bytes, at most 256"},
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
		{strings.Repeat("x", 129), "129 bytes, at most 128"},
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
		{strings.Repeat("x", 64), "64 bytes, at most 63"},
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
		{"attempt default", name.Attempt, 0, ""},
		{"attempt most", name.Attempt, 1048575, ""},
		{"attempt above", name.Attempt, 1048576, "1048576, at most 1048575"},
		{"attempt negative", name.Attempt, -1, "-1, at least 0"},
		{"operations least", operations, 1, ""},
		{"operations most", operations, 1000, ""},
		{"operations none", operations, 0, "0, at least 1"},
		{"operations above", operations, 1001, "1001, at most 1000"},
		{"min default", minTokens(5), 0, ""},
		{"min all", minTokens(5), 5, ""},
		{"min more than asked for", minTokens(5), 6, "6, at most 5"},
		{"min negative", minTokens(5), -1, "-1, at least 0"},
		{"min of none", minTokens(0), 2, "2, at most 1"},
		{"released least", released(0), 0, ""},
		{"released below", released(1), 0, "0, at least 1"},
		{"released most", released(0), 9007199254740991, ""},
		{"released above", released(0), 9007199254740992, "9007199254740992, at most 9007199254740991"},
	} {
		t.Run(tc.name, func(t *testing.T) { check(t, tc.check("n", tc.in), "n", tc.want) })
	}
}

func operations(field string, n int64) error { return name.Operations(field, int(n)) }

func minTokens(of int64) func(string, int64) error {
	return func(field string, n int64) error { return name.MinTokens(field, n, of) }
}

func released(least int64) func(string, int64) error {
	return func(field string, n int64) error { return name.Released(field, n, least) }
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

func TestTimes(t *testing.T) {
	for _, tc := range []struct {
		name  string
		check func(string, time.Duration) error
		in    time.Duration
		want  string
	}{
		{"age none", name.Age, 0, ""},
		{"age most", name.Age, time.Hour, ""},
		{"age above", name.Age, time.Hour + 1, "1h0m0.000000001s, at most 1h"},
		{"age negative", name.Age, -1, "-1ns, at least 0s"},
		{"ttl least", name.TTL, time.Second, ""},
		{"ttl below", name.TTL, time.Second - 1, "999.999999ms, at least 1s"},
		{"ttl most", name.TTL, 168 * time.Hour, ""},
		{"ttl above", name.TTL, 168*time.Hour + 1, "168h0m0.000000001s, at most 168h (7 days)"},
	} {
		t.Run(tc.name, func(t *testing.T) { check(t, tc.check("d", tc.in), "d", tc.want) })
	}
}

func TestHolder(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		"job/7@host":             "",
		strings.Repeat("x", 128): "",
		strings.Repeat("x", 129): "129 bytes, at most 128",
		"a b":                    "' ' at position 2, allowed are printable ASCII without space",
		"\x7f":                   "byte 0x7f at position 1, allowed are printable ASCII without space",
	} {
		check(t, name.Holder("holder", in), "holder", want)
	}
}

// TestLease: each part of a lease's name keeps to the bounds of a site and of a request
// id.
func TestLease(t *testing.T) {
	site, id, err := name.Lease("lease", "us-east1/a/b:1")
	if site != "us-east1" || id != "a/b:1" || err != nil {
		t.Errorf("%q, %q, %v", site, id, err)
	}
	for _, in := range []string{"", "us", "us/", "/id", "US/id", "us-/id", "us/a b", "us/" + strings.Repeat("x", 129), strings.Repeat("x", 64) + "/id"} {
		site, id, err := name.Lease("lease", in)
		check(t, err, "lease", "must be a site's name, a slash and the request id of an acquire")
		if site != "" || id != "" {
			t.Errorf("%q is refused and has parts %q and %q", in, site, id)
		}
	}
}

// TestForecast: a model must be in the list, and the list is in the order of names.
func TestForecast(t *testing.T) {
	if !slices.IsSorted(name.Forecasts()) || !slices.IsSorted(name.Modes()) {
		t.Error("names are not in order")
	}
	for _, model := range name.Forecasts() {
		check(t, name.Forecast("model", model), "", "")
	}
	for _, model := range []string{"", "oracle", "Auto", "ar "} {
		check(t, name.Forecast("model", model), "model", "must be one of "+strings.Join(name.Forecasts(), ", "))
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

// TestHas: a part of a name is found whatever its case, and nothing else is.
func TestHas(t *testing.T) {
	for _, c := range []struct {
		name, part string
		want       bool
	}{
		{"acme/vm", "", true},
		{"acme/vm", "acme/vm", true},
		{"acme/VM-1", "vm-", true},
		{"acme/vm", "e/v", true},
		{"aab", "ab", true},
		{"acme", "acmes", false},
		{"", "a", false},
		{"a_b", "a-b", false},
	} {
		if got := name.Has(c.name, c.part); got != c.want {
			t.Errorf("Has(%q, %q) = %t", c.name, c.part, got)
		}
	}
}
