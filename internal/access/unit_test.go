package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/methods"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestScopes: the entities that prefixes cover.
func TestScopes(t *testing.T) {
	for _, c := range []struct {
		prefixes, covered, not string
	}{
		{"acme", "acme acme/vm acme/vm/x", "acme2 acm b/acme ACME"},
		{"acme/", "acme/vm acme/vm/x", "acme acme2 acme2/vm"},
		{"acme/vm zeta", "acme/vm acme/vm/x zeta zeta/x", "acme acme/vm2 acme/gpu"},
		{"*", "acme x/y", ""},
		{"acme *", "acme x/y", ""},
	} {
		s, err := newScope(strings.Fields(c.prefixes))
		if err != nil {
			t.Fatal(err)
		}
		for e := range strings.FieldsSeq(c.covered) {
			if !s.Covers(e) {
				t.Errorf("%s does not cover %s", c.prefixes, e)
			}
		}
		for e := range strings.FieldsSeq(c.not) {
			if s.Covers(e) {
				t.Errorf("%s covers %s", c.prefixes, e)
			}
		}
	}
	for _, bad := range []string{"", "/", "acme//", "../x", "a b"} {
		if s, err := newScope([]string{bad}); err == nil {
			t.Errorf("prefix %q is taken: %v", bad, s)
		}
	}
	if (Scope{}).Covers("acme") || (Scope{}).coversAll("acme/") || (Scope{}).All() {
		t.Error("no prefix covers something")
	}
	s, _ := newScope([]string{"acme"})
	for beginning, want := range map[string]bool{"acme/": true, "acme/v": true, "acme": false, "acme2": false, "": false, "a": false} {
		if s.coversAll(beginning) != want {
			t.Errorf("all that begins with %q: %v", beginning, !want)
		}
	}
	for outer, inner := range map[string]string{"acme": "acme/vm", "acme/": "acme/vm/", "a": "a"} {
		o, _ := newScope([]string{outer})
		if !o.includes(inner) || outer != inner && func() bool { i, _ := newScope([]string{inner}); return i.includes(outer) }() {
			t.Errorf("%s and %s", outer, inner)
		}
	}
}

// TestSessionOfNobody: a request that nobody has let in may touch nothing.
func TestSessionOfNobody(t *testing.T) {
	if ScopeOf(t.Context()).Covers("acme") {
		t.Error("it may touch acme")
	}
	if err := Permit(t.Context(), &samyav1.AcquireRequest{Entity: "acme"}); apierr.ReasonOf(err) != apierr.PermissionDenied {
		t.Errorf("got %v", err)
	}
	// Callers of some entities may make no request of an unknown kind.
	if err := permit(Scope{"acme"}, &samyav1.SetModeRequest{}); apierr.ReasonOf(err) != apierr.PermissionDenied {
		t.Errorf("got %v", err)
	}
	if g, err := Open(Config{}); err != nil {
		t.Error(err)
	} else if _, err := g.admit("/samya.v1.TokenService/Mint", credentials{}); apierr.ReasonOf(err) != apierr.RouteNotFound {
		t.Errorf("a method without a rule: %v", err)
	}
}

// TestRates: a caller gets its rate, a batch counts each of its operations, and other
// callers are not held up.
func TestRates(t *testing.T) {
	now := time.Unix(0, 0)
	b := newBuckets(10, func() time.Time { return now })
	for i := range 10 {
		if err := b.take("a", 1); err != nil {
			t.Fatalf("operation %d: %v", i, err)
		}
	}
	err := apierr.From(b.take("a", 1))
	if err.Reason != apierr.RateLimited || err.RetryAfter != 100*time.Millisecond {
		t.Errorf("%v, in %v", err, err.RetryAfter)
	}
	if err := b.take("b", 25); err != nil {
		t.Errorf("a batch of another: %v", err)
	}
	now = now.Add(1500 * time.Millisecond)
	if err := b.take("b", 1); err == nil {
		t.Error("the batch cost nothing")
	}
	now = now.Add(200 * time.Millisecond)
	if err := b.take("b", 1); err != nil {
		t.Error(err)
	}
	now = now.Add(time.Hour)
	for range 10 {
		if err := b.take("a", 1); err != nil {
			t.Error(err)
		}
	}
	if b.take("a", 1) == nil {
		t.Error("what was not used is saved up")
	}
	for i := range 2 * maxBuckets {
		_ = b.take("caller "+string(rune(i)), 1)
	}
	if len(b.all) > maxBuckets {
		t.Errorf("%d callers are kept account of", len(b.all))
	}
	if err := newBuckets(0, nil).take("a", 1e9); err != nil {
		t.Errorf("without a bound: %v", err)
	}
}

