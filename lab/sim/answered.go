package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/stored"
)

// answered checks the answer to an acquire, a release or a commit.
func (o *observer) answered(n *node, c *call, a answer.Answer) {
	op := c.op
	q := &op.at[n.i]
	o.unexceeding(n, c, &a)
	switch {
	case op.dry:
		o.tried(n, c, &a)
		return
	case a.Code == answer.OK || a.Code == answer.OutOfTokens || a.Code == answer.ExceedsLimit:
	default:
		o.nothingDone(n, c, &a)
		return
	}
	if q.state == stored.Undone && numbered(c.attempt) <= q.attempt {
		// It was undone in the transaction that recorded it, or since. Its client goes
		// by a later attempt.
		if numbered(c.attempt) == numbered(op.tries.latest) {
			o.s.fail(ExactlyOnce, "%s answers %v with %v, and has undone it", n.id, c, a.Code)
		}
		return
	}
	if numbered(c.attempt) < min(q.attempt, op.tries.latest) {
		// Nor does the client go by the record of a later attempt.
		return
	}
	if !q.bears(op, &a) || q.attempt < numbered(c.attempt) {
		o.s.fail(Durability, "%s answers %v with %v, tokens %d, left %d; recorded is %+v", n.id, c, a.Code, a.Tokens, a.Left, *q)
		return
	}
	o.claimed(n, c)
	if q.answered {
		o.s.report.Repeats++
		now := told{a.Code, a.Tokens, a.Left, a.Lacking}
		switch {
		case !n.tells(op, q):
			// The entity that lacked no longer stands above the entity asked for.
			now.lacking = q.first.lacking
		case q.first.lacking == "":
			// It stands there again.
			q.first.lacking = now.lacking
		}
		if now != q.first {
			o.s.fail(ExactlyOnce, "%s answers %v with %+v, before with %+v", n.id, c, now, q.first)
		}
		return
	}
	q.first, q.answered = told{a.Code, a.Tokens, a.Left, a.Lacking}, true
	switch {
	case a.Code == answer.ExceedsLimit:
		o.exceeded(n, c, &a)
	case a.Code == answer.OutOfTokens:
		o.s.report.Refusals++
		o.lacked(n, c, &a)
		o.exact(op, a.Lacking)
	case !op.kind.acquires():
		o.s.report.Releases++
	default:
		o.granted(n, c, &a)
	}
}

// bears reports whether the record of an operation supports an answer.
func (q *recorded) bears(p *op, a *answer.Answer) bool {
	switch {
	case p.kind == commit:
		return a.Code == answer.OK && q.state == stored.Ran && a.Tokens == q.tokens
	case a.Code == answer.OutOfTokens:
		return q.state == stored.Refused && q.tokens == 0 && a.Left == q.left
	case a.Code == answer.ExceedsLimit:
		// Recorded are the fewest tokens that are too many.
		return q.state == stored.Refused && q.tokens == a.Tokens+1 && a.Left == q.left
	case p.kind.acquires():
		return q.state == stored.Ran && a.Tokens == q.tokens && a.Left == q.left
	case a.Parked:
		// It may have been settled in the same transaction.
		return q.state == stored.Parked || q.state == stored.Dropped || q.state == stored.Ran
	default:
		return q.state == stored.Ran && a.Tokens == q.tokens && a.Left == q.left
	}
}

// granted looks at a grant that was answered for the first time.
func (o *observer) granted(n *node, c *call, a *answer.Answer) {
	o.s.report.Grants++
	if c.waited {
		o.s.report.Redistributed++
	}
	switch {
	case c.op.kind == acquireAll:
		o.s.report.Batches++
		return
	case n.durable.Entities[c.op.entity].Parent != 0:
		o.s.report.GrantsBelow++
	}
	if a.Left < 0 {
		o.s.fail(Bounds, "%s grants %v, left are %d", n.id, c, a.Left)
	}
	if a.Tokens < c.op.tokens {
		o.s.report.Partial++
		if a.Left != 0 && !o.planted[c.op.entity] && !o.everLimit(sequenceID{c.op.entity, c.op.at[n.i].generation}, a.Tokens) {
			o.s.fail(Answers, "%s grants %v only %d tokens, left are %d", n.id, c, a.Tokens, a.Left)
		}
	}
}

