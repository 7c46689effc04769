package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/ratelimit/rules"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/internal/testfuzz"
)

// one parses a text as the only file.
func one(text string) (*rules.Config, error) {
	return rules.Parse(rules.File{Name: "f.yaml", Data: []byte(text)})
}

// TestFaults: what a file may not be, with the line and the field at fault.
func TestFaults(t *testing.T) {
	const limit = "rate_limit: {unit: minute, requests_per_unit: 1}"
	for _, c := range []struct{ what, text, want string }{
		{"nothing", "", "f.yaml:1: domain: missing"},
		{"null", "~", "f.yaml:1: domain: missing"},
		{"no domain", "descriptors: []", "f.yaml:1: domain: missing"},
		{"an empty domain", "domain: ''", "f.yaml:1: domain: missing"},
		{"another document", "domain: a\n---\ndomain: b", "f.yaml:1: more than one document"},
		{"no YAML", "domain: a\ndescriptors: [", "f.yaml:2: did not find expected node content"},
		{"a list", "- a", "f.yaml:1: must be a mapping of fields"},
		{"descriptors of another kind", "domain: a\ndescriptors: {key: a}", "f.yaml:2: descriptors: must be a list of descriptors"},
		{"a descriptor of another kind", "domain: a\ndescriptors:\n  - a", "f.yaml:3: descriptors[0]: must be a mapping of fields"},
		{"no key", "domain: a\ndescriptors:\n  - value: b", "f.yaml:3: descriptors[0].key: missing"},
		{
			"a misspelled field", "domain: a\ndescriptors:\n  - key: b\n    ratelimit: {}",
			"f.yaml:4: descriptors[0].ratelimit: unknown; the fields here are descriptors, detailed_metric, key, metadata, quota_mode, rate_limit, shadow_mode, share_threshold, value, value_to_metric",
		},
		{"a field in the wrong place", "domain: a\nkey: b", "f.yaml:2: key: unknown; the fields here are descriptors, domain"},
		{"a field that is no text", "domain: a\n1: b", "f.yaml:2: 1: unknown; the fields here are descriptors, domain"},
		{"a field twice", "domain: a\ndomain: b", "f.yaml:2: domain: given twice"},
		{
			"an unknown unit", "domain: a\ndescriptors:\n  - key: b\n    rate_limit:\n      unit: fortnight",
			`f.yaml:5: descriptors[0].rate_limit.unit: "fortnight", must be second, minute, hour, day, week, month or year`,
		},
		{"no unit", "domain: a\ndescriptors: [{key: b, rate_limit: {requests_per_unit: 3}}]", "f.yaml:2: descriptors[0].rate_limit.unit: missing"},
		{"a unit without limit", "domain: a\ndescriptors: [{key: b, rate_limit: {unlimited: true, unit: day}}]", "f.yaml:2: descriptors[0].rate_limit.unit: must not be set with unlimited"},
		{
			"too few", "domain: a\ndescriptors: [{key: b, rate_limit: {unit: day, requests_per_unit: -1}}]",
			`f.yaml:2: descriptors[0].rate_limit.requests_per_unit: "-1", must be a whole number, at least 0 and at most 4294967295`,
		},
		{
			"too many", "domain: a\ndescriptors: [{key: b, rate_limit: {unit: day, requests_per_unit: 4294967296}}]",
			`f.yaml:2: descriptors[0].rate_limit.requests_per_unit: "4294967296", must be a whole number, at least 0 and at most 4294967295`,
		},
		{
			"a part of a request", "domain: a\ndescriptors: [{key: b, rate_limit: {unit: day, requests_per_unit: 1.5}}]",
			`f.yaml:2: descriptors[0].rate_limit.requests_per_unit: "1.5", must be a whole number, at least 0 and at most 4294967295`,
		},
		{"no flag", "domain: a\ndescriptors: [{key: b, shadow_mode: perhaps}]", `f.yaml:2: descriptors[0].shadow_mode: "perhaps", must be true or false`},
		{"a text for a flag", "domain: a\ndescriptors: [{key: b, shadow_mode: 'true'}]", `f.yaml:2: descriptors[0].shadow_mode: "true", must be true or false`},
		{"a list for a text", "domain: [a]", "f.yaml:1: domain: must be a text"},
		{"a long text", "domain: " + strings.Repeat("a", 1025), "f.yaml:1: domain: 1025 bytes, at most 1024"},
		{
			"it replaces itself", "domain: a\ndescriptors: [{key: b, rate_limit: {unit: day, name: c, replaces: [{name: c}]}}]",
			"f.yaml:2: descriptors[0].rate_limit.replaces[0].name: names the limit itself",
		},
		{"it replaces nothing", "domain: a\ndescriptors: [{key: b, rate_limit: {unit: day, replaces: [{}]}}]", "f.yaml:2: descriptors[0].rate_limit.replaces[0].name: missing"},
		{"replaces of another kind", "domain: a\ndescriptors: [{key: b, rate_limit: {unit: day, replaces: c}}]", "f.yaml:2: descriptors[0].rate_limit.replaces: must be a list of names"},
		{
			"shared without a wildcard", "domain: a\ndescriptors: [{key: b, value: c, share_threshold: true}]",
			`f.yaml:2: descriptors[0].share_threshold: is for values with a '*'; the value is "c"`,
		},
		{"metadata of another kind", "domain: a\ndescriptors: [{key: b, metadata: c}]", "f.yaml:2: descriptors[0].metadata: must be a mapping"},
		{"twice", "domain: a\ndescriptors:\n  - key: b\n    " + limit + "\n  - key: b", `f.yaml:5: descriptors[1]: "b" is at f.yaml:3 already`},
		{"twice, parted otherwise", "domain: a\ndescriptors:\n  - key: b\n    value: c\n  - key: b_c", `f.yaml:5: descriptors[1]: "b_c" is at f.yaml:3 already`},
		{"too deep", "domain: a\n" + deep(17), "f.yaml:35: " + strings.Repeat("descriptors[0].", 16) + "descriptors: nested deeper than 16"},
		{"within itself", "domain: a\ndescriptors: &x\n  - key: b\n    descriptors: *x", "f.yaml:2: " + strings.Repeat("descriptors[0].", 16) + "descriptors: nested deeper than 16"},
	} {
		_, err := one(c.text)
		got := fmt.Sprint(err)
		if first, _, _ := strings.Cut(got, "\n"); first != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.what, got, c.want)
		}
	}
}

