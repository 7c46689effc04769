package explore

import (
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/star"
)

// Invariants of the any-subset variant alone; the others have the same meaning
// as under the majority. An instance is decided once all of its R have durably
// accepted.
const (
	// Votes, of a site: a vote is cast once, for the pledged offer. The durable record of
	// votes, of floors and of counters is never taken back.
	Votes = "votes"
	// Forgetting: a site forgets a value it has applied only when all of R have
	// durably applied it.
	Forgetting = "forgetting"
	// Alike: all sites that are left end an instance with a lost site in the same way.
	Alike = "alike"
)

// vote is everything ever durable of a site's part in an instance.
type vote struct {
	// value is the number of the accepted value; 0 for none.
	value int
	// aborted is set if the offer was taken back, or never will be made.
	aborted bool
}

// voted returns everything ever durable of this site's vote in an instance.
func (n *starNode) voted(id star.ID) vote {
	for _, e := range n.withdrawn {
		if e.id == id {
			return vote{e.value, true}
		}
	}
	for _, e := range n.accepted {
		if e.id == id {
			return vote{value: e.value}
		}
	}
	if slice(&n.state, id) != nil {
		return vote{}
	}
	if id.Leader == n.live.site {
		collecting, _ := n.machine.Collecting()
		return vote{aborted: id.Counter <= n.last && id != collecting}
	}
	return vote{aborted: id.Counter <= floor(&n.state, id.Leader)}
}

// floor returns the last counter of a leader that a site has pledged to.
func floor(s *star.State, leader avantan.SiteID) uint64 {
	for _, f := range s.Floors {
		if f.Leader == leader {
			return f.Counter
		}
	}
	return 0
}

// remember compares the durable state with the old durable state, and notes facts that
// the new state no longer tells.
func (n *starNode) remember(old *star.State, step *Step) {
	d := &n.state
	if err := d.Validate(); err != nil {
		n.broke(step, SelfCheck, "stores %v", err)
	}
	if d.Reserved < old.Reserved {
		n.broke(step, Votes, "reserved counters fall from %d to %d", old.Reserved, d.Reserved)
	}
	for _, f := range old.Floors {
		if now := floor(d, f.Leader); now < f.Counter {
			n.broke(step, Votes, "floor %v falls to %d", f, now)
		}
	}
	for i := range d.Slices {
		n.compare(&d.Slices[i], old, step)
	}
	for i := range old.Slices {
		was := &old.Slices[i]
		if slice(d, was.ID) != nil || was.Value == nil || was.Committed {
			continue
		}
		if _, applied := n.disk.applied(was.ID); !applied && !n.disk.concluded(was.ID) {
			n.withdrawn = append(n.withdrawn, starEntry{was.ID, n.variant.values.id(was.Value)})
			slices.SortFunc(n.withdrawn, func(a, b starEntry) int { return a.id.Compare(b.id) })
		}
	}
}

// compare looks at a slice that is durable now.
func (n *starNode) compare(sl *star.Slice, old *star.State, step *Step) {
	was := slice(old, sl.ID)
	switch {
	case was != nil && was.Value != nil && (sl.Value == nil || !sl.Value.Equal(was.Value)):
		n.broke(step, Votes, "has accepted another value in %v", sl.ID)
	case was != nil && was.Pledge != sl.Pledge:
		n.broke(step, Votes, "has pledged otherwise to %v", sl.ID)
	case was == nil && sl.ID.Leader != n.live.site && sl.ID.Counter <= floor(old, sl.ID.Leader):
		n.broke(step, Votes, "takes part again in %v, which is over here", sl.ID)
	case was == nil && sl.ID.Leader == n.live.site && sl.ID.Counter < n.last:
		n.broke(step, Votes, "builds %v again after %d", sl.ID, n.last)
	}
	_, applied := n.disk.applied(sl.ID)
	if ends := applied || n.disk.concluded(sl.ID); ends != sl.Committed && (was == nil || !was.Committed) {
		n.broke(step, Exclusivity, "%v is committed: %v, and applied: %v", sl.ID, sl.Committed, ends)
	}
	if n.disk.concluded(sl.ID) != sl.Concluded {
		n.broke(step, Exclusivity, "%v is concluded: %v, its books say otherwise", sl.ID, sl.Concluded)
	}
}

