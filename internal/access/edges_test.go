package access

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/credtest"
	"github.com/samya-db/samya/internal/methods"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

func acquireOf(entity string) *samyav1.Operation {
	return &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: entity, Tokens: 1}}}
}

// TestPermits: the requests permitted to the owner of a name, of the names below it, and
// of several prefixes, at the edges of their scopes.
func TestPermits(t *testing.T) {
	batch := func(entities ...string) *samyav1.BatchRequest {
		r := &samyav1.BatchRequest{}
		for _, e := range entities {
			r.Operations = append(r.Operations, acquireOf(e))
		}
		return r
	}
	const name, below, two = "acme", "acme/", "acme/vm zeta/"
	for _, c := range []struct {
		what    string
		request any
		may     string
	}{
		{"acquire of the name", &samyav1.AcquireRequest{Entity: "acme"}, name},
		{"acquire below", &samyav1.AcquireRequest{Entity: "acme/vm"}, "acme,acme/,acme/vm zeta/"},
		{"acquire of a neighbour", &samyav1.AcquireRequest{Entity: "acme2"}, ""},
		{"release of a neighbour", &samyav1.ReleaseRequest{Entity: "acme/vm2"}, "acme,acme/"},
		{"batch", batch("acme/vm", "acme/vm"), "acme,acme/,acme/vm zeta/"},
		{"batch with another at its end", batch("acme/vm", "acme/vm", "zeta"), ""},
		{"batch with another at its start", batch("zeta", "acme/vm"), ""},
		{"batch over both", batch("acme/vm", "zeta/vm"), two},
		{"creation", &samyav1.CreateEntityRequest{Name: "acme/vm"}, "acme,acme/,acme/vm zeta/"},
		{"creation below its own", &samyav1.CreateEntityRequest{Name: "acme/vm/x", Parent: "acme/vm"}, "acme,acme/,acme/vm zeta/"},
		{"creation below the name", &samyav1.CreateEntityRequest{Name: "acme/vm", Parent: "acme"}, name},
		{"creation below another", &samyav1.CreateEntityRequest{Name: "acme/vm", Parent: "budget"}, ""},
		{"deletion", &samyav1.DeleteEntityRequest{Name: "acme"}, name},
		{"deletion of a subtree", &samyav1.DeleteEntityRequest{Name: "acme", Subtree: true}, ""},
		{"leases of an entity", &samyav1.ListLeasesRequest{Entity: "acme"}, name},
		{"all leases", &samyav1.ListLeasesRequest{}, "acme,acme/,acme/vm zeta/"},
		{"list of all", &samyav1.ListEntitiesRequest{}, ""},
		{"list of what begins like it", &samyav1.ListEntitiesRequest{Prefix: "acme"}, ""},
		{"list of a part of it", &samyav1.ListEntitiesRequest{Prefix: "acm"}, ""},
		{"list below", &samyav1.ListEntitiesRequest{Prefix: "acme/"}, "acme,acme/"},
		{"list of some below", &samyav1.ListEntitiesRequest{Prefix: "acme/v"}, "acme,acme/"},
		{"list below a part", &samyav1.ListEntitiesRequest{Prefix: "acme/vm/"}, "acme,acme/,acme/vm zeta/"},
		{"list of a neighbour", &samyav1.ListEntitiesRequest{Prefix: "acme2/"}, ""},
		{"list of the second", &samyav1.ListEntitiesRequest{Prefix: "zeta/"}, two},
	} {
		for _, prefixes := range []string{name, below, two} {
			scope, err := newScope(strings.Fields(prefixes))
			if err != nil {
				t.Fatal(err)
			}
			err = permit(scope, c.request)
			may := false
			for p := range strings.SplitSeq(c.may, ",") {
				may = may || p == prefixes
			}
			if may != (err == nil) || err != nil && apierr.ReasonOf(err) != apierr.PermissionDenied {
				t.Errorf("%s by the owner of %s: %v, may %v", c.what, prefixes, err, may)
			}
		}
	}
}

