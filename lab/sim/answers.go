package sim

import (
	"fmt"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
)

// bound is the most tokens of an entity that may be out.
func (o *observer) bound(name string) core.Tokens {
	var sum core.Tokens
	for _, q := range o.created[name] {
		if o.vanished(q) {
			sum += max(q.limits[0].limit+q.raised, o.highest[name])
			continue
		}
		if len(o.s.nodes) == 1 || q.shifted {
			sum += q.limits[0].limit + q.raised
			continue
		}
		sum += q.limits[q.settled].limit + q.debts[q.settled]
	}
	return sum
}

// vanished reports whether a cluster of a single site has deleted an entity. Its limit
// may have been raised and granted up to in the same transaction, for a caller who no
// longer waits for the answer.
func (o *observer) vanished(q *sequence) bool {
	if len(o.s.nodes) != 1 || o.s.nodes[0].drained == nil {
		return false
	}
	return o.s.nodes[0].drained.Entities[q.id.entity].Generation != q.id.generation
}

// taken counts an acquire that was returned to its client. A lease counts as far as it
// has not ended meanwhile.
func (o *observer) taken(op *op, a *answer.Answer) {
	tokens := a.Tokens
	if op.ttl > 0 {
		l := op.at[op.taken].lease
		if l == nil {
			o.s.fail(Leases, "%v is granted, and there is no lease", op)
			return
		}
		tokens = l.tokens
		l.counted = tokens
	}
	if op.kind != acquireAll {
		if op.ttl == 0 {
			o.gotOf(op.entity, op.at[op.taken].generation, tokens)
		}
		o.takenOf(op.entity, tokens)
		return
	}
	for _, part := range op.at[op.taken].parts {
		o.gotOf(part.Entity, part.Generation, part.Tokens)
	}
	for _, part := range op.parts {
		o.takenOf(part.Entity, part.Tokens)
	}
}

// takenOf counts tokens of an entity that a client has got.
func (o *observer) takenOf(name string, tokens core.Tokens) {
	if rated(name) {
		return // its windows are judged
	}
	o.outstanding[name] += tokens
	if o.planted[name] {
		o.overGranted(name)
		return
	}
	if got, most := o.outstanding[name], o.bound(name); got > most {
		o.s.fail(OverGrant, "%d tokens of %q are out, at most %d may be", got, name, most)
	}
}

// reply checks an answer that leaves a site, and hands it to its client.
func (o *observer) reply(n *node, r core.Reply) {
	c := r.Call.(*call)
	if !n.calls[c] {
		if !c.cancelled {
			o.s.fail(ExactlyOnce, "%s answers %v without being asked: %+v", n.id, c.op, r.Answer)
		}
		return
	}
	delete(n.calls, c)
	a := r.Answer
	o.s.mixAnswer(n, &a)
	if o.s.tracing {
		o.s.note("%s answers %v: %v, tokens %d, left %d", n.id, c.op, a.Code, a.Tokens, a.Left)
	}
	if o.s.asked(n, c, &a) {
		return
	}
	if a.Code == answer.Unvouched {
		o.unvouched(n, c, a)
		return
	}
	if n.out && c.look == nil && a.Code != answer.Draining && a.Code != answer.Moved && a.Code != answer.Expired {
		// Started once more, it may find only sites that have not heard that it has left. So
		// it reads what it has, which is nothing, and does nothing for anybody.
		o.s.fail(Leaving, "%s, which has left, answers %v: %+v", n.id, c.op, a)
	}
	if n.stale != nil {
		o.s.fail(StaleData, "%s, on stale data, answers %v: %+v", n.id, c.op, a)
	}
	switch {
	case c.look != nil:
		o.answeredRead(n, c.look, &a)
		return
	case c.mutant && !c.op.kind.recorded():
		o.mutantChanged(n, c.op, a)
		return
	case c.mutant:
		if a.Code != answer.Reused && !c.refused(n, &a) {
			o.s.fail(ExactlyOnce, "%s answers %v with another body: %v", n.id, c.op, a.Code)
		}
		o.s.report.Reused++
		return
	case c.op.kind == renew:
		o.renewed(n, c, &a)
		return
	case c.op.kind.recorded():
		o.answered(n, c, a)
	default:
		o.changed(n, c, a)
	}
	lost := o.s.chances.lostReply
	if c.op.tries.roams {
		// Only then is anything to be undone.
		lost += o.s.chances.lostAway
	}
	if o.s.fails(LostReply, lost) {
		return
	}
	o.s.after(o.s.r.Int64N(3*millisecond), func() { c.op.returned(n, c, a) })
}

// exact checks a refusal where nothing fails and nothing is released: the
// tokens of the entity that lacks them are nowhere.
func (o *observer) exact(op *op, lacking string) {
	if !o.s.o.Hungry || op.wait < 5*second {
		return
	}
	free := o.bound(lacking)
	for _, n := range o.s.nodes {
		free -= n.drained.Books[lacking].Net
	}
	if free >= op.tokens {
		o.s.fail(Refusal, "%v is refused for want of %q, %d tokens are there", op, lacking, free)
	}
}

