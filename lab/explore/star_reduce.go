package explore

import (
	"slices"

	"github.com/samya-db/samya/avantan/star"
)

// The reductions that rest on the any-subset variant, with why they lose nothing.

// RequestsLast implements Variant. Requests change nothing that an instance
// sees, as long as no site is short of tokens, and what a crash leaves of the
// books is what it leaves without them, less the same.
func (v *Star) RequestsLast() bool { return !v.bounds.Plain }

// Urgent implements Node.
//
// What tells of durable applies is delivered at once where the value is applied
// already: it makes a site forget, once all of R have applied. What a site does
// that remembers is to tell those of R of the commit, and they have all applied
// it. So nothing is missed; and if a site forgets too early, early is where it
// does harm.
//
// What tells a site that has accepted of the accepts of others is delivered at
// once if it is not the last. A site that knows of more accepts does all that it
// would do otherwise: it commits by the last, which need not arrive, it aborts by
// the same messages, and it asks fewer sites, of which it had asked before.
//
// What makes a site take its offer back is delivered at once, a Discard to a site
// that has not voted and an Abort to one that has accepted: the instance will not
// be decided with this site. To go on with it could only keep the site from taking
// part in others, which it need not do, and make it tell others that it has
// accepted, which it has done before. If that was wrong, an early end is what
// shows it: what the site has said remains said. An Abort may overtake the value
// on its way to a site that has not voted, or not: both are searched. With one
// counter each the search is small without this, so both may come late there: a
// bug that ends an instance too early shows by what others do before they hear of
// it. (Offers do not depend on what is left as long as each site has tokens
// enough for all instances.)
func (n *starNode) Urgent(p *Packet, to Node) bool {
	m := p.Body.(*star.Message)
	if n.variant.bounds.Plain {
		return false
	}
	before, after := slice(n.machine.State(), m.ID), slice(to.(*starNode).machine.State(), m.ID)
	switch m.Kind {
	case star.Applied, star.Settled:
		return before != nil && before.Committed
	case star.Abort:
		return n.variant.bounds.Ballots > 1 && before != nil && before.Value != nil && !before.Committed && after == nil
	case star.Discard:
		return n.variant.bounds.Ballots > 1 && len(to.(*starNode).machine.State().Slices) < len(n.machine.State().Slices)
	case star.Accept, star.AcceptOk:
		return before != nil && before.Value != nil && !before.Committed && after != nil && !after.Committed
	default:
		return false
	}
}

// number returns the number of an instance.
func (v *Star) number(id star.ID) int {
	i := slices.Index(v.instances, id)
	if i < 0 {
		i = len(v.instances)
		v.instances = append(v.instances, id)
	}
	return i
}

// bit returns an instance as a bit, or 0 if nothing is forgotten.
func (v *Star) bit(id star.ID) uint64 {
	if v.bounds.Plain {
		return 0
	}
	return 1 << v.number(id)
}

// Past implements Node.
func (n *starNode) Past() (p Past) {
	v := n.variant
	for _, list := range [][]starEntry{n.disk.log, n.live.log, n.withdrawn} {
		for _, e := range list {
			p.Recorded |= v.bit(e.id)
		}
	}
	for i := range n.machine.State().Slices {
		p.Open |= v.bit(n.machine.State().Slices[i].ID)
	}
	for i := range n.state.Slices {
		// A commit that is forgotten, which the disk still knows of, comes back by a
		// crash: then it is asked about, and forgotten once more.
		if sl := &n.state.Slices[i]; !sl.Committed {
			p.Open |= v.bit(sl.ID)
		}
	}
	if id, collects := n.machine.Collecting(); collects {
		p.Open |= v.bit(id)
	}
	for _, id := range v.instances {
		if id.Leader == n.live.site && id.Counter <= n.last {
			p.Ended |= v.bit(id)
		}
	}
	return p
}

// Stale implements Node. That the message changes nothing now was tried. It will
// not later, since only slices, floors and the instance that collects decide
// what becomes of it; an election may still find the site free.
func (n *starNode) Stale(p *Packet) bool {
	m := p.Body.(*star.Message)
	return m.Kind != star.Election || m.ID.Counter <= floor(n.machine.State(), m.ID.Leader) &&
		m.ID.Counter <= floor(&n.state, m.ID.Leader)
}

// Dead implements Node. An election of which nothing can come is pledged to at
// once, if the site does not lead. Until the answer ends it, the site can do
// less, and nobody else does anything else for it.
func (n *starNode) Dead(p *Packet) bool {
	_, collects := n.machine.Collecting()
	return !collects && p.Body.(*star.Message).Kind == star.Election
}

// Forget implements Node. An instance that no site has a slice of, durable or
// not, and whose leader does not collect for it, has either been applied by all
// of R or been aborted. What it did to the books it has done everywhere: undone
// everywhere, it leaves the sum as it is. (That it had this effect was checked
// when it came about; offers do not depend on what is left.) From here on it
// looks like one that was aborted: floors remember that it was there.
func (n *starNode) Forget(instances uint64) Node {
	c := n.Clone().(*starNode)
	over := func(e starEntry) bool { return instances>>n.variant.number(e.id)&1 == 1 }
	for _, b := range []*starBooks{c.live, c.disk} {
		for _, e := range b.log {
			if over(e) {
				b.left -= n.variant.values.gain(e.value, b.site)
			}
		}
		b.log = slices.DeleteFunc(b.log, over)
	}
	c.withdrawn = slices.DeleteFunc(c.withdrawn, over)
	c.conclude()
	return c
}