// TestListsOfAPrefix: a list has all entities of the caller, and no others.
func TestListsOfAPrefix(t *testing.T) {
	all := []string{"acme", "acme/vm", "acme/vm/x", "acme2", "acme2/vm", "zeta"}
	for prefixes, want := range map[string]string{
		"acme":      "acme acme/vm acme/vm/x",
		"acme/":     "acme/vm acme/vm/x",
		"acme/vm/":  "acme/vm/x",
		"zeta acme": "acme acme/vm acme/vm/x zeta",
		"*":         strings.Join(all, " "),
	} {
		scope, err := newScope(strings.Fields(prefixes))
		if err != nil {
			t.Fatal(err)
		}
		entities, leases := &samyav1.ListEntitiesResponse{}, &samyav1.ListLeasesResponse{}
		for _, name := range all {
			entities.Entities = append(entities.Entities, &samyav1.Entity{Name: name})
			leases.Leases = append(leases.Leases, &samyav1.Lease{Entity: name})
		}
		cut(scope, entities)
		cut(scope, leases)
		var got, of []string
		for _, e := range entities.GetEntities() {
			got = append(got, e.GetName())
		}
		for _, l := range leases.GetLeases() {
			of = append(of, l.GetEntity())
		}
		if strings.Join(got, " ") != want || strings.Join(of, " ") != want {
			t.Errorf("the owner of %s is told of %q, and of leases of %q, want %s", prefixes, got, of, want)
		}
	}
}

// TestCallersAreEqual: callers that may do more, less or something else differ.
func TestCallersAreEqual(t *testing.T) {
	base := principal{Name: "a", Role: methods.Client, Scope: Scope{"acme"}}
	for what, change := range map[string]func(*principal){
		"name":         func(c *principal) { c.Name = "b" },
		"role":         func(c *principal) { c.Role = methods.Viewer },
		"kind":         func(c *principal) { c.Kind = "site" },
		"narrower":     func(c *principal) { c.Scope = Scope{"acme/"} },
		"wider":        func(c *principal) { c.Scope = Scope{"acme", "zeta"} },
		"none":         func(c *principal) { c.Scope = Scope{} },
		"all entities": func(c *principal) { c.Scope = nil },
	} {
		other := base
		change(&other)
		if base.equal(&other) || other.equal(&base) {
			t.Errorf("another %s makes no difference", what)
		}
	}
	all, none := base, base
	all.Scope, none.Scope = nil, Scope{}
	if all.equal(&none) || none.equal(&all) {
		t.Error("a caller of nothing and a caller of everything are the same")
	}
	if same := base; !base.equal(&same) {
		t.Error("a caller is not itself")
	}
}

// accessFile writes an access file with a caller of a role and prefixes.
func accessFile(t *testing.T, path, role, prefixes string) {
	t.Helper()
	text := fmt.Sprintf("callers:\n  - {name: worker, role: %s, prefixes: %s, token_sha256: %x}\n", role, prefixes, sha256.Sum256([]byte("secret")))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestNarrowed: a streaming call ends when its caller's permissions have changed in any
// way, and goes on otherwise.
func TestNarrowed(t *testing.T) {
	for what, c := range map[string]struct {
		role, prefixes string
		ends           bool
	}{
		"nothing":                   {"client", "[acme, zeta]", false},
		"nothing, written anew":     {"client", "[acme,   zeta]", false},
		"a prefix is taken":         {"client", "[acme]", true},
		"a prefix loses the name":   {"client", "[acme/, zeta]", true},
		"a prefix is added":         {"client", "[acme, zeta, beta]", true},
		"all entities":              {"client", "['*']", true},
		"the role":                  {"operator", "[acme, zeta]", true},
		"the role is not enough":    {"viewer", "[acme, zeta]", true},
		"the file is out of order":  {"client", "[acme,", false},
		"the file names no prefix":  {"client", "[]", false},
		"the prefix of a neighbour": {"client", "[acme2, zeta]", true},
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.yaml")
			accessFile(t, path, "client", "[acme, zeta]")
			g, err := Open(Config{File: path})
			if err != nil {
				t.Fatal(err)
			}
			shows := credentials{authorization: "Bearer secret"}
			s, err := g.admit(samyav1.TokenService_Stream_FullMethodName, shows)
			if err != nil {
				t.Fatal(err)
			}
			ctx, release := g.streaming(t.Context(), func() error { return g.again(s, shows) })
			defer release()
			g.Look()
			if ctx.Err() != nil {
				t.Fatalf("it ends though nothing has changed: %v", context.Cause(ctx))
			}
			accessFile(t, path, c.role, c.prefixes)
			g.Look()
			if (ctx.Err() != nil) != c.ends {
				t.Errorf("it has ended: %v, want %v: %v", ctx.Err() != nil, c.ends, context.Cause(ctx))
			}
		})
	}
}

