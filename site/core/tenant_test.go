package core_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
)

// TestTenants: a tenant that takes all that it can get of the table of requests leaves
// room for the others, is refused first, and memory comes back.
func TestTenants(t *testing.T) {
	r := newRig(t, 1, func(c *core.Config) { c.Retention, c.MaxRequests = 10_000, 64 })
	for _, name := range []string{"acme/a", "acme/b", "beta/vm", "coop"} {
		r.create(name, 1000)
	}
	n := 0
	for ; n < 64; n++ {
		// Entities below the same first segment are a single tenant.
		a := r.acquire("a", []string{"acme/a", "acme/b"}[n%2], 1, id("x", n))
		if a.Code != answer.OK {
			if a.Code != answer.Overloaded || a.RetryAfter != 1000 {
				t.Errorf("refused with %+v", a)
			}
			break
		}
	}
	if n != 56 {
		t.Errorf("a tenant alone has %d requests remembered of 64, want 56", n)
	}
	if refused := r.count(event.TenantRefused); refused != 1 {
		t.Errorf("%d refusals are told as the tenant's, want 1", refused)
	}
	for range 2 {
		r.wantCode(r.release("a", "acme/a", 1, "full"), answer.Overloaded)
		r.wantCode(r.all("a", "full", part("acme/a", 1), part("coop", 1)), answer.Overloaded)
		// A remembered request is answered.
		r.wantCode(r.acquire("a", "acme/b", 1, id("x", 1)), answer.OK)
	}
	for i := range 4 {
		r.wantCode(r.acquire("a", "beta/vm", 1, id("b", i)), answer.OK)
	}
	r.wantCode(r.all("a", "all", part("coop", 1), part("acme/a", 1)), answer.OK)
	r.wantCode(r.release("a", "coop", 1, "c"), answer.OK)
	// The table is now full for everybody.
	before := r.count(event.TenantRefused)
	for _, name := range []string{"acme/a", "beta/vm", "coop"} {
		r.wantCode(r.acquire("a", name, 1, "full"), answer.Overloaded)
	}
	if refused := r.count(event.TenantRefused) - before; refused != 0 {
		t.Errorf("%d refusals of a full table are told as a tenant's", refused)
	}
	held := func(want ...int) {
		t.Helper()
		for i, tenant := range []string{"acme", "beta", "coop"} {
			if got, _ := r.cores["a"].Held(tenant); got != want[i] {
				t.Errorf("%s has %d, want %d", tenant, got, want[i])
			}
		}
	}
	held(56, 4, 4)
	r.restart("a")
	held(56, 4, 4)
	r.wantCode(r.acquire("a", "beta/vm", 1, "full"), answer.Overloaded)
	r.advance(10_100)
	for range 3 {
		r.acquire("a", "nothing", 1, "sweeps")
	}
	held(0, 0, 0)
	if _, tenants := r.cores["a"].Held(""); tenants != 0 {
		t.Errorf("%d tenants take memory that have nothing", tenants)
	}
	r.wantCode(r.acquire("a", "acme/a", 1, "full"), answer.OK)
	held(1, 0, 0)
}

// TestTenantsCatchUp: a tenant that comes late gets up to an equal part while the other
// tenant, which has more, waits for its records to go.
func TestTenantsCatchUp(t *testing.T) {
	r := newRig(t, 1, func(c *core.Config) { c.Retention, c.MaxRequests = 1000, 90 })
	r.create("acme/a", 100_000)
	r.create("beta/b", 100_000)
	late := 0
	for i := range 5000 {
		r.advance(2)
		r.acquire("a", "acme/a", 1, id("a", i))
		r.acquire("a", "acme/a", 1, id("a2", i))
		if i%50 == 0 {
			r.wantCode(r.acquire("a", "beta/b", 1, id("b", i)), answer.OK)
			late++
		}
	}
	if late != 100 {
		t.Errorf("%d of 100", late)
	}
}

// TestTenantSegments: the tenants of names, by the number of segments.
func TestTenantSegments(t *testing.T) {
	for _, tc := range []struct {
		segments int
		name     string
		want     string
	}{
		{0, "acme/team/vm", "acme"},
		{1, "acme/team/vm", "acme"},
		{2, "acme/team/vm", "acme/team"},
		{3, "acme/team/vm", "acme/team/vm"},
		{4, "acme/team/vm", "acme/team/vm"},
		{1, "acme", "acme"},
		{2, "acme", "acme"},
		{2, "acme/team", "acme/team"},
	} {
		r := newRig(t, 1, func(c *core.Config) { c.TenantSegments = tc.segments })
		r.create(tc.name, 10)
		r.wantCode(r.acquire("a", tc.name, 1, "x"), answer.OK)
		if held, tenants := r.cores["a"].Held(tc.want); held != 1 || tenants != 1 {
			t.Errorf("%d segments of %s: %s has %d, there are %d tenants", tc.segments, tc.name, tc.want, held, tenants)
		}
	}
}

