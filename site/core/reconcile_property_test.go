package core_test

import (
	"fmt"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"pgregory.net/rapid"
)

// office is a cluster with clients that may die, and an operator who counts what the
// others have.
type office struct {
	r *rig
	// parents are the parents of the entities; limits are their limits, which only grow.
	parents map[string]string
	limits  map[string]core.Tokens
	held    []grant
	ids     int
	// cuts are the cuts under way or taken, by entity; old are cuts to try again.
	cuts map[string]*truthfulCut
	old  []truthfulCut
}

// grant is what a client has.
type grant struct {
	entity string
	tokens core.Tokens
}

// truthfulCut is a cut with the operator's count: the tokens that were in use at any
// moment of the cut.
type truthfulCut struct {
	tally
	entity string
	inUse  core.Tokens
	sites  int
}

func (o *office) id() string {
	o.ids++
	return fmt.Sprint(o.ids)
}

// inUse are the tokens that clients have of an entity itself.
func (o *office) inUse(entity string) (n core.Tokens) {
	for _, g := range o.held {
		if g.entity == entity {
			n += g.tokens
		}
	}
	return n
}

// below are the tokens that clients have of an entity and of all below.
func (o *office) below(entity string) (n core.Tokens) {
	for _, g := range o.held {
		for at := g.entity; at != ""; at = o.parents[at] {
			if at == entity {
				n += g.tokens
			}
		}
	}
	return n
}

// check compares what clients have with the limits.
func (o *office) check(t *rapid.T, what string) {
	for name, limit := range o.limits {
		if n := o.below(name); n > limit {
			t.Fatalf("after %s, clients have %d of %q, of %d", what, n, name, limit)
		}
	}
}

// acquire has a client ask at a site.
func (o *office) acquire(t *rapid.T, site core.SiteID, entity string) {
	tokens := core.Tokens(rapid.IntRange(1, 12).Draw(t, "tokens"))
	if o.r.acquire(site, entity, tokens, o.id()).Code != answer.OK {
		return
	}
	o.held = append(o.held, grant{entity, tokens})
	if cut := o.cuts[entity]; cut != nil && cut.sites > 0 && cut.sites < len(o.r.names) {
		cut.inUse += tokens
	}
	o.check(t, "an acquire")
}

// end ends a grant: the client dies, or releases at a site.
func (o *office) end(t *rapid.T, site core.SiteID, dies bool) {
	if len(o.held) == 0 {
		return
	}
	at := rapid.IntRange(0, len(o.held)-1).Draw(t, "grant")
	g := o.held[at]
	o.held = append(o.held[:at:at], o.held[at+1:]...)
	if !dies {
		o.r.wantCode(o.r.release(site, g.entity, g.tokens, o.id()), answer.OK)
	}
}

// read goes on with the cut of an entity: sites are read at different times.
func (o *office) read(entity string) {
	cut := o.cuts[entity]
	if cut == nil {
		cut = &truthfulCut{entity: entity, inUse: o.inUse(entity)}
		o.cuts[entity] = cut
	}
	if cut.sites < len(o.r.names) {
		o.r.countAt(o.r.names[cut.sites], entity, &cut.tally)
		cut.sites++
	}
}

// reconcile ends a cut with what the operator has counted, or more.
func (o *office) reconcile(t *rapid.T, site core.SiteID, entity string) {
	cut := o.cuts[entity]
	if cut == nil || cut.sites < len(o.r.names) {
		return
	}
	delete(o.cuts, entity)
	if cut.mixed {
		return
	}
	o.old = append(o.old, *cut)
	more := core.Tokens(rapid.SampledFrom([]int{0, 0, 0, 3}).Draw(t, "too high"))
	o.r.changeAsync(site, cut.truth(entity, cut.inUse+more, o.id()))
}

// again tries a cut that was used before.
func (o *office) again(t *rapid.T, site core.SiteID) {
	if len(o.old) == 0 {
		return
	}
	cut := rapid.SampledFrom(o.old).Draw(t, "old")
	o.r.changeAsync(site, cut.truth(cut.entity, cut.inUse, o.id()))
}

// move puts an entity elsewhere, and waits until all sites know.
func (o *office) move(t *rapid.T, entity string) {
	parent := rapid.SampledFrom([]string{"", "p", "q"}).Draw(t, "parent")
	if entity == "p" || entity == "q" {
		return
	}
	// A parent's limit does not bind what is moved below it.
	if parent != "" && parent != o.parents[entity] && o.below(parent)+o.below(entity) > o.limits[parent] {
		return
	}
	o.parents[entity] = parent
	for o.r.view("a", entity).Parent != parent || o.r.view("b", entity).Parent != parent || o.r.view("c", entity).Parent != parent {
		o.r.changeAsync("a", input.Change{Kind: input.MoveEntity, Name: entity, Parent: parent, RequestID: o.id()})
		o.r.advance(500)
	}
}

// TestReconcileAtRandom: whatever clients do meanwhile, and however many die, no more is in
// use than the limit as long as the operator counts all that was in use at any moment of
// the cut. Once nothing moves, reconciling makes all books tell the truth.
func TestReconcileAtRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := &office{
			r: newRig(t, 3, nil), parents: map[string]string{}, limits: map[string]core.Tokens{}, cuts: map[string]*truthfulCut{},
		}
		names := []string{"p", "q", "x", "y"}
		for i, name := range names {
			o.limits[name] = core.Tokens(40 - 5*i)
			o.r.create(name, o.limits[name])
		}
		sites := rapid.SampledFrom(o.r.names)
		for range rapid.IntRange(1, 60).Draw(rt, "actions") {
			site, entity := sites.Draw(rt, "site"), rapid.SampledFrom(names).Draw(rt, "entity")
			switch rapid.IntRange(0, 14).Draw(rt, "action") {
			case 0, 1, 2:
				o.acquire(rt, site, entity)
			case 3, 4:
				o.end(rt, site, false)
			case 5:
				o.end(rt, site, true)
			case 6, 7, 8:
				o.read(entity)
			case 9, 10:
				o.reconcile(rt, site, entity)
			case 11:
				o.move(rt, entity)
			case 12:
				o.again(rt, site)
			case 13:
				o.limits[entity] += 5
				o.r.changeAsync(site, input.Change{Kind: input.SetLimit, Name: entity, Limit: o.limits[entity], RequestID: o.id()})
			default:
				o.r.advance(core.Tick(rapid.IntRange(1, 1500).Draw(rt, "time")))
			}
		}
		o.r.advance(20_000)
		if n := o.r.count(event.SurplusFound); n != 0 {
			rt.Fatalf("a surplus was found %d times", n)
		}
		for _, name := range names {
			cut := o.r.cutOf(name)
			o.r.wantCode(o.r.changed("a", cut.truth(name, o.inUse(name), o.id())), answer.OK)
		}
		o.r.advance(20_000)
		for _, name := range names {
			limit := o.r.view("a", name).Limit
			if left, offered, net := o.r.books(name); net != o.below(name) || left+offered+net != limit {
				rt.Fatalf("%q: %d left, %d offered, %d out, clients have %d, the limit is %d", name, left, offered, net, o.below(name), limit)
			}
		}
		if o.r.t.Failed() {
			rt.Fatal("see above")
		}
	})
}
