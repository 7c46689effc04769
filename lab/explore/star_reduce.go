package explore

import (
	"slices"

	"github.com/samya-db/samya/avantan/star"
)

// The reductions that rest on the any-subset variant, with why they lose nothing.

// RequestsLast implements Variant. Requests change nothing that an instance sees, as long
// as no site is short of tokens. The books after a crash differ from the books without
// requests by the amounts of the requests alone.
func (v *Star) RequestsLast() bool { return !v.bounds.Plain && !v.drained() }

// Urgent implements Node.
//
// A message about durable applies is delivered at once where the value is applied
// already: it makes a site forget, once all of R have applied. A site that remembers only
// tells members of R of the commit, and they have all applied it. So nothing is missed.
// If a site forgets too early, early is where it does harm.
//
// A site that has accepted hears of another site's accept at once, unless it is the last
// accept. A site that knows of more accepts does all that it would do otherwise. It
// commits by the last accept, which need not arrive. It aborts by the same messages. It
// asks fewer sites, and only sites that it had asked before.
//
// A message that makes a site take its offer back is delivered at once: a Discard to a
// site that has not voted and an Abort to a site that has accepted. The instance will not
// be decided with this site. Going on with it could only keep the site from other
// instances, where it need not take part. It could also make the site tell others that it
// has accepted, which it has done before. If the end was wrong, an early end shows it:
// the site's messages remain sent. An Abort may overtake the value on its way to a site
// that has not voted, or not: both are searched. With a single counter for each leader
// the search is small without this reduction, so both may come late there. A bug that
// ends an instance too early then shows in the acts of others before they hear of the
// end. (Offers do not depend on the tokens left as long as each site has tokens enough
// for all instances.)
func (n *starNode) Urgent(p *Packet, to Node) bool {
	if n.variant.plain() {
		return false
	}
	m := p.Body.(*star.Message)
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
	if v.plain() {
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
		// A commit forgotten here but not yet on the disk comes back by a crash. Then it
		// is asked about, and forgotten once more.
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

// Stale implements Node. The search has tried that the message changes nothing now. It
// will change nothing later, since only slices, floors and the collecting instance decide
// its effect. An election may still find the site free.
func (n *starNode) Stale(p *Packet) bool {
	m := p.Body.(*star.Message)
	return m.Kind != star.Election || m.ID.Counter <= floor(n.machine.State(), m.ID.Leader) &&
		m.ID.Counter <= floor(&n.state, m.ID.Leader)
}

// Dead implements Node. A site that collects for no instance pledges at once to an
// election that leads nowhere. Until the answer ends the election, the site can do less,
// and nobody else does anything else for it.
func (n *starNode) Dead(p *Packet) bool {
	_, collects := n.machine.Collecting()
	return !collects && p.Body.(*star.Message).Kind == star.Election
}

// Forget implements Node. Suppose that no site has a slice of an instance, durable or
// not, and that its leader does not collect for it. Then all of R have applied it, or it
// was aborted. It has changed the books of all members: undone everywhere, it leaves the
// sum as it is. (The change was checked when it came about; offers do not depend on the
// tokens left.) From here on the instance looks aborted: floors remember that it was
// there.
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
