package sim

import (
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// alone settles the decisions of a cluster of a single site. A value there is decided as
// soon as it is accepted, so it is never seen in between: creations are taken from the
// records.
func (o *observer) alone(d *Memory) bool {
	for _, ch := range d.Changes.Values() {
		id := sequenceID{ch.Change.Name, ch.Generation}
		if ch.Change.Kind != input.CreateEntity || ch.Outcome != answer.OK {
			continue
		}
		e := o.sequence(id)
		o.names[id.generation] = id.entity
		if o.ledgers[id] == nil {
			o.began(id)
		}
		if e.limits == nil {
			o.s.report.Creates++
			o.created[id.entity] = append(o.created[id.entity], e)
		}
		// A crash may have lost the first creation of this generation.
		if e.limits == nil || len(e.limits) == 1 && e.limits[0].limit != ch.Change.Limit {
			e.created(ch.Change.Limit, ch.Change.Rate.Keys, o.s.names, o.s.names, 1)
		}
	}
	return false
}

// raisedAlone takes in the limits that a cluster of a single site answers to have set. A
// limit may be raised, granted up to, and its entity deleted within a transaction. The
// records then tell nothing of it.
func (o *observer) raisedAlone(n *node, batch *core.Effects) {
	if len(o.s.nodes) != 1 {
		return
	}
	for i := range batch.Replies {
		c, a := batch.Replies[i].Call.(*call), &batch.Replies[i].Answer
		if c.op.kind != setLimit || a.Code != answer.OK || a.View() == nil {
			continue
		}
		o.alone(n.durable)
		if q := o.sequence(sequenceID{c.op.entity, a.View().Generation}); q.limits != nil {
			q.aloneAt(limitState{a.View().Limit, a.View().Version})
		}
	}
}

// checkAlone checks the only site of a cluster.
func (o *observer) checkAlone(n *node, d *Memory, q *sequence) {
	e, b := d.Entities[q.id.entity], d.Books[q.id.entity]
	o.alone(d)
	if got := holdings(&e, &b); got != e.Limit-e.Surplus+e.Debt {
		o.s.fail(Conservation, "%s: %v: %d tokens, the limit is %d, %d are set aside, %d are owed", n.id, q.id, got, e.Limit, e.Surplus, e.Debt)
	}
	if e.Surplus > q.aside[len(q.aside)-1] {
		q.aside = append(q.aside, e.Surplus)
		o.asideWithin(q, e.Surplus)
	}
	if d != n.durable {
		return
	}
	if b.Net != o.net[n.i][q.id.entity] {
		o.s.fail(Durability, "%s: %v has %d out, by its requests %d", n.id, q.id, b.Net, o.net[n.i][q.id.entity])
	}
	for _, r := range e.Results {
		q.aloneAt(limitState{r.Limit, r.Version})
	}
	q.aloneAt(limitState{e.Limit, e.Version})
}

// aloneAt takes in a limit that a site alone has decided. Several limits may have come
// and gone between two records, and each was granted up to: the results of the changes
// tell.
func (q *sequence) aloneAt(now limitState) {
	var last limitState
	if len(q.limits) > 0 {
		last = q.limits[len(q.limits)-1]
	}
	if now.version > last.version {
		q.limits = append(q.limits, now)
		q.raised += max(0, now.limit-last.limit)
		q.lowered = q.lowered || now.limit < last.limit
	}
}