// nothingDone checks an answer that denies any effect.
func (o *observer) nothingDone(n *node, c *call, a *answer.Answer) {
	q := &c.op.at[n.i]
	switch a.Code {
	case answer.Overloaded, answer.QueueFull:
		o.s.report.Overloads++
		if a.Code == answer.QueueFull && c.op.kind == acquire && a.Left >= c.op.leastTokens() && a.Lacking == c.op.entity &&
			!o.planted[c.op.entity] {
			o.s.fail(Refusal, "%s answers %v: too many wait for %q, and has %d left", n.id, c, a.Lacking, a.Left)
		}
		return
	case answer.NotFound:
		return
	case answer.Unknown:
		if n.openCalls(c.op) >= core.MaxCallers {
			return
		}
	case answer.Stopping:
		if n.stopping {
			return
		}
	case answer.Invalid:
		// A lost site does not know a site that has joined since.
		strange := func(site core.SiteID) bool { return !slices.Contains(o.s.membersIn(n, n.durable), site) }
		if n.writtenOff() && (slices.ContainsFunc(c.tried, strange) || c.op.home != "" && strange(c.op.home)) {
			return
		}
	case answer.Draining:
		o.s.report.TurnedAway++
		// A copy of the request may have run later in the same transaction, once the drain was
		// cancelled.
		if o.departing[n.id] && (q.state != stored.Ran || q.attempt != numbered(c.attempt) || !q.answered && q.block == n.durable.newest()) {
			return
		}
	case answer.Moved:
		if l := c.op.lease; l != nil && o.departing[n.id] && (l.home != n || l.over()) {
			o.s.report.LeasesMoved++
			return
		}
	case answer.Superseded, answer.Expired, answer.NoLease:
		if !c.refused(n, a) {
			break
		}
		switch a.Code {
		case answer.Superseded:
			o.s.report.Superseded++
		case answer.Expired:
			o.s.report.Expired++
		default:
			o.s.report.NoLease++
		}
		return
	}
	o.s.fail(Answers, "%s answers %v: %v; recorded is state %d, attempt %d.%d", n.id, c, a.Code, q.state, q.attempt>>8, q.attempt&0xff)
}

// openCalls is how many calls of an operation a site has not answered.
func (n *node) openCalls(p *op) int {
	open := 0
	for c := range n.calls {
		if c.op == p {
			open++
		}
	}
	return open
}

// refused reports whether a call may be refused for being late: another attempt has come
// after it, its time is over, or its lease has ended.
func (c *call) refused(n *node, a *answer.Answer) bool {
	p, q := c.op, &c.op.at[n.i]
	switch a.Code {
	case answer.Superseded:
		return p.ticket.acknowledged() || numbered(c.attempt) < numbered(p.tries.latest) && (q.attempt >= numbered(c.attempt) || q.seen > numbered(c.attempt))
	case answer.Expired:
		return p.tries.notAfter != 0 && n.calendar > p.tries.notAfter
	case answer.NoLease:
		return p.lease != nil && (p.lease.over() && (p.lease.home == n || n.s.o.Leaves) || p.lease.home != n && n.s.observe.stayed[n.id])
	}
	return false
}

// tried checks the answer to a dry run.
func (o *observer) tried(n *node, c *call, a *answer.Answer) {
	o.s.report.DryRuns++
	p := c.op
	switch {
	case a.Code == answer.OK && (a.Tokens > p.tokens || a.Tokens < p.leastTokens() || a.Tokens > a.Left):
		o.s.fail(Answers, "%s answers %v: %d tokens, left %d", n.id, c, a.Tokens, a.Left)
	case a.Code != answer.OK && a.Code != answer.OutOfTokens && a.Code != answer.ExceedsLimit && a.Code != answer.NotFound && (a.Code != answer.Draining || !o.departing[n.id]):
		o.s.fail(Answers, "%s answers %v: %v", n.id, c, a.Code)
	}
}

// renewed checks the answer to a renewal.
func (o *observer) renewed(n *node, c *call, a *answer.Answer) {
	l := c.op.lease
	l.renewalAnswered(n, c.op)
	switch {
	case a.Code == answer.OK && a.Lease().Number == l.number && a.Lease().Tokens <= l.op.at[l.by].tokens:
	case a.Code == answer.NoLease && (l.over() || o.stayed[n.id] && l.home != n):
		o.s.report.NoLease++
	case a.Code == answer.Moved && o.departing[n.id] && (l.home != n || l.over()):
		o.s.report.LeasesMoved++
	case a.Code == answer.OutOfTokens && l.op.share && o.wasInDebt(n, l):
		// Its end pays.
	case a.Code == answer.Overloaded && (l.onItsWay() || o.departing[n.id] && l.home != n):
	default:
		o.s.fail(Leases, "%s answers %v: %v, %+v", n.id, c, a.Code, a.Lease())
	}
}