// deep is so many nested descriptors.
func deep(n int) string {
	var b strings.Builder
	for i := range n {
		pad := strings.Repeat("  ", 2*i)
		fmt.Fprintf(&b, "%sdescriptors:\n%s  - key: k\n", pad, pad)
	}
	return b.String()
}

// TestAllFaults: each fault of all files is told, up to a bound.
func TestAllFaults(t *testing.T) {
	_, err := rules.Parse(rules.File{Name: "b.yaml", Data: []byte("domain: a\nx: 1\ny: 2")}, rules.File{Name: "a.yaml", Data: []byte("z: 1\ndomain: a")})
	want := "a.yaml:1: z: unknown; the fields here are descriptors, domain\n" +
		"b.yaml:2: x: unknown; the fields here are descriptors, domain\n" +
		"b.yaml:3: y: unknown; the fields here are descriptors, domain"
	if fmt.Sprint(err) != want {
		t.Errorf("%v", err)
	}
	_, err = one("domain: a\n" + strings.Repeat("x: 1\n", 100))
	if n := strings.Count(fmt.Sprint(err), "\n") + 1; n != 20 {
		t.Errorf("%d faults", n)
	}
	_, err = one("domain: a\ndescriptors:\n" + bomb())
	if !strings.Contains(fmt.Sprint(err), "more than 100000 descriptors in all") {
		t.Errorf("%v", err)
	}
}

// bomb is a list of descriptors that is long once its aliases are followed.
func bomb() string {
	var b strings.Builder
	b.WriteString("  - key: a\n    descriptors: &a0\n      - {key: l0}\n")
	for i := 1; i < 8; i++ {
		fmt.Fprintf(&b, "  - key: b%d\n    descriptors: &a%d\n", i, i)
		for j := range 20 {
			fmt.Fprintf(&b, "      - {key: l%d, descriptors: *a%d}\n", j, i-1)
		}
	}
	return b.String()
}

