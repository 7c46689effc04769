package explore

import (
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
)

// The invariants. Each is checked in every state of the whole system, except that an
// invariant "of a site" is checked at every step of a site.
const (
	// Conservation: protocol.md, section 1, exactly. It is checked twice: for the durable
	// state of every site and for its working state.
	Conservation = "conservation"
	// Agreement: a single value is decided in an instance, and nothing else applied.
	Agreement = "agreement"
	// Integrity: members hold their offers to a decided value set aside until they apply
	// it, and no member passes over it.
	Integrity = "integrity"
	// Exposure: an offer in a value that was accepted anywhere, and so can still
	// be decided, is set aside, unchanged.
	Exposure = "exposure"
	// Exclusivity: nobody serves from pledged tokens. Pledged tokens are set aside, once,
	// and tokens set aside are pledged. Also of a site's books.
	Exclusivity = "exclusivity"
	// Limit: a site knows the limit as of the instances it has applied.
	Limit = "limit"
	// ApplyOnce, of a site's books: an instance is applied once, in order.
	ApplyOnce = "apply-once"
	// Promises, of a site: durable state only grows, and nothing is accepted below a
	// promise; an accept is a promise of its ballot.
	Promises = "promises"
	// DurableFirst, of a site: no message leaves that tells of state not yet durable
	// (protocol.md, section 5).
	DurableFirst = "durable-first"
	// SelfCheck, of a site: the Machine itself refuses events that must not occur.
	SelfCheck = "self-check"
	// NetLaw: the nets are the tokens that clients have, but for open bequests.
	NetLaw = "net"
	// LeaseOnce: a lease ends once.
	LeaseOnce = "lease-once"
	// OverGrant: all sites together, a lost site included, may never use more tokens than
	// the limit.
	OverGrant = "over-grant"
	// Liveness, of a healed state: nothing stays set aside, no instance open.
	Liveness = "liveness"
)

// checkSent finds messages that rest on state that is not durable.
func (n *majority) checkSent(step *Step) {
	for i := range step.Send {
		m, ok := step.Send[i].Body.(*avantan.Message)
		if !ok {
			continue
		}
		if why := n.unfounded(m); why != "" {
			step.Broken = append(step.Broken, Violation{
				DurableFirst, fmt.Sprintf("%s sends %s: %s", n.live.site, n.variant.text(m), why),
			})
		}
	}
}

// unfounded names the claim of a message that is not durable; "" if there is none.
func (n *majority) unfounded(m *avantan.Message) string {
	d := &n.state
	switch m.Kind {
	case avantan.Applied, avantan.CatchUp, avantan.CatchUpAsk:
		if d.Applied < m.Applied {
			return "not applied"
		}
		return ""
	case avantan.Decision:
		if d.Applied < m.Instance {
			return "not applied"
		}
		return ""
	}
	if d.Applied >= m.Instance {
		return ""
	}
	switch m.Kind {
	case avantan.Election, avantan.ElectionOk:
		switch c := m.Contribution; {
		case d.Promised.Compare(m.Ballot) < 0:
			return "not promised"
		case c != nil && (d.Pledge == nil || *d.Pledge != *c):
			return "not pledged"
		}
	case avantan.Refuse:
		if d.Promised.Compare(m.Promised) < 0 {
			return "not promised"
		}
	case avantan.Accept, avantan.AcceptOk:
		if d.AcceptedAt.Compare(m.Ballot) < 0 {
			return "not accepted"
		}
	}
	return ""
}

