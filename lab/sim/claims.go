package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// askedAs is a claim as its site has made it durable.
type askedAs struct {
	op  *op
	ask message.ClaimAsk
}

// claimsStored takes in the claims that a site has made durable.
func (o *observer) claimsStored(n *node, r *stored.Records) {
	for i := range r.Claims {
		c := &r.Claims[i]
		p := o.s.opOf(c.Key)
		if p == nil || !p.kind.recorded() {
			o.s.fail(ExactlyOnce, "%s claims a request that nobody made: %+v", n.id, c)
			return
		}
		n.claims[c.Number] = askedAs{p, c.ClaimAsk}
		q := &p.at[n.i]
		if q.asked == nil {
			q.asked = make([]attempt.Number, len(o.s.nodes))
		}
		if q.must == nil {
			q.must = make([]attempt.Number, len(o.s.nodes))
		}
		for _, site := range c.Sites {
			i := slices.Index(o.s.names, site)
			q.asked[i] = max(q.asked[i], c.Attempt)
			if c.Attempt >= q.undone {
				q.must[i] = max(q.must[i], c.Attempt)
			}
		}
	}
}

// claimsMessage checks a site's questions to another site about requests, and its
// answers.
func (o *observer) claimsMessage(from *node, m *message.Claims) {
	to := o.s.nodes[slices.Index(o.s.names, m.To)]
	for i := range m.Asks {
		a := &m.Asks[i]
		if c, found := from.claims[a.Number]; !found || c.ask != *a || c.op.at[from.i].asked[to.i] < a.Attempt {
			o.s.fail(Durability, "%s asks %s %+v; durable is %+v", from.id, m.To, a, c.ask)
		}
	}
	for _, a := range m.Answers {
		c, found := to.claims[a.Number]
		if !found {
			o.s.fail(Answers, "%s answers claim %d, which %s has not made", from.id, a.Number, m.To)
			return
		}
		o.verdict(from, to, &c, a.Verdict)
	}
}

// verdict checks a site's verdict on a request.
func (o *observer) verdict(from, to *node, c *askedAs, v message.ClaimVerdict) {
	p, bound := c.op, c.ask.Attempt
	q := &p.at[from.i]
	// No attempt is taken any more.
	over := from.time().Wall > c.ask.NotAfter
	stops := over || q.attempt >= bound && q.state != 0
	var ok bool
	switch {
	case v == message.Forgotten:
		p.at[to.i].forgotten = true
		o.s.report.Forgotten++
		ok = o.s.now > retention*95/100 && from.mayForget(c.ask.NotAfter)
	case c.ask.Kind == message.ReturnLease:
		moved := o.departing[from.id] && p.lease != nil && (p.lease.home != from || p.lease.over())
		// The heir of the lease's site sees to a release that the heir has parked itself: it
		// gives the lease back by its own claim. Neither site counts the release.
		inherits := o.departing[p.home] && from.id != p.home && (q.state == stored.Parked || q.state == stored.Dropped)
		ok = v == message.DidRun && (q.state == stored.Ran || inherits) || v == message.NeverRan && moved
	case v == message.DidRun && c.ask.Kind == message.UndoAcquire:
		ok = q.ran && stops && (q.state == stored.Undone || q.attempt > bound || !o.sameGeneration(from, p, q))
	case v == message.DidRun:
		ok = q.state == stored.Ran || q.state == stored.Dropped
	case c.ask.Kind == message.UndoAcquire:
		ok = (stops || q.state == stored.Refused) && (q.state != stored.Ran || q.attempt > bound || !o.sameGeneration(from, p, q))
	default:
		ok = stops && (q.state == stored.Undone || q.attempt > bound || over && q.state == 0)
	}
	if v == message.NeverRan {
		if q.never == nil {
			q.never = make([]attempt.Number, len(o.s.nodes))
		}
		q.never[to.i] = max(q.never[to.i], bound)
	}
	if !ok {
		o.s.fail(ExactlyOnce, "%s tells %s %d of %v up to attempt %d.%d; durable is state %d, attempt %d.%d", from.id, to.id, v, p,
			bound>>8, bound&0xff, q.state, q.attempt>>8, q.attempt&0xff)
	}
}

// mayForget reports whether a site may have forgotten a request that no site takes after
// a time. The site knows that by a calendar, and after a restart by another calendar. It
// says so only once the request's time is nearly over by the furthest of these calendars,
// or once its remaining records begin within that time.
func (n *node) mayForget(notAfter int64) bool {
	return epoch+(n.s.now+clockError+slack)/millisecond+n.aheadBy > notAfter ||
		n.drained.oldest() > notAfter-retention/millisecond
}

// claimed checks that a site which answers an attempt has durably noted to ask the sites
// that earlier attempts may have reached.
func (o *observer) claimed(n *node, c *call) {
	p, q := c.op, &c.op.at[n.i]
	if p.lease != nil && p.kind == release {
		asks := slices.ContainsFunc(q.asked, func(a attempt.Number) bool { return a > 0 })
		if n.id != p.home && q.state == stored.Parked && !asks {
			o.s.fail(Durability, "%s answers %v, and has not noted to ask %s", n.id, c, p.home)
		}
		return
	}
	if q.attempt != c.attempt || q.state == stored.Ran && p.kind == release || q.state == stored.Dropped {
		return
	}
	for _, site := range o.s.claimedOf(n, c) {
		if i := slices.Index(o.s.names, site); o.s.nodes[i].outside() {
			continue
		} else if q.asked == nil || q.asked[i] < c.attempt-1 {
			o.s.fail(Durability, "%s answers %v, and has not noted to ask %s", n.id, c, site)
		}
	}
}

// owed counts the claims that are not settled anywhere.
func (s *sim) owed() int {
	sum := 0
	for _, n := range s.inside() {
		sum += len(n.drained.Claims)
	}
	return sum
}