// TestOneSpellingOfAJWT: decoders ignore the last bits of a signature's last letter. A
// token with other last bits is refused all the same.
func TestOneSpellingOfAJWT(t *testing.T) {
	set := credtest.New(t)
	g, err := Open(Config{File: set.AccessFile()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	jwt := set.JWT(nil)
	body, last := jwt[:len(jwt)-1], jwt[len(jwt)-1]
	for _, letter := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=") {
		_, err := g.admit(samyav1.TokenService_Acquire_FullMethodName, credentials{authorization: "Bearer " + body + string(letter)})
		if (err == nil) != (letter == last) {
			t.Errorf("it ends with %q, the issuer's with %q: %v", letter, last, err)
		}
	}
	for _, space := range []string{" ", "\t", "\n", "\r", "\u00a0", "\u2003"} {
		for _, at := range []int{1, strings.IndexByte(jwt, '.') + 2, len(jwt) - 1} {
			_, err := g.admit(samyav1.TokenService_Acquire_FullMethodName, credentials{authorization: "Bearer " + jwt[:at] + space + jwt[at:]})
			if err == nil {
				t.Errorf("with %q at %d it is taken", space, at)
			}
		}
	}
}

// TestJWTEnds: a token is good until it ends, however often it was shown before, and
// from when it begins; its issuer's clock may differ by the leeway.
func TestJWTEnds(t *testing.T) {
	set := credtest.New(t)
	now := time.Now()
	g, err := Open(Config{File: set.AccessFile(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	begin := now
	token := "Bearer " + set.JWT(map[string]any{"exp": begin.Add(time.Minute).Unix(), "nbf": begin.Unix()})
	for _, step := range []struct {
		at   time.Duration
		good bool
	}{
		{-time.Minute, false},
		{0, true},
		{5 * time.Second, true},
		{time.Minute - time.Second, true},
		{time.Minute + leeway + jwtTime, false},
		{time.Hour, false},
		{30 * time.Second, true},
	} {
		now = begin.Add(step.at)
		_, err := g.admit(samyav1.TokenService_Acquire_FullMethodName, credentials{authorization: token})
		if (err == nil) != step.good {
			t.Errorf("after %v: %v", step.at, err)
		}
	}
}

// TestIssuers: tokens of an issuer cover its prefixes at most, each of them.
func TestIssuers(t *testing.T) {
	for _, c := range []struct{ issuer, token, want string }{
		{"acme", "acme", "acme"},
		{"acme", "acme/", "acme/"},
		{"acme", "acme/vm", "acme/vm"},
		{"acme", "acme2", ""},
		{"acme", "acme/vm zeta", ""},
		{"acme", "zeta acme/vm", ""},
		{"acme", "*", "acme"},
		{"acme/", "acme", ""},
		{"acme/", "acme/", "acme/"},
		{"acme/", "acme/vm", "acme/vm"},
		{"acme/vm", "acme/", ""},
		{"acme/vm", "acme/vm2", ""},
		{"acme zeta", "zeta acme/vm", "zeta acme/vm"},
	} {
		scope, err := newScope(strings.Fields(c.issuer))
		if err != nil {
			t.Fatal(err)
		}
		is := &issuer{name: "i", most: methods.Client, scope: scope, roleClaim: "role", prefixesClaim: "prefixes"}
		caller, err := is.caller("s", map[string]any{"role": "client", "prefixes": c.token})
		switch {
		case c.want == "" && err == nil:
			t.Errorf("a token for %s of the issuer for %s is one for %v", c.token, c.issuer, caller.Scope)
		case c.want != "" && (err != nil || strings.Join(caller.Scope, " ") != c.want):
			t.Errorf("a token for %s of the issuer for %s: %+v, %v", c.token, c.issuer, caller, err)
		}
	}
	is := &issuer{name: "i", most: methods.Viewer, roleClaim: "role", prefixesClaim: "prefixes"}
	if caller, err := is.caller("s", map[string]any{"role": "operator"}); err != nil || caller.Role != methods.Viewer || caller.Name != "i#s" {
		t.Errorf("a token for more than the issuer may give: %+v, %v", caller, err)
	}
}

// recorder is a stream that keeps the messages sent, and receives a single message.
type recorder struct {
	grpc.ServerStream
	in   *samyav1.StreamRequest
	sent []*samyav1.StreamResponse
}

func (r *recorder) Context() context.Context     { return context.Background() }
func (r *recorder) SetHeader(metadata.MD) error  { return nil }
func (r *recorder) SendHeader(metadata.MD) error { return nil }

func (r *recorder) RecvMsg(m any) error {
	into := m.(*samyav1.StreamRequest)
	into.Calls = append(into.Calls[:0], r.in.GetCalls()...)
	return nil
}

func (r *recorder) SendMsg(m any) error {
	r.sent = append(r.sent, m.(*samyav1.StreamResponse))
	return nil
}

// TestSift: in a message of a stream, operations on entities of others are answered, each
// with its tag. The other operations go on, and all operations count.
func TestSift(t *testing.T) {
	now := time.Unix(0, 0)
	g, err := Open(Config{Limits: Limits{Rate: 3}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	stream := &recorder{in: &samyav1.StreamRequest{Calls: []*samyav1.Call{
		{Tag: 1, Operation: acquireOf("acme/vm")},
		{Tag: 2, Operation: acquireOf("acme2")},
		{Tag: 3, Operation: acquireOf("acme")},
		{Tag: 4, Operation: acquireOf("zeta")},
		{Tag: 5, Operation: acquireOf("acme/gpu")},
	}}}
	caller := &principal{Name: "c", Role: methods.Client, Scope: Scope{"acme"}}
	s := &session{guard: g, caller: caller, scope: caller.Scope, rule: methods.Rule{Least: methods.Client}}
	guarded := &guarded{ServerStream: stream, ctx: t.Context(), session: s}
	receive := func() (kept, answered []uint64, reason apierr.Reason) {
		stream.sent = nil
		in := &samyav1.StreamRequest{}
		if err := guarded.RecvMsg(in); err != nil {
			t.Fatal(err)
		}
		for _, c := range in.GetCalls() {
			kept = append(kept, c.GetTag())
		}
		for _, m := range stream.sent {
			for _, r := range m.GetReplies() {
				answered = append(answered, r.GetTag())
				reason = apierr.FromFailure(r.GetResult().GetFailure()).Reason
			}
		}
		return kept, answered, reason
	}
	if kept, answered, reason := receive(); fmt.Sprint(kept, answered) != "[1 3 5] [2 4]" || reason != apierr.PermissionDenied {
		t.Errorf("%d go on, %d are answered: %s", kept, answered, reason)
	}
	// Five operations at a rate of three a second: the caller owes two, and the next is
	// due after a second.
	now = now.Add(900 * time.Millisecond)
	if kept, answered, reason := receive(); len(kept) != 0 || len(answered) != 5 || reason != apierr.RateLimited {
		t.Errorf("%d go on, %d are answered: %s", kept, answered, reason)
	}
	now = now.Add(200 * time.Millisecond)
	if kept, _, _ := receive(); len(kept) != 3 {
		t.Errorf("%d go on", kept)
	}
}

// TestInFlight: a call has its place until it ends, however it ends.
func TestInFlight(t *testing.T) {
	g, err := Open(Config{Limits: Limits{InFlight: 1}})
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	info := &grpc.UnaryServerInfo{FullMethod: samyav1.TokenService_Acquire_FullMethodName}
	in := &samyav1.AcquireRequest{Entity: "acme"}
	for i, end := range []error{boom, nil, boom, nil} {
		_, err := g.Unary(t.Context(), in, info, func(ctx context.Context, _ any) (any, error) {
			if i < 2 {
				if _, err := g.Unary(ctx, in, info, nil); apierr.ReasonOf(err) != apierr.Overloaded {
					t.Errorf("a second call beside: %v", err)
				}
			}
			return nil, end
		})
		if !errors.Is(err, end) {
			t.Errorf("call %d: %v, want %v", i, err, end)
		}
	}
}

// TestNumbersJoin: the two lines of a change share a number that no other change has.
func TestNumbersJoin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	g, err := Open(Config{Audit: path})
	if err != nil {
		t.Fatal(err)
	}
	method, _ := methods.Of(samyav1.EntityService_UpdateEntity_FullMethodName)
	s := &session{guard: g, rule: method.Rule, caller: anonymous}
	for range 2 {
		if err := g.audited(s, &samyav1.UpdateEntityRequest{Name: "acme", Limit: 7, RequestId: "r"}, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	var numbers []uint64
	for _, line := range lines(t, path) {
		var r auditRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, r.Number)
	}
	if fmt.Sprint(numbers) != "[1 1 2 2]" {
		t.Errorf("the numbers are %d", numbers)
	}
}