// TestTenantsWait: a tenant's waiting acquires leave places for another tenant.
func TestTenantsWait(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.MaxWaiting, c.MaxWaitingAll = 100, 16 })
	r.create("acme/a", 3)
	r.create("beta/b", 3)
	r.cut["a"] = true
	r.wantCode(r.acquire("a", "acme/a", 1, "all of it"), answer.OK)
	r.wantCode(r.acquire("a", "beta/b", 1, "all of the other"), answer.OK)
	for i := range 14 {
		r.unanswered(r.acquireAsync("a", "acme/a", 1, id("w", i), 5000))
	}
	r.wantCode(r.answer(r.acquireAsync("a", "acme/a", 1, "over", 5000)), answer.QueueFull)
	for i := range 2 {
		r.unanswered(r.acquireAsync("a", "beta/b", 1, id("v", i), 5000))
	}
	r.wantCode(r.answer(r.acquireAsync("a", "beta/b", 1, "full", 5000)), answer.QueueFull)
	if got := r.cores["a"].HeldAll(); got != [3]int{18, 16, 0} {
		t.Errorf("counted are %v", got)
	}
	r.advance(6000)
	if got := r.cores["a"].HeldAll(); got != [3]int{18, 0, 0} {
		t.Errorf("once all are refused, counted are %v", got)
	}
}

// TestTenantsWaitAbove: where entities of several tenants stand below another entity, a
// tenant's acquires that wait for the upper entity leave places for another tenant.
func TestTenantsWaitAbove(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.MaxWaiting = 16 })
	r.create("pool", 3)
	r.below("acme/a", "pool", 300)
	r.below("beta/b", "pool", 300)
	r.cut["a"] = true
	r.wantCode(r.acquire("a", "acme/a", 1, "all of it"), answer.OK)
	for round := range 2 {
		var calls []input.Call
		for i := range 14 {
			calls = append(calls, r.acquireAsync("a", "acme/a", 1, fmt.Sprint(round, "w", i), 5000))
			r.unanswered(calls[i])
		}
		over := r.answer(r.acquireAsync("a", "acme/a", 1, fmt.Sprint(round, "over"), 5000))
		if over.Code != answer.QueueFull || over.Lacking != "pool" {
			t.Errorf("one more is answered %+v", over)
		}
		for i := range 2 {
			r.unanswered(r.acquireAsync("a", "beta/b", 1, fmt.Sprint(round, "v", i), 5000))
		}
		r.wantCode(r.answer(r.acquireAsync("a", "beta/b", 1, fmt.Sprint(round, "full"), 5000)), answer.QueueFull)
		// A cancelled acquire leaves a place, but not the tenant's last.
		r.step("a", &input.Cancel{Call: calls[0]})
		r.wantCode(r.answer(r.acquireAsync("a", "acme/a", 1, fmt.Sprint(round, "again"), 5000)), answer.QueueFull)
		r.unanswered(r.acquireAsync("a", "beta/b", 1, fmt.Sprint(round, "third"), 5000))
		// A tenant that cancelled its acquires has few again.
		for _, call := range calls[:12] {
			r.step("a", &input.Cancel{Call: call})
		}
		for i := range 9 {
			r.unanswered(r.acquireAsync("a", "beta/b", 1, fmt.Sprint(round, "more", i), 5000))
		}
		r.unanswered(r.acquireAsync("a", "acme/a", 1, fmt.Sprint(round, "after"), 5000))
		r.advance(6000)
		if n := r.cores["a"].Status().Waiting; n != 0 {
			t.Fatalf("%d wait", n)
		}
	}
}

// TestTenantsWatch: the watchers of a tenant's entities leave places for another tenant.
func TestTenantsWatch(t *testing.T) {
	r := newRig(t, 1, func(c *core.Config) { c.MaxWatchers = 16 })
	for _, name := range []string{"acme/a", "acme/b", "beta/b"} {
		r.create(name, 100)
	}
	var calls []input.Call
	watch := func(name string) input.Call {
		return r.watch("a", name, r.answer(r.watch("a", name, 0)).Revision)
	}
	for i := range 14 {
		calls = append(calls, watch([]string{"acme/a", "acme/b"}[i%2]))
		r.unanswered(calls[i])
	}
	r.wantCode(r.answer(watch("acme/a")), answer.Overloaded)
	r.unanswered(watch("beta/b"))
	r.step("a", &input.Cancel{Call: calls[0]})
	r.acquire("a", "acme/a", 1, "x")
	if got := r.cores["a"].HeldAll(); got != [3]int{1, 0, 8} {
		t.Errorf("counted are %v", got)
	}
	r.change("a", input.DeleteEntity, "acme/b", 0, "gone")
	r.wantCode(r.answer(calls[1]), answer.OK)
	r.step("a", input.Stop{})
	if got := r.cores["a"].HeldAll(); got != [3]int{1, 0, 0} {
		t.Errorf("after the last, counted are %v", got)
	}
}