// TestFilesShareADomain: rules of a domain may stand in several files, and a key in one.
func TestFilesShareADomain(t *testing.T) {
	a := rules.File{Name: "a.yaml", Data: []byte("domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 1}}]")}
	b := rules.File{Name: "b.yaml", Data: []byte("domain: d\ndescriptors: [{key: b, rate_limit: {unit: HOUR, requests_per_unit: 2}}]")}
	c, err := rules.Parse(b, a)
	if err != nil {
		t.Fatal(err)
	}
	found := c.Match("d", descriptor("a=x"), descriptor("b=x"))
	if found[0].Limit != 1 || found[1].Limit != 2 || found[1].Unit != rules.Hour || c.Len() != 2 || len(c.Domains()) != 1 {
		t.Errorf("%+v", found)
	}
	again := rules.File{Name: "c.yaml", Data: a.Data}
	if _, err := rules.Parse(again, a, b); fmt.Sprint(err) != `c.yaml:2: descriptors[0]: "a" is at a.yaml:2 already` {
		t.Error(err)
	}
}

// TestMatch: which rule a descriptor has, and the name of its entity.
func TestMatch(t *testing.T) {
	c := parsed(t, "match.yaml")
	for _, m := range []struct {
		request string
		limit   int64 // -1: no rule
		entity  string
	}{
		{"wild=foo", 1, "ratelimit/test/wild.foo/minute"},
		{"wild=fooo", 2, "ratelimit/test/wild.foo-x2A/minute-keys/fooo"},
		{"wild=foobar", 2, "ratelimit/test/wild.foo-x2A/minute-keys/foobar"},
		{"wild=bar", 3, "ratelimit/test/wild/minute-keys/bar"},
		{"wild=", 3, "ratelimit/test/wild/minute-keys/-x"},
		{"wild", 3, "ratelimit/test/wild/minute-keys/-x"},
		{"mid=barb", 4, "ratelimit/test/mid.barb/hour"},
		{"mid=bar-b", 4, "ratelimit/test/mid.bar-b/hour"},
		{"mid=bab", -1, ""},
		{"mid=bar", -1, ""},
		{"mid=ba", -1, ""},
		{"multi=foo1bar2baz", 5, "ratelimit/test/multi.foo-x2Abar-x2Abaz/second-keys/foo1bar2baz"},
		{"multi=foobaz", -1, ""},
		{"multi=foobazbar", -1, ""},
		{"over=aba", -1, ""}, // the parts may not overlap
		{"over=abba", 6, "ratelimit/test/over.abba/day"},
		{"files=top/a,files=nested/b", 7, "ratelimit/test/files.top-x2F-x2A/files.nested-x2F-x2A/week"},
		{"files=top/a", -1, ""},
		{"files=top/a,files=nested/b,c", -1, ""},
		{"mixed=path/a,file=file/b,type=c", 8, "ratelimit/test/mixed.path-x2F-x2A/file.file-x2Fb/type.c/month"},
		{"mixed=path/a,file=file//b,type=c", 8, "ratelimit/test/mixed.path-x2F-x2A/file.file-x2F-x2Fb/type.c/month"},
		{"limited=a", 9, "ratelimit/test/limited.a/year"},
		{"limited=a,below=b", 10, "ratelimit/test/limited.a/below.b/year"},
		{"limited=a,other=b", -1, ""},
		{"404=200", 11, "ratelimit/test/404.200/second"},
		{"merged=x", 12, "ratelimit/test/merged.x/hour"},
		{"merged2=x", 13, "ratelimit/test/merged2.x/hour"},
		{"no_limit=x", -1, ""},
		{"other=x", -1, ""},
		{"wild=a.b/c é-x1", 3, "ratelimit/test/wild/minute-keys/a.b-x2Fc-x20-xC3-xA9-x2Dx1"},
	} {
		found := c.Match("test", descriptor(m.request))[0]
		switch {
		case m.limit < 0:
			if found != nil {
				t.Errorf("%s: %+v, want no rule", m.request, found)
			}
		case found == nil || found.Limit != m.limit || found.Entity != m.entity:
			t.Errorf("%s: %+v, want %d of %s", m.request, found, m.limit, m.entity)
		case found.Terms.Validate() != nil || found.Terms.None() || found.Terms != found.Unit.Terms() && found.Terms != keyed(found.Unit):
			t.Errorf("%s: %+v", m.request, found.Terms)
		}
	}
	if found := c.Match("other", descriptor("wild=foo"))[0]; found != nil {
		t.Errorf("another domain: %+v", found)
	}
	if found := c.Match("test", rules.Descriptor{})[0]; found != nil {
		t.Errorf("no entries: %+v", found)
	}
}

