package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
)

// ledger is what clients know of an entity of one generation: what they were
// answered to have got of it, and what they began to give back that may come into
// its books.
type ledger struct {
	got, gave core.Tokens
	// most is the most by which more was given than got, at any time. A site counts
	// an acquire before it answers, and a release after it was asked for, so that no
	// more than this is ever missing of what is out.
	most core.Tokens
}

// carelessOf is of how many seeds one has clients that release too much.
const carelessOf = 4

// mayRun is how long after a release was first asked for it may still run.
const mayRun = keepTrying + 30*second

// began opens the ledger of an entity that is created: releases of an earlier one
// of that name that are under way come into its books.
func (o *observer) began(id sequenceID) {
	l := &ledger{}
	for _, p := range slices.Backward(o.s.requests) {
		if p.issued+mayRun < o.s.now {
			break
		}
		if p.entity == id.entity && p.kind == release && p.lease == nil {
			l.gives(p.tokens)
		}
	}
	o.ledgers[id] = l
}

func (l *ledger) gives(tokens core.Tokens) {
	l.gave += tokens
	l.most = max(l.most, l.gave-l.got)
}

// given counts a release that a client asks for.
func (o *observer) given(name string, tokens core.Tokens) {
	for _, e := range o.created[name] {
		if l := o.ledgers[e.id]; l != nil {
			l.gives(tokens)
		}
	}
}

// gotOf counts tokens that a client was answered to have.
func (o *observer) gotOf(name string, generation uint64, tokens core.Tokens) {
	if l := o.ledgers[sequenceID{name, generation}]; l != nil {
		l.got += tokens
	}
}

// missing is the most that can ever have been missing of what is out of an entity:
// of all that ever stood below it too.
func (o *observer) missing(q *sequence) core.Tokens {
	most := o.ledgers[q.id].most
	for name := range o.everBelow(q.id.entity) {
		for _, e := range o.created[name] {
			if l := o.ledgers[e.id]; l != nil && e.id != q.id {
				most += l.most
			}
		}
	}
	return most
}

// everBelow are the names that ever stood below an entity of a name.
func (o *observer) everBelow(name string) map[string]bool {
	below := make(map[string]bool)
	if !o.planted[name] && o.s.report.Trees == 0 {
		return below
	}
	if len(o.s.nodes) == 1 {
		o.addBelow(below, name)
		return below
	}
	for _, st := range o.catalogue.states {
		for other := range st.parents {
			for at, found := st.parents[other]; found; at, found = st.parents[at] {
				if at == name {
					below[other] = true
				}
			}
		}
	}
	return below
}

// stood notes, for a cluster of one site, where entities stand after a transaction
// and where its changes put entities meanwhile. The model has no states of the
// catalogue there.
func (o *observer) stood(after *Memory, r *core.Records) {
	if len(o.s.nodes) != 1 {
		return
	}
	note := func(parent, child string) {
		if parent == "" {
			return
		}
		if o.children[parent] == nil {
			o.children[parent] = make(map[string]bool)
		}
		o.children[parent][child] = true
	}
	for name := range after.Entities {
		note(after.above(name), name)
	}
	for i := range r.Changes {
		note(r.Changes[i].Change.Parent, r.Changes[i].Change.Name)
	}
}

// addBelow adds all that ever stood below an entity of a cluster of one site.
func (o *observer) addBelow(below map[string]bool, name string) {
	for child := range o.children[name] {
		if !below[child] {
			below[child] = true
			o.addBelow(below, child)
		}
	}
}

// asideWithin checks what is set aside of an entity once that is decided.
func (o *observer) asideWithin(q *sequence, aside core.Tokens) {
	o.s.report.SetAside++
	if most := o.missing(q); aside > most {
		o.s.fail(Surplus, "%v: %d are set aside as surplus, clients have released at most %d that they had not acquired", q.id, aside, most)
	}
}

// surplusFound checks, once nothing moves any more, that all that is missing of an entity
// is set aside.
func (o *observer) surplusFound() {
	for _, name := range o.s.admin.names {
		e, found := o.s.nodes[0].durable.Entities[name]
		if !found {
			continue
		}
		out := e.Surplus
		for _, n := range o.s.nodes {
			out += n.durable.Books[name].Net
		}
		if out < 0 {
			o.s.fail(Surplus, "after healing, %d of %q are missing, and %d set aside", e.Surplus-out, name, e.Surplus)
		}
	}
}
