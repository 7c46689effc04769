package core_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/rescue"
	"pgregory.net/rapid"
)

// wreck is a cluster with clients, of which some sites are lost and rescued.
type wreck struct {
	office
	// lent are the leases that clients count on, asked the acquires that wait.
	lent  []lent
	asked []askedFor
	// lost is the data of the sites that were lost, calls the rescues under way.
	lost  map[core.SiteID]*stored.Restored
	calls map[input.Call]rescueOf
	// done are the rescues that all sites have applied.
	done map[rescueOf]bool
}

type lent struct {
	grant
	until core.Tick
}

type askedFor struct {
	grant
	call input.Call
}

type rescueOf struct {
	site   core.SiteID
	entity string
}

// look takes up the answers, and the ends of leases by their holders' clocks.
func (w *wreck) look(t *rapid.T, what string) {
	w.asked = slices.DeleteFunc(w.asked, func(a askedFor) bool {
		got, answered := w.r.answers[a.call]
		if answered && got.Code == answer.OK {
			w.held = append(w.held, a.grant)
		}
		return answered
	})
	for call, of := range w.calls {
		if got, answered := w.r.answers[call]; answered {
			delete(w.calls, call)
			if got.Code == answer.OK && len(got.Unapplied()) == 0 {
				w.done[of] = true
			}
		}
	}
	w.lent = slices.DeleteFunc(w.lent, func(l lent) bool { return l.until <= w.r.now.Tick })
	plain := w.held
	for _, l := range w.lent {
		w.held = append(slices.Clip(w.held), l.grant)
	}
	w.check(t, what)
	w.held = plain
}

// ask has a client ask for more than a site may have left.
func (w *wreck) ask(t *rapid.T, site core.SiteID, entity string) {
	g := grant{entity, core.Tokens(rapid.IntRange(1, 40).Draw(t, "tokens"))}
	w.asked = append(w.asked, askedFor{g, w.r.acquireAsync(site, entity, g.tokens, w.id(), 3000)})
}

func (w *wreck) lend(t *rapid.T, site core.SiteID, entity string) {
	tokens, ttl := core.Tokens(rapid.IntRange(1, 9).Draw(t, "tokens")), core.Tick(rapid.IntRange(1000, 30_000).Draw(t, "ttl"))
	call, lease := w.r.nextCall(), w.id()
	w.r.step(site, &input.Acquire{
		Call: call, Entity: entity, Tokens: tokens, Request: key(lease), Lease: &input.LeaseTerms{ID: lease, TTL: ttl, Holder: "h"},
	})
	if w.r.answer(call).Code == answer.OK {
		w.lent = append(w.lent, lent{grant{entity, tokens}, w.r.now.Tick + ttl})
	}
}

// lose writes a site off that is cut off and serves its clients. It stops some time later.
func (w *wreck) lose(t *rapid.T, site core.SiteID) {
	w.r.cut[site] = true
	w.r.advance(core.Tick(rapid.IntRange(1, 3000).Draw(t, "cut off")))
	rest := w.r.remaining(site)
	decided := false
	for !decided {
		call := w.r.changeAsync(rest[0], input.Change{Kind: input.LoseSite, Name: string(site), RequestID: w.id()})
		w.r.advance(6000)
		decided = w.r.answer(call).Code == answer.OK
	}
	for range rapid.IntRange(0, 4).Draw(t, "alive") {
		w.acquire(t, site, rapid.SampledFrom(wreckEntities).Draw(t, "entity"))
	}
	w.r.names = rest
	data := w.r.data(site)
	w.lost[site] = &data
	w.look(t, "a loss")
}

// rescue asks for the rescue of an entity, once those below are rescued.
func (w *wreck) rescue(t *rapid.T, at core.SiteID, entity string) {
	of := rescueOf{rapid.SampledFrom([]core.SiteID{"d", "e"}).Draw(t, "lost"), entity}
	if w.lost[of.site] == nil {
		return
	}
	w.begin(at, of)
}

