package core_test

import (
	"runtime"
	"testing"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"pgregory.net/rapid"
)

// leaseWorld is a rig with the clients' knowledge of their leases.
type leaseWorld struct {
	*rig
	// granted are the tokens of each lease by its id, at its site, kept the committed
	// tokens by site.
	granted map[string]core.Tokens
	at      map[string]core.SiteID
	kept    map[core.SiteID]core.Tokens
	ids     []string
	n       int
	// held are the tokens of each lease as last found on a disk, seen all leases ever
	// found.
	held map[string]core.Tokens
	seen map[string]bool
}

// check compares the leases on each disk with the clients' knowledge.
func (w *leaseWorld) check() {
	w.t.Helper()
	now := map[string]core.Tokens{}
	for _, site := range w.names {
		restored, err := w.disks[site].Load()
		if err != nil {
			w.t.Fatal(err)
		}
		var held core.Tokens
		for _, l := range restored.Leases {
			held += l.Tokens
			before, was := w.held[l.ID]
			switch {
			case l.Tokens < 1 || l.Tokens > w.granted[l.ID] || was && l.Tokens > before:
				w.t.Fatalf("lease %+v of %d, held %d before", l, w.granted[l.ID], before)
			case !was && w.seen[l.ID]:
				w.t.Fatalf("lease %+v had ended", l)
			}
			now[l.ID], w.seen[l.ID] = l.Tokens, true
		}
		for _, b := range restored.Books {
			if b.Name == "e" && b.Net != held+w.kept[site] {
				w.t.Fatalf("%s: %d out, leases hold %d, %d were committed", site, b.Net, held, w.kept[site])
			}
		}
	}
	w.held = now
}

func (w *leaseWorld) id() string {
	w.n++
	return id("l", w.n)
}

// TestLeasesGiveBackOnce: clients do anything with leases, and sites go down at any time.
// The tokens out are the tokens that leases hold and the committed tokens. In the end
// they are the committed tokens, and all other tokens are there.
func TestLeasesGiveBackOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const limit = 60
		n := rapid.SampledFrom([]int{1, 3}).Draw(rt, "sites")
		w := &leaseWorld{
			rig:     newRig(t, n, nil),
			granted: map[string]core.Tokens{}, at: map[string]core.SiteID{}, kept: map[core.SiteID]core.Tokens{},
			held: map[string]core.Tokens{}, seen: map[string]bool{},
		}
		w.create("e", limit)
		waiting := map[input.Call]string{}
		collect := func() {
			for call, id := range waiting {
				if a, ok := w.answers[call]; ok {
					delete(waiting, call)
					if a.Code == answer.OK {
						w.granted[id] = a.Tokens
						w.ids = append(w.ids, id)
					}
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			site := rapid.SampledFrom(w.names).Draw(rt, "site")
			var lease string
			if len(w.ids) > 0 {
				lease = rapid.SampledFrom(w.ids).Draw(rt, "lease")
				site = w.at[lease]
			}
			call := w.nextCall()
			tokens := core.Tokens(rapid.IntRange(0, 25).Draw(rt, "tokens"))
			switch op := rapid.SampledFrom([]string{
				"acquire", "acquire", "renew", "commit", "release", "advance", "advance", "restart", "lost", "cut",
			}).Draw(rt, "op"); {
			case op == "acquire":
				lease = w.id()
				site = rapid.SampledFrom(w.names).Draw(rt, "site")
				w.at[lease] = site
				waiting[call] = lease
				w.granted[lease] = tokens
				w.step(site, &input.Acquire{
					Call: call, Entity: "e", Tokens: max(1, tokens), Least: 1, Request: key(lease),
					Wait:  core.Tick(rapid.SampledFrom([]int{0, 500}).Draw(rt, "wait")),
					Lease: &input.LeaseTerms{ID: lease, TTL: core.Tick(rapid.IntRange(1, 3000).Draw(rt, "ttl"))},
				})
			case op == "cut":
				w.cut[site] = !w.cut[site]
			case op == "advance":
				w.advance(core.Tick(rapid.IntRange(0, 2000).Draw(rt, "time")))
			case op == "restart":
				w.now.Wall += int64(rapid.IntRange(-2000, 2000).Draw(rt, "down"))
				w.restart(site)
			case lease == "":
			case op == "renew":
				w.step(site, &input.RenewLease{Call: call, Lease: key(lease), TTL: core.Tick(rapid.IntRange(0, 3000).Draw(rt, "ttl"))})
			case op == "commit":
				request := w.id()
				w.step(site, &input.CommitLease{Call: call, Lease: key(lease), Tokens: tokens, Request: key(request)})
				if a := w.answer(call); a.Code == answer.OK {
					w.kept[site] += a.Tokens
					again := w.commit(site, lease, tokens, request)
					if again.Tokens != a.Tokens || again.Returned != a.Returned {
						rt.Fatalf("committed %+v, repeated %+v", a, again)
					}
				}
			case op == "release":
				request := w.id()
				a := w.giveBack(site, "e", lease, tokens, request)
				if again := w.giveBack(site, "e", lease, tokens, request); a.Code == answer.OK && again.Tokens != a.Tokens {
					rt.Fatalf("gave back %+v, repeated %+v", a, again)
				}
			default:
				// A stepped and never committed input was not done.
				w.cores[site].Step(w.now, &input.CommitLease{Call: call, Lease: key(lease), Request: key(w.id())})
				w.restart(site)
			}
			collect()
			w.check()
		}
		clear(w.cut)
		w.advance(40_000)
		w.check()
		var kept core.Tokens
		for _, k := range w.kept {
			kept += k
		}
		left, offered, net := w.books("e")
		if len(w.held) > 0 || net != kept || left+offered+net != limit {
			rt.Fatalf("%d left, %d offered, %d out; %d were committed, leases %v", left, offered, net, kept, w.held)
		}
	})
}

// TestMemoryOfLeases measures the memory of a lease.
func TestMemoryOfLeases(t *testing.T) {
	race.OneGoroutine(t)
	const n = 100_000
	r := newRig(t, 1, func(c *core.Config) { c.Retention = 1 })
	r.create("e", input.MaxTokens)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	c := r.cores["a"]
	var out core.Effects
	before := heap()
	for i := range n {
		r.now.Tick, r.now.Wall = r.now.Tick+1, r.now.Wall+1
		name := id("01ARZ3NDEKTSV4RRFF", 1_000_000+i)
		c.Step(r.now, &input.Acquire{Entity: "e", Tokens: 1, Request: key(name), Lease: &input.LeaseTerms{
			ID: name, TTL: input.MaxTTL, Holder: id("holder", i%1000),
		}})
		c.Drain(&out)
		out.Reset()
	}
	each := (heap() - before) / n
	t.Logf("a lease takes %d bytes", each)
	if got := c.Status().Leases; got != n || each > 500 {
		t.Errorf("%d leases, %d bytes each", got, each)
	}
}
