package sim

import (
	"fmt"
	"slices"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// A run with rates may have a tree of rate quotas, of which a level may be an allocation:
// an entity that is no rate quota. Clients draw from all levels. A draw counts at each level
// above, as the site that granted it has the tree: in a window or interval of a rate quota,
// and at an allocation until it is released. All is judged by the answers alone.

// treeNames is how the names of a tree's levels begin.
const treeNames = rateNames + "-tree"

// addRateTree adds a tree of rate quotas, each below the one before.
func (s *sim) addRateTree() {
	allocates, levels := false, 2+s.r.IntN(3)
	for i := range levels {
		name := fmt.Sprintf("%s%d", treeNames, i)
		s.treeLevels = append(s.treeLevels, name)
		switch {
		case !allocates && s.chance(300) || i == levels-1 && i > 0 && len(s.rates) == 0:
			allocates = true // an allocation
		case !allocates && i == levels-1 && s.chance(300):
			s.rates[name] = s.templateTerms()
		default:
			durable := s.chance(500)
			t, err := rates.Parse(string(kinds[s.r.IntN(len(kinds))]), periods[s.r.IntN(len(periods))], "", &durable)
			if err != nil {
				panic(err)
			}
			s.rates[name] = t
		}
	}
	s.drawn = append(s.drawn, s.treeLevels...)
}

// growTree has a level of the tree created, and then those below.
func (s *sim) growTree(level int) {
	if level == len(s.treeLevels) || s.now >= s.faultsEnd-s.load.quiet {
		return
	}
	// Most acquires of a level below lack tokens above.
	p := &op{kind: create, entity: s.treeLevels[level], limit: core.Tokens(5+s.r.IntN(40)) << level, wait: 5 * second, site: -1}
	if level > 0 {
		p.parent = s.treeLevels[level-1]
	}
	p.then = func(a *answer.Answer) {
		if a != nil && (a.Code == answer.OK || a.Code == answer.Exists) {
			level++
		}
		s.after(200*millisecond, func() { s.growTree(level) })
	}
	s.issue(p)
}

// inTree reports whether an entity is a level of the tree.
func (s *sim) inTree(name string) bool { return slices.Contains(s.treeLevels, name) }

// drewAbove are the levels above a part of a draw that was granted, to be judged.
func (o *observer) drewAbove(n *node, p input.Part, r *stored.Records, before map[string]int64, of *reservation) (judge []func()) {
	base := n.drained.entityOf(p.Entity)
	if !o.s.inTree(base) || r.Catalogue != nil {
		// The tree may have changed since.
		return nil
	}
	for i, above := range n.drained.chain(base) {
		if i > 0 {
			o.s.report.DrawsBelow++
			judge = append(judge, o.drewOf(n, above, above, p.Tokens, before, of)...)
		}
	}
	return judge
}

// allocated are tokens of an allocation in the tree that a draw has got, to be judged. Clients
// release some of them.
func (o *observer) allocated(n *node, name string, tokens core.Tokens, of *reservation) []func() {
	id := sequenceID{name, n.drained.Entities[name].Generation}
	return []func(){func() {
		if o.allocations[id] += tokens; of != nil {
			o.reserved[id] += tokens
			of.reservesAt(id, "", 0)
		}
		q := o.sequence(id)
		if o.s.tracing {
			o.s.note("%s: %d tokens of %v more are out, %d in all, %d in leases", n.id, tokens, id, o.allocations[id], o.reserved[id])
		}
		if most := o.mostOf(q); q.limits != nil && o.allocations[id] > most {
			o.s.fail(OverGrant, "%v: %d tokens are out, the limit is at most %d", id, o.allocations[id], most)
		}
	}}
}

// giveDrawn has a client release tokens of an allocation in the tree, by its name or that of a
// level below, at a site that knows the same entity.
func (s *sim) giveDrawn() {
	if len(s.treeLevels) == 0 {
		return
	}
	n, at := s.nodes[s.someSite()], s.r.IntN(len(s.treeLevels))
	if !n.up || n.out || n.stale != nil {
		return
	}
	for _, above := range n.drained.chain(s.treeLevels[at]) {
		_, isRate := s.rates[above]
		id := sequenceID{above, n.drained.Entities[above].Generation}
		if out := s.observe.allocations[id] - s.observe.reserved[id]; !isRate && out > 0 {
			tokens := 1 + core.Tokens(s.r.Int64N(int64(out)))
			s.observe.allocations[id] -= tokens
			if s.tracing {
				s.note("%s is handed a release of %d tokens of %v", n.id, tokens, id)
			}
			s.report.DrawsGiven++
			n.step(&input.Release{Call: &draw{back: true}, Request: s.drawKey(), Entity: s.treeLevels[at], Tokens: tokens})
			return
		}
	}
}