// checkGrown compares the durable state with the old durable state.
func (n *majority) checkGrown(old *avantan.State, step *Step) {
	d := &n.state
	fail := func(format string, args ...any) {
		step.Broken = append(step.Broken, Violation{Promises, fmt.Sprintf("%s: ", n.live.site) + fmt.Sprintf(format, args...)})
	}
	switch {
	case d.AcceptedAt.Compare(d.Promised) > 0:
		fail("accepts at %v, but its promise is %v", d.AcceptedAt, d.Promised)
	case d.Applied < old.Applied:
		fail("applied falls from %d to %d", old.Applied, d.Applied)
	case d.Applied > old.Applied:
	case d.Promised.Compare(old.Promised) < 0:
		fail("the promise falls from %v to %v", old.Promised, d.Promised)
	case d.AcceptedAt != old.AcceptedAt && d.AcceptedAt.Compare(old.Promised) < 0:
		fail("accepts at %v after it promised %v", d.AcceptedAt, old.Promised)
	}
}

// view is a site's state, durable or live.
type view struct {
	site  avantan.SiteID
	state *avantan.State
	hand  *handoff.State
	books *books
}

// applied returns the number of the value that the view has applied in an instance: 0 for
// an instance passed over, -1 for nothing yet.
func (w *view) applied(t avantan.Instance) int {
	if w.state.Applied < t {
		return -1
	}
	for _, e := range w.books.log {
		if e.instance == t {
			return e.value
		}
	}
	return 0
}

// holds reports whether a contribution is pledged and set aside.
func (w *view) holds(t avantan.Instance, c avantan.Contribution) bool {
	i := w.books.find(t)
	return w.state.Applied+1 == t && w.state.Pledge != nil && *w.state.Pledge == c &&
		i >= 0 && w.books.offers[i].tokens == c.Offered
}

// Check implements Variant.
func (v *Majority) Check(nodes [Sites]Node) []Violation {
	c := checker{Majority: v}
	var durable, live [Sites]view
	for i, n := range nodes {
		n := n.(*majority)
		durable[i] = view{n.live.site, &n.state, &n.handed, n.disk}
		live[i] = view{n.live.site, n.machine.State(), n.hand.State(), n.live}
		c.accepted[i] = n.accepted
	}
	c.decide()
	for _, w := range []struct {
		name  string
		views *[Sites]view
	}{{"durable", &durable}, {"live", &live}} {
		c.name, c.views = w.name, w.views
		c.agreement()
		c.integrity()
		c.exposure()
		c.exclusivity()
		c.conservation()
	}
	return c.broken
}

type checker struct {
	*Majority
	accepted [Sites][]int
	// decided are accepts of a majority, a single accept for each value.
	decided []accept
	// name says which views are looked at, once they are.
	name   string
	views  *[Sites]view
	broken []Violation
}

func (c *checker) fail(invariant, format string, args ...any) {
	detail := fmt.Sprintf(format, args...)
	if c.name != "" {
		detail = c.name + ": " + detail
	}
	c.broken = append(c.broken, Violation{invariant, detail})
}

// decide finds the decided values: accepted by a majority at the same ballot, at whatever
// times.
func (c *checker) decide() {
	for t := avantan.Instance(1); int(t) <= c.bounds.Instances; t++ {
		view := c.viewOf(t)
		for i, list := range c.accepted {
			for _, id := range list {
				if c.accepts[id-1].instance != t {
					continue
				}
				if !view.Has(c.names[i]) {
					c.fail(Agreement, "%s has accepted %s in instance %d, of which it is no voter", c.names[i], c.describe(c.accepts[id-1].value), t)
				}
				for _, con := range c.values.get(c.accepts[id-1].value).value.Contributions {
					if !view.Has(con.Site) {
						c.fail(Agreement, "%s of instance %d has tokens of %s, which is no voter", c.describe(c.accepts[id-1].value), t, con.Site)
					}
				}
				if c.votes(id) > len(view)/2 {
					c.addDecided(id)
				}
			}
		}
	}
}

// votes counts the sites that have accepted.
func (c *checker) votes(id int) int {
	votes := 0
	for _, list := range c.accepted {
		if slices.Contains(list, id) {
			votes++
		}
	}
	return votes
}