// keyed are the terms of a template with windows of a unit.
func keyed(unit rules.Unit) rates.Terms {
	terms, err := unit.Terms().OfKeys(nil)
	if err != nil {
		panic(err)
	}
	return terms
}

// TestFields: what a match tells of its rule.
func TestFields(t *testing.T) {
	c := parsed(t, "match.yaml")
	found := c.Match("test", descriptor("all=x"), descriptor("limited=x"), descriptor("free=x"))
	want := []*rules.Match{
		{
			Entity: "ratelimit/test/all/minute-keys/x", Template: "ratelimit/test/all/minute-keys", Limit: 1, Unit: rules.Minute, Terms: keyed(rules.Minute), Shadow: true, Quota: true,
			Name: "a", Replaces: []string{"l", "m"}, Metric: "test.all_x", Metadata: map[string]any{"a": map[string]any{"b": []any{1, "c"}}},
		},
		nil, // replaced
		{Unlimited: true, Name: "m", Metric: "test.free"},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	if alone := c.Match("test", descriptor("limited=x"))[0]; alone == nil || alone.Name != "l" {
		t.Errorf("alone: %+v", alone)
	}
}

// TestOverride: a limit of the request is in force in each domain that has rules.
func TestOverride(t *testing.T) {
	c := parsed(t, "match.yaml")
	d := descriptor("all=x,more=y")
	d.Override = &rules.Override{Limit: 42, Unit: rules.Hour}
	want := &rules.Match{
		Entity: "ratelimit/test/all.x/more.y/hour-42", Limit: 42, Unit: rules.Hour, Terms: rules.Hour.Terms(), Metric: "test.all_x.more_y",
	}
	if diff := cmp.Diff(want, c.Match("test", d)[0]); diff != "" {
		t.Error(diff)
	}
	if found := c.Match("other", d)[0]; found != nil {
		t.Errorf("in another domain: %+v", found)
	}
	d.Override = &rules.Override{Limit: 42, Unit: "fortnight"}
	if found := c.Match("test", d)[0]; found != nil {
		t.Errorf("of another unit: %+v", found)
	}
}

// everything is a domain with rules for descriptors of one and of two entries.
func everything(domain, unit string) *rules.Config {
	c, err := one(fmt.Sprintf("domain: %q\ndescriptors: [{key: '*', rate_limit: {unit: %[2]s, requests_per_unit: 1}, descriptors: [{key: '*', rate_limit: {unit: %[2]s, requests_per_unit: 1}}]}]", domain, unit))
	if err != nil {
		panic(err)
	}
	return c
}

// TestNames: all entities have valid names below the name of their domain, and different
// descriptors have different names.
func TestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`[ab._x2F*/-]{0,6}`), rapid.StringN(0, 8, 32), rapid.StringMatching(`[a./-]{80,300}`),
		)
		entry := rapid.Custom(func(t *rapid.T) rules.Entry {
			return rules.Entry{Key: text.Draw(t, "key"), Value: text.Draw(t, "value")}
		})
		list := rapid.SliceOfN(entry, 1, 2)
		domain := rapid.OneOf(rapid.SampledFrom([]string{"a", ".", "..", "...", "-x..", "a/b"}), rapid.StringMatching(`[a./-]{90,300}`)).Draw(t, "domain")
		unit := rapid.SampledFrom([]string{"second", "day"}).Draw(t, "unit")
		name1, entries := "", []rules.Entry(nil)
		for i, draw := range []string{"first", "second"} {
			more := list.Draw(t, draw)
			found := everything(domain, unit).Match(domain, rules.Descriptor{Entries: more})[0]
			if found == nil {
				t.Fatalf("no rule for %q", more)
			}
			if err := name.Entity("entity", found.Entity); err != nil {
				t.Fatalf("%q: %q: %v", more, found.Entity, err)
			}
			if !strings.HasPrefix(found.Entity, rules.Above(domain)+"/") {
				t.Fatalf("%q is not below %q", found.Entity, rules.Above(domain))
			}
			if i == 1 && (found.Entity == name1) != cmp.Equal(more, entries) {
				t.Fatalf("%q and %q are %q and %q", entries, more, name1, found.Entity)
			}
			name1, entries = found.Entity, more
		}
		other := rapid.StringMatching(`[a./x-]{1,9}|[a./-]{90,300}`).Draw(t, "other domain")
		if (rules.Above(other) == rules.Above(domain)) != (other == domain) {
			t.Fatalf("the domains %q and %q are both %q", other, domain, rules.Above(domain))
		}
	})
}

