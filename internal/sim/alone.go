package sim

import "github.com/samya-db/samya/site/core"

// alone settles what a cluster of one site has decided. It is decided as soon
// as it is accepted, so that the value is never seen in between: what was
// created is taken from the records.
func (o *observer) alone(d *Memory) bool {
	for _, ch := range inOrder(d.changes) {
		id := sequenceID{ch.Change.Name, ch.Generation}
		if ch.Change.Kind != core.CreateEntity || ch.Outcome != core.OK {
			continue
		}
		e := o.sequence(id)
		if e.limits == nil {
			o.s.report.Creates++
			o.created[id.entity] = append(o.created[id.entity], e)
		}
		// A crash may have lost the first creation of that generation.
		if e.limits == nil || len(e.limits) == 1 && e.limits[0].limit != ch.Change.Limit {
			e.created(ch.Change.Limit, 1)
		}
	}
	return false
}

// checkAlone checks a site that has no others.
func (o *observer) checkAlone(n *node, d *Memory, q *sequence) {
	e, b := d.entities[q.id.entity], d.books[q.id.entity]
	o.alone(d)
	if got := holdings(&e, &b); got != e.Limit {
		o.s.fail(Conservation, "%s: %v: %d tokens, the limit is %d", n.id, q.id, got, e.Limit)
	}
	if d != n.durable {
		return
	}
	if b.Net != o.net[n.i][q.id.entity] {
		o.s.fail(Durability, "%s: %v has %d out, by its requests %d", n.id, q.id, b.Net, o.net[n.i][q.id.entity])
	}
	last := limitState{0, 0}
	if len(q.limits) > 0 {
		last = q.limits[len(q.limits)-1]
	}
	if e.Version != last.version {
		q.limits = append(q.limits, limitState{e.Limit, e.Version})
		q.raised += max(0, e.Limit-last.limit)
		q.lowered = q.lowered || e.Limit < last.limit
	}
}