// checkSent finds messages that rest on state that is not durable.
func (n *starNode) checkSent(step *Step) {
	for i := range step.Send {
		m, ok := step.Send[i].Body.(*star.Message)
		if !ok {
			continue
		}
		if err := m.Validate(); err != nil {
			n.broke(step, SelfCheck, "sends %v", err)
		}
		if why := n.unfounded(m); why != "" {
			n.broke(step, DurableFirst, "sends %s: %s", starText(m), why)
		}
	}
}

// unfounded names the claim of a message that is not durable; "" if there is none.
func (n *starNode) unfounded(m *star.Message) string {
	d := &n.state
	sl := slice(d, m.ID)
	_, applied := n.disk.applied(m.ID)
	switch m.Kind {
	case star.Election:
		if m.ID.Counter > d.Reserved {
			return "not reserved"
		}
	case star.ElectionOk:
		if m.Contribution != nil && (sl == nil || sl.Pledge != *m.Contribution) {
			return "not pledged"
		}
	case star.Accept, star.AcceptOk, star.Undecided:
		if sl == nil || sl.Value == nil {
			return "not accepted"
		} else if m.Value != nil && !sl.Value.Equal(m.Value) {
			return "another value is accepted"
		}
	case star.Abort:
		if sl != nil && !sl.Committed {
			return "not aborted"
		}
	case star.Commit, star.Applied, star.Settled:
		// An instance over everywhere has been applied, if a message still tells of it.
		over := m.ID.Counter <= floor(d, m.ID.Leader) || m.ID.Leader == n.live.site && m.ID.Counter <= n.last
		if !applied && (sl != nil && !sl.Committed || !over || n.voted(m.ID).value != 0) {
			return "not applied"
		}
	case star.Concluded:
		if !n.disk.concluded(m.ID) {
			return "not concluded"
		}
	case star.Ended:
		if sl != nil && !sl.Committed {
			return "not ended"
		}
	}
	return ""
}

// starView is a site's state, durable or live.
type starView struct {
	site  avantan.SiteID
	state *star.State
	hand  *handoff.State
	books *starBooks
	node  *starNode
}

// holds reports whether a contribution is pledged and set aside.
func (w *starView) holds(id star.ID, c avantan.Contribution) bool {
	sl := slice(w.state, id)
	i, found := w.books.find(id)
	return sl != nil && sl.Pledge == c && found && w.books.offers[i].tokens == c.Offered
}

// Check implements Variant.
func (v *Star) Check(nodes [Sites]Node) []Violation {
	c := starChecker{Star: v}
	var durable, live [Sites]starView
	for i, n := range nodes {
		n := n.(*starNode)
		c.lost |= n.lost
		durable[i] = starView{n.live.site, &n.state, &n.handed, n.disk, n}
		live[i] = starView{n.live.site, n.machine.State(), n.hand.State(), n.live, n}
		c.nodes[i] = n
	}
	c.outcomes()
	c.alike()
	for _, w := range []struct {
		name  string
		views *[Sites]starView
	}{{"durable", &durable}, {"live", &live}} {
		c.name, c.views = w.name, w.views
		c.members()
		c.exclusivity()
		c.conservation()
	}
	return c.broken
}

type starChecker struct {
	*Star
	nodes [Sites]*starNode
	// lost are the sites that are written off, as far as any site knows.
	lost losses
	// accepted are the instances with a value accepted anywhere.
	accepted []outcome
	// name says which views are looked at, once they are.
	name   string
	views  *[Sites]starView
	broken []Violation
}

// outcome is the outcome of an instance: decided if all of R have accepted, aborted if
// any of R has aborted.
type outcome struct {
	id      star.ID
	value   int
	known   *known
	decided bool
	aborted bool
}

func (c *starChecker) fail(invariant, format string, args ...any) {
	detail := fmt.Sprintf(format, args...)
	if c.name != "" {
		detail = c.name + ": " + detail
	}
	c.broken = append(c.broken, Violation{invariant, detail})
}

// outcomes finds all accepted values and their outcomes.
func (c *starChecker) outcomes() {
	for _, n := range c.nodes {
		for _, e := range n.accepted {
			c.add(e)
		}
	}
	for i, o := range c.accepted {
		for _, p := range c.accepted[:i] {
			if p.id == o.id {
				c.fail(Agreement, "instance %v has two values, %s and %s", o.id, describe(p.known.value), describe(o.known.value))
			}
		}
		if o.decided && o.aborted {
			c.fail(Agreement, "instance %v is decided as %s, and a member has aborted it", o.id, describe(o.known.value))
		}
	}
}

