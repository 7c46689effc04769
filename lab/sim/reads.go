package sim

import (
	"maps"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// readLog is the history of an entity stored at a site, as far as a read may tell of it.
type readLog struct {
	// nets are the tokens out at the site after each of its requests, in order. They are
	// the least and the most within a transaction that changes leases: their order among
	// its requests is not known.
	nets []span
	// states are the states after each transaction that stored more than books.
	states []readState
}

type span struct{ least, most core.Tokens }

type readState struct {
	generation     uint64
	parent         string
	limit          limitState
	applied        avantan.Instance
	moved, fetches uint64
	aside, granted core.Tokens
	// got and given are the tokens that direct transfers have brought and taken so far.
	got, given core.Tokens
}

// look is the durable state when a read was handed over, by entity.
type look struct {
	list bool
	name string
	logs map[string]looked
}

type looked struct {
	log          *readLog
	nets, states int
}

// readLog returns the log of an entity that a site has.
func (o *observer) readLog(n *node, name string) *readLog {
	l := o.logs[n.i][name]
	if l == nil {
		l = &readLog{nets: []span{{o.net[n.i][name], o.net[n.i][name]}}}
		o.logs[n.i][name] = l
	}
	return l
}

// stored takes in the records that have become durable.
func (o *observer) stored(n *node, r *stored.Records) {
	touched := make(map[string]bool)
	for i := range r.Entities {
		// A bequest changes the tokens of the entities above as well.
		for _, name := range n.durable.chain(r.Entities[i].Name) {
			touched[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(touched)) {
		e := new(n.durable.Entities[name])
		s := readState{
			generation: e.Generation, parent: n.durable.above(e.Name), limit: limitState{e.Limit, e.Version}, applied: e.Protocol.Applied, moved: e.Moved,
			fetches: e.Fetches, aside: aside(e.Star.Slices),
		}
		if p := e.Protocol.Pledge; p != nil {
			s.aside += p.Offered
		}
		if q := o.sequence(sequenceID{e.Name, e.Generation}); q.views != nil {
			s.granted = q.view(n, true).moved
		}
		if q := o.sequence(sequenceID{e.Name, e.Generation}); q.direct != nil {
			s.got, s.given = q.direct.view(n, true).got, q.direct.view(n, true).given
		}
		if q := o.sequence(sequenceID{e.Name, e.Generation}); q.handoffs != nil {
			v := q.handoffs.view(n, true)
			s.got += v.got + v.counts.in + v.below.in
			s.given += v.gave + v.counts.out + v.below.out
		}
		l := o.readLog(n, e.Name)
		l.states = append(l.states, s)
	}
}

// readSome has a client read an entity at a site, or list all.
func (s *sim) readSome() {
	n := s.nodes[s.r.IntN(len(s.nodes))]
	k := &look{list: s.chance(100), name: s.admin.names[s.r.IntN(len(s.admin.names))]}
	n.awake(func() { n.read(k) })
}

// read hands a read to a site.
func (n *node) read(k *look) {
	s := n.s
	if !n.up || s.violation != nil {
		return
	}
	k.logs = make(map[string]looked)
	for name, l := range s.observe.logs[n.i] {
		k.logs[name] = looked{l, len(l.nets), len(l.states)}
	}
	c := &call{op: &op{kind: read, entity: k.name}, look: k}
	n.calls[c] = true
	began, life := s.now, n.life
	var overdue func()
	overdue = func() {
		if n.life != life || !n.calls[c] {
			return
		}
		if due := max(began, n.resumes) + slack; due > s.now {
			s.after(due-s.now, overdue)
			return
		}
		s.fail(Deadline, "%s has not answered a read", n.id)
	}
	s.after(slack, overdue)
	if k.list {
		n.step(&input.List{Call: c, Count: len(s.admin.names) + len(s.drawn)})
		return
	}
	n.step(&input.Read{Call: c, Entity: k.name})
}

// answeredRead checks a site's views of its entities: each lies between the durable
// states when the read was handed over and when it was answered.
func (o *observer) answeredRead(n *node, k *look, a *answer.Answer) {
	o.s.report.Reads++
	views := a.Views()
	if !k.list && a.Code == answer.OK {
		views = []answer.View{*a.View()}
	}
	if a.Code != answer.OK && (k.list || a.Code != answer.NotFound) || a.More {
		o.s.fail(Answers, "%s answers a read: %v, more %v", n.id, a.Code, a.More)
	}
	for i := range views {
		v := &views[i]
		if !k.list && v.Name != k.name || i > 0 && views[i-1].Name >= v.Name {
			o.s.fail(Reads, "%s: asked for %q, tells of %+v", n.id, k.name, views)
		}
		o.viewed(n, k.logs[v.Name], v)
	}
	for _, name := range o.s.admin.names {
		was, told := k.logs[name], slices.ContainsFunc(views, func(v answer.View) bool { return v.Name == name })
		if (k.list || name == k.name) && was.states > 0 && was.log == o.logs[n.i][name] && !told {
			o.s.fail(Reads, "%s does not tell of %q, which it has had all the time", n.id, name)
		}
	}
}

// viewed checks an entity that was read.
func (o *observer) viewed(n *node, was looked, v *answer.View) {
	if o.sequence(sequenceID{v.Name, v.Generation}).limits == nil {
		o.s.fail(Reads, "%s tells of %+v, which was never created", n.id, v)
		return
	}
	o.mayExceed(n, v)
	l := o.logs[n.i][v.Name]
	if was.log != l || was.states == 0 {
		return // Created or deleted meanwhile.
	}
	// A window may be over before the site begins another.
	over := rated(v.Name) && v.Net >= 0
	if !o.s.rates[v.Name].Volatile && !o.s.inTree(v.Name) && !slices.ContainsFunc(l.nets[was.nets-1:], func(s span) bool { return (s.least <= v.Net || over) && v.Net <= s.most }) {
		o.s.fail(Reads, "%s: %q has %d out, by its requests meanwhile %v", n.id, v.Name, v.Net, l.nets[was.nets-1:])
	}
	meanwhile := l.states[was.states-1:]
	first, last := meanwhile[0], meanwhile[len(meanwhile)-1]
	limits := func(s readState) bool { return s.limit == limitState{v.Limit, v.Version} }
	if v.Generation != last.generation || v.Applied < first.applied || v.Applied > last.applied ||
		v.Moved < first.moved || v.Moved > last.moved || v.Fetches < first.fetches || v.Fetches > last.fetches || v.Version < first.limit.version || v.Version > last.limit.version {
		o.s.fail(Reads, "%s tells of %+v; it goes from %+v to %+v", n.id, v, first, last)
		return
	}
	if len(meanwhile) == 1 && (v.Offered != last.aside || !limits(last) || v.Parent != last.parent) {
		o.s.fail(Reads, "%s tells of %+v, durable is all the time %+v", n.id, v, last)
	}
	// A transaction takes in several steps: between them there may be states that were
	// never durable by themselves.
	like := func(s readState) bool { return s.applied == v.Applied && s.moved == v.Moved && limits(s) }
	i := slices.IndexFunc(meanwhile, like)
	if i < 0 {
		return
	}
	want := v.Limit - v.Surplus - v.WrittenOff + v.Debt
	if len(o.s.nodes) > 1 {
		if owed := o.sequence(sequenceID{v.Name, v.Generation}).debts[v.Applied]; v.Debt != owed {
			o.s.fail(Reads, "%s tells of %+v; after instance %d %d are owed", n.id, v, v.Applied, owed)
		}
		want = o.sequence(sequenceID{v.Name, v.Generation}).holdings[v.Applied][n.i]
	}
	// Direct transfers come and go meanwhile, and slices end without their outcome: nothing
	// in the answer numbers either.
	end := i
	for end+1 < len(meanwhile) && like(meanwhile[end]) {
		end++
	}
	from, to := meanwhile[max(i-1, 0)], meanwhile[end]
	least, most := meanwhile[i].granted, meanwhile[i].granted
	for _, s := range meanwhile[i : end+1] {
		least, most = min(least, s.granted), max(most, s.granted)
	}
	least, most = want+least+from.got-to.given, want+most+to.got-from.given
	if got := v.Left + v.Offered + v.Net; got < least || got > most {
		o.s.fail(Reads, "%s tells of %+v, that is %d tokens; by its decisions and transfers %d to %d", n.id, v, got, least, most)
	}
}