// begin asks for a rescue, if the order allows it: parts above zero come from the bottom
// up, parts below zero behind those of the entities above.
func (w *wreck) begin(at core.SiteID, of rescueOf) {
	data := w.lost[of.site]
	net := func(entity string) core.Tokens {
		return rescue.Estates(data, 0, 0)[w.r.view(at, entity).Generation].Net
	}
	for child, parent := range w.parents {
		if parent == of.entity && net(child) > 0 && !w.done[rescueOf{of.site, child}] ||
			child == of.entity && net(child) < 0 && !w.done[rescueOf{of.site, parent}] {
			return
		}
	}
	w.calls[w.r.rescueAsync(at, of.site, data, of.entity, w.id())] = of
}

var wreckEntities = []string{"x", "y", "p", "q"}

// TestRescueAtRandom: whatever clients do meanwhile, and however often the rescue of lost
// sites is begun, cut off by crashes and repeated, no more is in use than the limits. Once
// all is rescued the books tell the truth, and nothing is written off.
func TestRescueAtRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(4, 5).Draw(rt, "sites")
		mode := rapid.SampledFrom([]string{"majority", "star"}).Draw(rt, "protocol")
		w := &wreck{
			office: office{
				r:       newRig(t, n, func(c *core.Config) { c.Retention, c.Protocol = leavingRetention, mode }),
				parents: map[string]string{"x": "p", "y": "p"},
				limits:  map[string]core.Tokens{"p": 100, "q": 40, "x": 60, "y": 50}, cuts: map[string]*truthfulCut{},
			},
			lost: map[core.SiteID]*stored.Restored{}, calls: map[input.Call]rescueOf{}, done: map[rescueOf]bool{},
		}
		for _, name := range []string{"p", "q", "x", "y"} {
			call := w.r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: name, Limit: w.limits[name], Parent: w.parents[name], RequestID: w.id()})
			w.r.advance(2000)
			w.r.wantCode(w.r.answer(call), answer.OK)
		}
		act := func(actions string) {
			for range rapid.IntRange(1, 25).Draw(rt, actions) {
				site, entity := rapid.SampledFrom(w.r.names).Draw(rt, "site"), rapid.SampledFrom(wreckEntities).Draw(rt, "entity")
				switch rapid.IntRange(0, 10).Draw(rt, "action") {
				case 0, 1:
					w.acquire(rt, site, entity)
				case 2:
					w.end(rt, site, false)
				case 3:
					w.ask(rt, site, entity)
				case 4:
					w.lend(rt, site, entity)
				case 5:
					if !w.r.cut[site] {
						w.r.restart(site)
					}
				case 6, 7:
					w.rescue(rt, site, entity)
				default:
					w.r.advance(core.Tick(rapid.IntRange(1, 800).Draw(rt, "time")))
				}
				w.look(rt, actions)
			}
		}
		act("before")
		w.lose(rt, "d")
		act("after a loss")
		if n == 5 {
			w.lose(rt, "e")
			act("after two losses")
		}
		for round := 0; len(w.done) < len(w.lost)*len(wreckEntities); round++ {
			if round == 40 {
				rt.Fatalf("the rescue does not end: %v are done", w.done)
			}
			act("rescue")
			w.r.advance(3000)
			for _, site := range slices.Sorted(maps.Keys(w.lost)) {
				for _, entity := range wreckEntities {
					w.begin("a", rescueOf{site, entity})
				}
			}
			w.r.advance(5000)
			w.look(rt, "a round")
		}
		for _, site := range slices.Sorted(maps.Keys(w.lost)) {
			w.r.wantCode(w.r.rescueSite("a", site, w.id()), answer.OK)
		}
		w.r.advance(90_000)
		w.look(rt, "the end")
		for _, name := range wreckEntities {
			v := w.r.view("a", name)
			if left, offered, net := w.r.books(name); net != w.below(name) || left+offered+net != v.Limit || v.WrittenOff != 0 {
				rt.Fatalf("%q: %d left, %d offered, %d out, %d written off, %d surplus, %d owed; clients have %d, the limit is %d",
					name, left, offered, net, v.WrittenOff, v.Surplus, v.Debt, w.below(name), v.Limit)
			}
		}
		if n := w.r.count(event.SurplusFound); n != 0 {
			rt.Fatalf("a surplus was found %d times", n)
		}
		if w.r.t.Failed() {
			rt.Fatal("see above")
		}
	})
}