// changed checks the answer to an administrative change.
func (o *observer) changed(n *node, c *call, a answer.Answer) {
	op := c.op
	switch a.Code {
	case answer.Unknown:
		o.s.report.Unknown++
		op.maybe = true
		return
	case answer.NoQuorum:
		o.s.report.NoQuorum++
		return
	case answer.Expired:
		o.overdue(n, op)
		return
	case answer.Overloaded:
		return
	case answer.Draining:
		if !o.departing[n.id] {
			o.s.fail(Answers, "%s answers %v: %v, and it does not drain", n.id, op, a.Code)
		}
		return
	case answer.Changing:
		if op.kind == reconcile {
			// Nothing was proposed here. An earlier try may have been elsewhere.
			op.maybe = true
			return
		}
		// Also before the site has heard of the decision, which has a generation.
		if r, decided := o.catalogue.results[op.requestID]; !decided || r.code != answer.Changing || a.View().Generation == 0 {
			return
		}
	case answer.TooEarly:
		rate := op.kind == create && rated(op.entity)
		if !o.mayBeTooEarly(op) || a.Version() != newest {
			o.s.fail(Answers, "%s answers %v: %v, version %d", n.id, op, a.Code, a.Version())
		}
		// Nothing was proposed here. An earlier try may have been elsewhere.
		op.maybe = op.maybe || op.kind == reconcile || rate
		return
	case answer.Reused:
		if op.contradicted {
			// The other change may have been the first that a site heard of. Once the id
			// was forgotten, it may have been decided first.
			return
		}
	}
	switch op.kind {
	case setLimit, reconcile:
		o.limitSet(n, op, a)
		return
	case raise:
		o.raiseAnswered(n, op, &a)
		return
	}
	op.decided = true
	if len(o.s.nodes) > 1 {
		want, ok := o.catalogue.results[op.requestID]
		got := catalogueResult{a.Code, a.View().Generation + a.Mode().Decided.Version}
		if !ok || want != got {
			o.s.fail(Answers, "%s answers %v: %+v; decided is %+v", n.id, op, got, want)
		}
		o.modeSet(n, op, &a)
	}
	if a.Code == answer.OK && op.kind == remove {
		o.s.report.Deletes++
	}
}

// mutantChanged checks the answer to another change under a used id: if the
// id is known it is refused. Limits have their ids in the generation only.
func (o *observer) mutantChanged(n *node, op *op, a answer.Answer) {
	switch a.Code {
	case answer.Reused:
		o.s.report.Reused++
		return
	case answer.NoQuorum, answer.Unknown, answer.Overloaded, answer.Expired, answer.Draining, answer.Changing:
		return
	case answer.TooEarly:
		if o.mayBeTooEarly(op) {
			return // a site that has not heard of the raise looks for no id
		}
	}
	if g := a.View().Generation; op.kind == setLimit || op.kind == reconcile {
		q := o.sequence(sequenceID{op.entity, g})
		if op.answers[g] == "" || !q.results[op.requestID] {
			return
		}
	}
	o.s.fail(ExactlyOnce, "%s answers another change under the id of %v: %v", n.id, op, a.Code)
}

// mayBeTooEarly reports whether a change needs a version that a site may not know of.
func (o *observer) mayBeTooEarly(op *op) bool {
	needs := op.kind == reconcile || op.kind == create && rated(op.entity) || op.kind >= addSite && op.kind <= removeSite
	return needs && o.s.upgrade != nil
}

func (o *observer) limitSet(n *node, op *op, a answer.Answer) {
	switch a.Code {
	case answer.NotFound:
		op.maybe = true
		return
	case answer.OK:
		o.s.report.Limits++
		if op.kind == setLimit && a.View().Limit != op.limit {
			o.s.fail(Answers, "%s answers %v: limit %d", n.id, op, a.View().Limit)
		}
	case answer.Mismatch:
		if op.kind == reconcile && a.View().Generation == 0 {
			// The entity was created anew since the cut; nothing was proposed.
			op.maybe = true
			return
		}
	default:
		o.s.fail(Answers, "%s answers %v: %v", n.id, op, a.Code)
	}
	o.mayExceed(n, a.View())
	o.appliedBy(n, op, &a)
	got := fmt.Sprint(a.Code, a.View().Generation, a.View().Limit, a.View().Version)
	g := a.View().Generation
	if op.answers[g] != "" && op.answers[g] != got {
		o.s.fail(ExactlyOnce, "%s answers %v: %s, before %s", n.id, op, got, op.answers[g])
	} else if op.answers == nil {
		op.answers = make(map[uint64]string)
	}
	op.answers[g] = got
	op.decided = true
	if len(o.s.nodes) > 1 && !o.sequence(sequenceID{op.entity, g}).everHeld(op.requestID) {
		o.s.fail(Answers, "%s answers %v: %v, nothing is decided", n.id, op, a.Code)
	}
}