// TestTenantsAreCountedRight makes requests of all kinds, of tenants below each other's
// entities, under bounds that refuse some, over restarts and retention, and counts each
// tenant's part anew.
func TestTenantsAreCountedRight(t *testing.T) {
	refused, waited := 0, 0
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		r := newRig(t, 2, func(c *core.Config) {
			c.Retention, c.Skew, c.MaxRequests, c.MaxWaitingAll = 3000, 1, 30+int(seed)*4, 12
		})
		tenants := []string{"acme", "beta", "coop"}
		r.create("shared/pool", 60)
		names := []string{"shared/pool"}
		for _, tenant := range tenants {
			r.below(tenant+"/below", "shared/pool", 40)
			r.create(tenant+"/alone", 30)
			names = append(names, tenant+"/below", tenant+"/alone")
		}
		tenantOf := make(map[attempt.Key]string)
		check := func(when string) {
			t.Helper()
			c := r.cores["a"]
			all, want := 0, c.Recount(func(k attempt.Key) string { return tenantOf[k] })
			for tenant, n := range want {
				if got, _ := c.Held(tenant); got != n {
					t.Fatalf("seed %d, %s: %s has %d, counted are %d", seed, when, tenant, n, got)
				}
				all += n
			}
			if _, holders := c.Held(""); holders != len(want) || c.HeldAll()[0] != all || c.HeldAll()[1] != c.Status().Waiting {
				t.Fatalf("seed %d, %s: %d tenants have %d, counted are %d of %d; %d wait of %d",
					seed, when, len(want), all, holders, c.HeldAll()[0], c.Status().Waiting, c.HeldAll()[1])
			}
		}
		for range 600 {
			// Few ids, so that many are repeated or used with another body.
			name, other := names[rnd.IntN(len(names))], names[rnd.IntN(len(names))]
			request := fmt.Sprint("r", rnd.IntN(400))
			k := key(request)
			tenant, _, _ := strings.Cut(name, "/")
			if _, known := tenantOf[k]; !known {
				tenantOf[k] = tenant
			} else if tenantOf[k] != tenant {
				continue
			}
			wait := core.Tick(rnd.IntN(2) * rnd.IntN(800))
			call := r.nextCall()
			tokens := core.Tokens(1 + rnd.IntN(12))
			var in input.Input
			switch rnd.IntN(6) {
			case 0, 1:
				in = &input.Acquire{Call: call, Entity: name, Tokens: tokens, Request: k, Wait: wait}
			case 2:
				in = &input.AcquireAll{Call: call, Parts: []input.Part{part(name, 1), part(other, tokens)}, Request: k, Wait: wait}
			case 3:
				tries := input.Tries{
					Attempt: attempt.Of(uint32(1+rnd.IntN(3)), 0), NotAfter: r.now.Wall + 2000, Tried: r.names[1:][:rnd.IntN(2)],
				}
				if tries.Attempt == attempt.Of(1, 0) {
					tries.Tried = nil
				}
				in = &input.Acquire{Call: call, Entity: name, Tokens: tokens, Request: k, Wait: wait, Tries: tries}
			case 4:
				in = &input.Release{Call: call, Entity: name, Tokens: tokens, Request: k, Tries: input.Tries{
					Attempt: attempt.Of(uint32(2+rnd.IntN(2)), 0), NotAfter: r.now.Wall + 2000, Tried: r.names[1:][:rnd.IntN(2)],
				}}
			default:
				in = &input.Release{Call: call, Entity: name, Tokens: tokens, Request: k}
			}
			r.step("a", in)
			if _, answered := r.answers[call]; !answered {
				waited++
			}
			check("after a request")
			switch rnd.IntN(40) {
			case 0:
				r.advance(core.Tick(rnd.IntN(3500)))
				check("after a while")
			case 1:
				r.restart("a")
				r.advance(3000)
				check("after a restart")
			case 2:
				r.cut["b"] = !r.cut["b"]
			case 3:
				r.step("a", &input.Cancel{Call: r.calls - rnd.IntN(9)})
				check("after a cancel")
			default:
				r.advance(core.Tick(rnd.IntN(60)))
			}
		}
		refused += r.count(event.TenantRefused)
		clear(r.cut)
		for range 8 {
			r.advance(4000)
			r.acquire("a", "nothing", 1, "sweeps")
		}
		check("in the end")
		if got := r.cores["a"].HeldAll(); got != [3]int{} {
			t.Fatalf("seed %d: in the end counted are %v", seed, got)
		}
	}
	t.Logf("%d refused, %d waited", refused, waited)
	if refused < 50 || waited < 50 {
		t.Errorf("%d were refused for their tenant's part, %d waited", refused, waited)
	}
}
