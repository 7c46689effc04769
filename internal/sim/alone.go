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
		o.names[id.generation] = id.entity
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
	if got := holdings(&e, &b); got != e.Limit-e.Surplus {
		o.s.fail(Conservation, "%s: %v: %d tokens, the limit is %d, %d are set aside", n.id, q.id, got, e.Limit, e.Surplus)
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
	q.aloneForgets(e.Results)
}

// aloneAt takes in a limit that a site alone has decided. Several may have come
// and gone between two records, and each of them was granted up to: the results
// of the changes tell.
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

// aloneForgets notes the changes whose results a site alone has dropped, or has
// dropped and then decided anew.
func (q *sequence) aloneForgets(results []core.LimitResult) {
	now := make(map[string]uint64, len(results))
	for _, r := range results {
		now[r.RequestID] = r.Version
	}
	for id, version := range q.aloneResults {
		if now[id] != version {
			q.forgotten[id] = true
		}
	}
	q.aloneResults = now
}