// lines reads an audit log.
func lines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// TestAuditAfterACrash: a line that was cut off stays, and the next begins behind it.
func TestAuditAfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	for i, torn := range []string{"", `{"time":"20`, ""} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(torn); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		l, err := openAudit(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.add(&auditRecord{Caller: "a", Method: "m", Entity: string(rune('a' + i))}); err != nil {
			t.Fatal(err)
		}
		if err := l.close(); err != nil {
			t.Fatal(err)
		}
		if err := l.add(&auditRecord{}); err == nil {
			t.Error("a closed log takes a line")
		}
	}
	all := lines(t, path)
	if len(all) != 4 || all[1] != `{"time":"20` {
		t.Fatalf("%q", all)
	}
	for i, line := range []string{all[0], all[2], all[3]} {
		var r auditRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Entity != string(rune('a'+i)) {
			t.Errorf("%q: %v", line, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// failing is a file with failing writes or syncs.
type failing struct {
	bytes.Buffer
	write, sync error
}

func (f *failing) Write(b []byte) (int, error) {
	if f.write != nil {
		return 0, f.write
	}
	return f.Buffer.Write(b)
}
func (f *failing) Sync() error  { return f.sync }
func (f *failing) Close() error { return nil }

// TestAuditThatFails: a change is not begun if the log cannot take its line. A change is
// not told as done if the log cannot take its end.
func TestAuditThatFails(t *testing.T) {
	boom := errors.New("boom")
	if _, err := openAuditWith(filepath.Join(t.TempDir(), "audit.log"), func(string) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("a log in a directory that is not on disk: %v", err)
	}
	if _, err := openAudit(t.TempDir()); err == nil {
		t.Error("a directory is a log")
	}
	method, _ := methods.Of(samyav1.EntityService_UpdateEntity_FullMethodName)
	in := &samyav1.UpdateEntityRequest{Name: "acme", Limit: 7, RequestId: "r"}
	for name, f := range map[string]*failing{"write": {write: boom}, "sync": {sync: boom}} {
		g, err := Open(Config{})
		if err != nil {
			t.Fatal(err)
		}
		g.audit = &auditLog{file: f}
		s := &session{guard: g, rule: method.Rule, caller: anonymous}
		done := false
		err = g.audited(s, in, func() error { done = true; return nil })
		if done || apierr.ReasonOf(err) != apierr.AuditFailed {
			t.Errorf("%s fails: done %v, %v", name, done, err)
		}
		f.write, f.sync = nil, nil
		if err := g.audit.add(&auditRecord{}); err == nil {
			t.Errorf("%s: a log that failed goes on", name)
		}
	}
	g, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	f := &failing{}
	g.audit = &auditLog{file: f}
	s := &session{guard: g, rule: method.Rule, caller: anonymous}
	err = g.audited(s, in, func() error { f.sync = boom; return nil })
	if e := apierr.From(err); e.Reason != apierr.OutcomeUnknown || e.RequestID != "r" {
		t.Errorf("its end cannot be written: %v", err)
	}
	first, _, _ := strings.Cut(f.String(), "\n")
	if !strings.Contains(first, `"request":{"name":"acme"`) || !strings.Contains(first, `"entity":"acme"`) || strings.Contains(first, "outcome") {
		t.Errorf("the line is %s", first)
	}
}

// TestRefusalsAreBounded: refused changes neither fill the audit log nor silence the
// refusals of other callers, and an endless name is cut.
func TestRefusalsAreBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	g, err := Open(Config{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	f := &failing{}
	g.audit = &auditLog{file: f}
	method, _ := methods.Of(samyav1.EntityService_UpdateEntity_FullMethodName)
	denied := apierr.New(apierr.PermissionDenied, "no")
	lines := func() int { return strings.Count(f.String(), "\n") }
	refuse := func(caller string) {
		s := &session{guard: g, rule: method.Rule, caller: &principal{Name: caller}}
		in := &samyav1.UpdateEntityRequest{Name: strings.Repeat("x", 1<<20)}
		if err := g.refuse(s, "127.0.0.1:1", in, denied); apierr.ReasonOf(err) != apierr.PermissionDenied {
			t.Fatal(err)
		}
	}
	for range 100 {
		refuse("a")
	}
	if lines() != refusedPerSecond {
		t.Errorf("%d lines of one caller in a second, want %d", lines(), refusedPerSecond)
	}
	refuse("b")
	if lines() != refusedPerSecond+1 {
		t.Error("the refusals of a caller silence another's")
	}
	now = now.Add(time.Second)
	refuse("a")
	if lines() != refusedPerSecond+2 {
		t.Error("after a second there is no further line")
	}
	if n := len(f.String()); n > 1000*lines() {
		t.Errorf("%d bytes in %d lines", n, lines())
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(g.metrics.unrecorded)
	told, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if got := told[0].GetMetric()[0].GetCounter().GetValue(); got != 90 {
		t.Errorf("%v refusals are counted as unrecorded, want 90", got)
	}
}

// TestFiles: the contents that an access file may have.
func TestFiles(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	for text, problem := range map[string]string{
		"": "",
		"callers:\n- {name: a, role: viewer, token_sha256: " + sum + "}":                                                       "",
		`{"callers":[{"name":"a","role":"client","prefixes":["*"],"certificate":"a"}]}`:                                        "",
		"callers:\n- {name: a, role: viewer, token_sha256: [" + sum + ", " + strings.Repeat("0b", 32) + "]}":                   "",
		"callers:\n- {name: a, role: client, token_sha256: " + sum + "}":                                                       "a client needs prefixes",
		"callers:\n- {name: a, role: root, token_sha256: " + sum + "}":                                                         "role",
		"callers:\n- {name: a, role: nobody, token_sha256: " + sum + "}":                                                       "role",
		"callers:\n- {name: a, role: viewer}":                                                                                  "nobody could be it",
		"callers:\n- {name: a, role: viewer, token: secret}":                                                                   "field token not found",
		"callers:\n- {name: a, role: viewer, token_sha256: secret}":                                                            "64 hexadecimal digits",
		"callers:\n- {name: a, role: admin, prefixes: [x], certificate: a}":                                                    "an admin has no prefixes",
		"callers:\n- {name: a, role: viewer, certificate: x}\n- {name: a, role: viewer, certificate: y}":                       "twice",
		"callers:\n- {name: a, role: viewer, certificate: x}\n- {name: b, role: viewer, certificate: x}":                       "also that of a",
		"callers:\n- {name: a, role: viewer, token_sha256: " + sum + "}\n- {name: b, role: viewer, token_sha256: " + sum + "}": "also that of a",
		"callers:\n- {name: a, role: client, prefixes: [a//b], certificate: x}":                                                "prefix",
		"callers: []\n---\ncallers: []":                                                                                        "more than one document",
		"callers: 7":                                                                                                           "cannot unmarshal",
	} {
		f, err := parseFile([]byte(text))
		if err == nil {
			_, err = f.policy(nil)
		}
		if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
		if err != nil && strings.Contains(err.Error(), "secret") && strings.Contains(text, "token_sha256: secret") {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
}

// TestExposure: the addresses that may be listened on, by the guards in place.
func TestExposure(t *testing.T) {
	open := func(calls, gossip string) Exposure {
		return Exposure{Calls: map[string]string{"http": calls}, Gossip: gossip}
	}
	const here, there = "127.0.0.1:1", "10.0.0.1:1"
	for name, c := range map[string]struct {
		e    Exposure
		fine bool
	}{
		"all here":           {open(here, here), true},
		"IPv6":               {open("[::1]:1", "127.9.9.9:1"), true},
		"localhost":          {open("localhost:1", here), true},
		"calls":              {open(there, here), false},
		"everywhere":         {open("0.0.0.0:1", here), false},
		"everywhere in IPv6": {open("[::]:1", here), false},
		"a name":             {open("localhost.example:1", here), false},
		"gossip":             {open(here, there), false},
		"TLS alone":          {Exposure{Calls: map[string]string{"http": there}, Gossip: here, TLS: true}, false},
		"access alone":       {Exposure{Calls: map[string]string{"http": there}, Gossip: here, Access: true}, false},
		"guarded":            {Exposure{Calls: map[string]string{"http": there}, Gossip: there, TLS: true, Access: true, GossipKey: true}, true},
		"gossip in clear":    {Exposure{Calls: map[string]string{"http": there}, Gossip: there, TLS: true, Access: true}, false},
	} {
		if err := c.e.Check(); (err == nil) != c.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}
