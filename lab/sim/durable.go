package sim

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// promise is how far a site's durable state of a sequence has come.
type promise struct {
	applied              avantan.Instance
	promised, acceptedAt avantan.Ballot
}

// monotonic checks that a site's state of a sequence takes nothing back.
func (o *observer) monotonic(n *node, id sequenceID, st *avantan.State) {
	q := o.sequence(id)
	if q.promises == nil {
		q.promises = make([]promise, len(o.s.names))
	}
	was, is := &q.promises[n.i], promise{st.Applied, st.Promised, st.AcceptedAt}
	if is.applied < was.applied || is.applied == was.applied &&
		(is.promised.Compare(was.promised) < 0 || is.acceptedAt.Compare(was.acceptedAt) < 0) {
		o.s.fail(Monotonic, "%s: %v goes from %+v to %+v", n.id, id, *was, is)
	}
	*was = is
}

// asideStays checks that a site's tokens in a chosen value stay set aside until the site
// has applied it.
func (o *observer) asideStays(n *node, q *sequence, e *stored.Entity) {
	v := q.chosen[e.Protocol.Applied+1]
	if v == nil {
		return
	}
	c, in := v.Of(n.id)
	if p := e.Protocol.Pledge; in && (p == nil || *p != c) {
		o.s.fail(Integrity, "%s: %v: chosen in %d is %+v, set aside is %+v", n.id, q.id, e.Protocol.Applied+1, c, p)
	}
}

// pledgedBy checks that each site has set aside its tokens in a value just chosen.
func (o *observer) pledgedBy(q *sequence, t avantan.Instance) {
	for _, c := range q.chosen[t].Contributions {
		for _, n := range o.s.nodes {
			e, found := n.durable.Entities[q.id.entity]
			if n.id == c.Site && found && e.Generation == q.id.generation && e.Protocol.Applied == t-1 {
				o.asideStays(n, q, &e)
			}
		}
	}
}

// restsOnDisk checks that a message of the majority variant tells of nothing
// that its sender could lose.
func (o *observer) restsOnDisk(from *node, e *message.Envelope) {
	var st *avantan.State
	if e.Entity == "" {
		if from.durable.Catalogue != nil {
			st = &from.durable.Catalogue.Protocol
		}
	} else if rec, found := from.durable.Entities[e.Entity]; found {
		if rec.Generation != e.Generation {
			return
		}
		st = &rec.Protocol
	} else {
		return
	}
	if st == nil {
		st = new(avantan.State)
	}
	m := &e.Message
	ok := true
	switch m.Kind {
	case avantan.Election, avantan.ElectionOk, avantan.Accept, avantan.AcceptOk:
		ok = st.Applied >= m.Instance || st.Applied == m.Instance-1 && st.Promised.Compare(m.Ballot) >= 0
		if ok && st.Applied == m.Instance-1 && (m.Kind == avantan.Accept || m.Kind == avantan.AcceptOk) {
			ok = st.AcceptedAt.Compare(m.Ballot) >= 0
		}
	case avantan.Refuse:
		ok = st.Applied >= m.Instance || st.Promised.Compare(m.Promised) >= 0
	case avantan.Decision, avantan.Status, avantan.Abandon:
	case avantan.Applied, avantan.CatchUpAsk, avantan.CatchUp:
		ok = st.Applied >= m.Applied
	}
	if !ok {
		o.s.fail(Durability, "%s sends %+v of %q/%d; durable is %+v", from.id, *m, e.Entity, e.Generation, *st)
	}
}

// forgets checks how long the records of requests stay, by the site's own monotonic
// clock: as long as repeats are promised the first answer.
func (o *observer) forgets(n *node, r *stored.Records) {
	if len(r.Block.Records) > 0 {
		n.blocks[r.Block.Sequence] = n.fed
	}
	if r.ForgetBlocks == 0 {
		return
	}
	for _, b := range n.drained.Blocks.List {
		if b.Number >= r.ForgetBlocks {
			break
		}
		if age := micros(float64(o.s.now-n.blocks[b.Number])*n.drift) + slack; age < retention {
			o.s.fail(ExactlyOnce, "%s forgets the requests that it answered %d ms ago", n.id, age/millisecond)
		}
	}
}
