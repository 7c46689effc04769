package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
)

// ledger is the clients' knowledge of an entity of a generation: the tokens that answers
// gave them, and the tokens that they began to give back and that may come into its
// books.
type ledger struct {
	got, gave core.Tokens
	// most is the most by which more was given than got, at any time. A site counts an
	// acquire before it answers, and a release after it was asked for. So the tokens out
	// never miss more than this.
	most core.Tokens
}

// carelessOf is how many seeds there are for each seed with clients that release too
// much.
const carelessOf = 4

// mayRun is how long after a release was first asked for it may still run.
const mayRun = keepTrying + 30*second

// began opens the ledger of an entity that is created: releases under way of an earlier
// entity of that name come into its books.
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

// missing is the most tokens that the tokens out of an entity can ever have missed,
// including all entities that ever stood below it.
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

// stood notes, for a cluster of a single site, where entities stand after a transaction
// and where its changes put entities meanwhile. The model has no states of the catalogue
// there.
func (o *observer) stood(after *Memory, r *stored.Records) {
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

// addBelow adds all entities that ever stood below an entity of a cluster of a single
// site.
func (o *observer) addBelow(below map[string]bool, name string) {
	for child := range o.children[name] {
		if !below[child] {
			below[child] = true
			o.addBelow(below, child)
		}
	}
}

// asideWithin checks the surplus of an entity once it is decided.
func (o *observer) asideWithin(q *sequence, aside core.Tokens) {
	o.s.report.SetAside++
	if most := o.missing(q) + o.astrayBelow(q) + o.beyondEscrow(q); aside > most {
		o.s.fail(Surplus, "%v: %d are set aside as surplus, clients have released at most %d that they had not acquired", q.id, aside, most)
	}
}

// surplusFound checks, once nothing moves any more, that all missing tokens of an entity
// are set aside.
func (o *observer) surplusFound() {
	for _, name := range o.s.admin.names {
		e, found := o.s.inside()[0].durable.Entities[name]
		if !found {
			continue
		}
		out := e.Surplus + e.WrittenOff
		for _, n := range o.s.inside() {
			out += n.durable.Books[name].Net
		}
		if out < 0 {
			o.s.fail(Surplus, "after healing, %d of %q are missing, and %d set aside", e.Surplus-out, name, e.Surplus)
		}
	}
}