// FuzzParse: no file ends the process. Whatever is read matches to valid names.
func FuzzParse(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, seed := range []string{
		"", "domain: a\ndescriptors:\n  - key: b\n    value: c*\n    share_threshold: true\n    rate_limit: {unit: day, requests_per_unit: 3}\n",
		"domain: a\ndescriptors: &x\n  - key: b\n    descriptors: *x\n", "domain: a\n<<: [{domain: b}, {descriptors: [{key: c}]}]\n", "- 'a", "domain: &a [*a]",
	} {
		f.Add([]byte(seed), "b", "c1")
	}
	f.Fuzz(func(t *testing.T, file []byte, key, value string) {
		c, err := rules.Parse(rules.File{Name: "f.yaml", Data: file})
		if err != nil {
			if c != nil {
				t.Error("a configuration with faults is returned")
			}
			return
		}
		for _, domain := range c.Domains() {
			for _, d := range []rules.Descriptor{
				{Entries: []rules.Entry{{Key: key, Value: value}}},
				{Entries: []rules.Entry{{Key: key, Value: value}, {Key: value, Value: key}}, Override: &rules.Override{Limit: 1, Unit: rules.Day}},
			} {
				if m := c.Match(domain, d)[0]; m != nil && !m.Unlimited && name.Entity("entity", m.Entity) != nil {
					t.Errorf("%q: %v", m.Entity, name.Entity("entity", m.Entity))
				}
			}
		}
	})
}

// TestKeyNames: keys have valid names below the name of their template, and different values
// have different names.
func TestKeyNames(t *testing.T) {
	c, err := one("domain: d\ndescriptors: [{key: a, rate_limit: {unit: second, requests_per_unit: 1}, descriptors: [{key: b, value: 'x*', rate_limit: {unit: second, requests_per_unit: 1}}]}]")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[ab._x2F*/-]{0,6}`), rapid.StringN(0, 8, 32), rapid.StringMatching(`[a./-]{80,300}`))
		draw := func(name string) []rules.Entry {
			es := []rules.Entry{{Key: "a", Value: text.Draw(t, name+" a")}}
			if rapid.Bool().Draw(t, name+" two") {
				es = append(es, rules.Entry{Key: "b", Value: "x" + text.Draw(t, name+" b")})
			}
			return es
		}
		first, second := draw("first"), draw("second")
		m, n := c.Match("d", rules.Descriptor{Entries: first})[0], c.Match("d", rules.Descriptor{Entries: second})[0]
		for _, x := range []*rules.Match{m, n} {
			if err := errors.Join(name.Entity("entity", x.Entity), name.Entity("template", x.Template)); err != nil {
				t.Fatalf("%q: %v", x.Entity, err)
			}
			if !strings.HasPrefix(x.Entity, x.Template+"/") {
				t.Fatalf("%q is not below %q", x.Entity, x.Template)
			}
		}
		if (m.Entity == n.Entity) != cmp.Equal(first, second) || (m.Template == n.Template) != (len(first) == len(second)) {
			t.Fatalf("%q and %q are %q and %q", first, second, m.Entity, n.Entity)
		}
	})
}