// add finds the outcome of an instance with a value, once.
func (c *starChecker) add(e starEntry) {
	for _, o := range c.accepted {
		if o.id == e.id && o.value == e.value {
			return
		}
	}
	o := outcome{id: e.id, value: e.value, known: c.values.get(e.value), decided: true}
	for _, con := range o.known.value.Contributions {
		w := c.nodes[c.index(con.Site)].voted(e.id)
		o.decided = o.decided && w.value == e.value
		o.aborted = o.aborted || w.aborted
	}
	c.accepted = append(c.accepted, o)
}

// members checks the offers that each member of R holds, has applied and has forgotten.
func (c *starChecker) members() {
	for i := range c.views {
		for _, e := range c.views[i].books.log {
			if !slices.ContainsFunc(c.accepted, func(o outcome) bool { return o.id == e.id && o.value == e.value && o.decided }) {
				c.fail(Agreement, "%s has applied %s in instance %v, which is not decided",
					c.views[i].site, describe(c.values.get(e.value).value), e.id)
			}
		}
	}
	for _, o := range c.accepted {
		var applied, forgotten bool
		all := true
		for _, con := range o.known.value.Contributions {
			w := &c.views[c.index(con.Site)]
			_, applied = w.books.applied(o.id)
			ended := w.books.concluded(o.id)
			if !applied && !ended && !w.node.voted(o.id).aborted && !w.holds(o.id, con) {
				c.fail(Integrity, "instance %v takes %d of %s, which does not hold that: %v", o.id, con.Offered, con.Site, w.books)
			}
			forgotten = forgotten || (applied || ended) && slice(w.state, o.id) == nil
			_, durable := w.node.disk.applied(o.id)
			all = all && (durable || w.node.disk.concluded(o.id) || c.lost.has(c.index(con.Site)))
		}
		if forgotten && !all {
			c.fail(Forgetting, "instance %v is forgotten before all of %s have applied it", o.id, describe(o.known.value))
		}
	}
}

// exclusivity compares slices and books.
func (c *starChecker) exclusivity() {
	for i := range c.views {
		w := &c.views[i]
		undecided := 0
		for k := range w.state.Slices {
			sl := &w.state.Slices[k]
			if sl.Committed {
				continue
			}
			undecided++
			if !w.holds(sl.ID, sl.Pledge) {
				c.fail(Exclusivity, "%s has pledged %d to %v and set aside: %v", w.site, sl.Pledge.Offered, sl.ID, w.books)
			}
		}
		switch {
		case undecided != len(w.books.offers):
			c.fail(Exclusivity, "%s has %d slices and set aside: %v", w.site, undecided, w.books)
		case w.books.left < 0 && (!c.drained() || i != heir && i != leaver):
			c.fail(Exclusivity, "%s has granted what it had not: %v", w.site, w.books)
		}
	}
}

// conservation adds all up. What a member gets less than by the outcome, since it could not
// know the outcome, is retired. Until there is an outcome, its offer would come back.
func (c *starChecker) conservation() {
	var sum avantan.Tokens
	for i := range c.views {
		sum += c.views[i].books.total()
	}
	all := c.holdings()
	sum += bequeathed(all)
	for _, o := range c.accepted {
		for i, con := range o.known.value.Contributions {
			books := c.views[c.index(con.Site)].books
			gets := con.Offered
			if o.decided {
				gets = o.known.grants[i]
			}
			if books.concluded(o.id) {
				sum += gets - min(con.Offered, o.known.grants[i])
			} else if _, applied := books.applied(o.id); !applied {
				sum += gets - con.Offered
			}
		}
	}
	if sum != c.limit() {
		c.fail(Conservation, "there are %d tokens of %d", sum, c.limit())
	}
	checkHoldings(all, c.limit(), c.fail)
}

// alike compares the ends of an instance at the sites that are left.
func (c *starChecker) alike() {
	for _, o := range c.accepted {
		var ends [3]bool
		for _, con := range o.known.value.Contributions {
			i := c.index(con.Site)
			if c.lost.has(i) {
				continue
			}
			n := c.nodes[i]
			_, applied := n.disk.applied(o.id)
			ends[0], ends[1], ends[2] = ends[0] || applied, ends[1] || n.voted(o.id).aborted, ends[2] || n.disk.concluded(o.id)
		}
		if ends[2] && (ends[0] || ends[1]) {
			c.fail(Alike, "%s of %v: a site that is left has concluded it, another has not: %v", describe(o.known.value), o.id, ends)
		}
	}
}