// viewOf is the view of an instance, of which all before are decided if any site takes
// part in it.
func (c *checker) viewOf(t avantan.Instance) avantan.View {
	view, last := c.view(), avantan.Instance(0)
	for _, d := range c.decided {
		if after := c.values.get(d.value).view; after != nil && d.instance < t && d.instance > last {
			view, last = after, d.instance
		}
	}
	return view
}

func (c *checker) addDecided(id int) {
	a := c.accepts[id-1]
	if c.isDecided(entry{a.instance, a.value}) {
		return
	}
	for _, d := range c.decided {
		if d.instance == a.instance {
			c.fail(Agreement, "instance %d is decided as %s and as %s", a.instance, c.describe(d.value), c.describe(a.value))
		}
	}
	c.decided = append(c.decided, a)
}

// agreement looks for values applied that were not decided.
func (c *checker) agreement() {
	for i := range c.views {
		for _, e := range c.views[i].books.log {
			if e.value != 0 && !c.isDecided(e) {
				c.fail(Agreement, "%s has applied %s in instance %d, which is not decided",
					c.views[i].site, c.describe(e.value), e.instance)
			}
		}
	}
}

func (c *checker) isDecided(e entry) bool {
	for _, d := range c.decided {
		if d.instance == e.instance && d.value == e.value {
			return true
		}
	}
	return false
}

// integrity looks at the members of decided values.
func (c *checker) integrity() {
	for _, d := range c.decided {
		for _, con := range c.values.get(d.value).value.Contributions {
			w := &c.views[c.index(con.Site)]
			if got := w.applied(d.instance); got != d.value && (got >= 0 || !w.holds(d.instance, con)) {
				c.fail(Integrity, "instance %d decided %d of %s, which does not hold that: %v",
					d.instance, con.Offered, con.Site, w.books)
			}
		}
	}
}

// exposure looks at the members of values that were accepted somewhere.
func (c *checker) exposure() {
	for _, list := range c.accepted {
		for _, id := range list {
			a := c.accepts[id-1]
			for _, con := range c.values.get(a.value).value.Contributions {
				w := &c.views[c.index(con.Site)]
				if w.state.Applied < a.instance && !w.holds(a.instance, con) {
					c.fail(Exposure, "a value accepted at %v in instance %d holds %d of %s, which does not: %v",
						a.ballot, a.instance, con.Offered, con.Site, w.books)
				}
			}
		}
	}
}

// exclusivity compares pledges and books.
func (c *checker) exclusivity() {
	for i := range c.views {
		w := &c.views[i]
		p := w.state.Pledge
		switch {
		case len(w.books.offers) > 1 || (p == nil) != (len(w.books.offers) == 0),
			p != nil && !w.holds(w.state.Applied+1, *p):
			c.fail(Exclusivity, "%s has pledged %v and set aside: %v", w.site, p, w.books)
		case w.books.left < 0 && (!c.drained() || i != heir && i != leaver):
			c.fail(Exclusivity, "%s has granted what it had not: %v", w.site, w.books)
		}
	}
}

// conservation adds all up.
func (c *checker) conservation() {
	limit, sum := c.limit(), avantan.Tokens(0)
	for i := range c.views {
		sum += c.views[i].books.total()
	}
	for _, d := range c.decided {
		k := c.values.get(d.value)
		limit += k.delta
		for i, con := range k.value.Contributions {
			if c.views[c.index(con.Site)].state.Applied < d.instance {
				sum += k.grants[i] - con.Offered
			}
		}
	}
	all := c.holdings()
	sum += bequeathed(all)
	if sum != limit {
		c.fail(Conservation, "there are %d tokens of %d", sum, limit)
	}
	checkHoldings(all, limit, c.fail)
	for i := range c.views {
		w := &c.views[i]
		want := c.limit()
		for _, d := range c.decided {
			if d.instance <= w.state.Applied {
				want += c.values.get(d.value).delta
			}
		}
		if w.books.limit != want {
			c.fail(Limit, "%s knows the limit %d, it is %d", w.site, w.books.limit, want)
		}
	}
}
