package sim

import (
	"maps"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// observer sees everything that becomes durable at any site or leaves it, and checks it.
type observer struct {
	s         *sim
	sequences map[sequenceID]*sequence
	catalogue catalogueModel
	// created are the sequences of all entities created, by name; see [observer.bound].
	created map[string][]*sequence
	// highest is the highest limit that was ever asked for, by name; outstanding is how
	// many tokens are out from the clients' view.
	highest     map[string]core.Tokens
	outstanding map[string]core.Tokens
	// ledgers are the clients' knowledge of each entity.
	ledgers map[sequenceID]*ledger
	// dead are the tokens of clients that have died, drifted the tokens that came back by
	// reconciliations: of each entity by itself.
	dead, drifted map[sequenceID]core.Tokens
	// charged is set for a transaction that charges tokens that no request has moved.
	charged bool
	// net is how many tokens each site has out by its recorded requests, of an entity
	// with all entities below it. own is how many it has out of the entity by itself.
	net, own []map[string]core.Tokens
	// replants is set for a transaction that changes where entities stand. mixes is how
	// many tokens its requests move.
	replants bool
	mixes    core.Tokens
	// names are the entities by generation, planted the entities that ever had a parent
	// or were a parent. ghosts is, by name, how many tokens were out of deleted entities.
	names   map[uint64]string
	planted map[string]bool
	// children are, at a cluster of a single site, all entities that ever stood right
	// below each.
	children map[string]map[string]bool
	ghosts   map[string]core.Tokens
	// mixed is by how much the tokens out go down and up within the transaction under
	// check, by entity; nil if it changes no lease and applies no reconciliation.
	mixed map[string]span
	// batch is the transaction that is about to become durable.
	batch *stored.Records
	// batches counts these transactions.
	batches int
	// logs are the states that reads may tell, by site and entity.
	logs []map[string]*readLog
	// departing are the sites that ever drained, stayed those whose drain was cancelled.
	departing, stayed map[core.SiteID]bool
	// messages are the messages of the batch that is handed over.
	messages []message.Envelope
	// put are the tokens that the requests of a transaction put out, by entity, bequeathedTo
	// the tokens that bequests put out. windows are the grants of rate quotas.
	put, bequeathedTo map[string]core.Tokens

	windows map[sequenceID]windows
	// note is what is known of the transaction under check.
	note note
	// flow has the last grants of buckets and sliding windows.
	flow map[sequenceID][]flowing
	// allocations are the tokens that clients that draw have of entities that are no rate quotas.
	// reserved are those of them in leases.
	allocations, reserved map[sequenceID]core.Tokens
	// underWay is how many direct transfers are under way, by the durable records.
	underWay int
}

func newObserver(s *sim) *observer {
	o := &observer{
		s: s, sequences: make(map[sequenceID]*sequence),
		created: make(map[string][]*sequence), highest: make(map[string]core.Tokens), outstanding: make(map[string]core.Tokens),
		dead: make(map[sequenceID]core.Tokens), drifted: make(map[sequenceID]core.Tokens),
		put: make(map[string]core.Tokens), bequeathedTo: make(map[string]core.Tokens), windows: make(map[sequenceID]windows), flow: make(map[sequenceID][]flowing), allocations: make(map[sequenceID]core.Tokens), reserved: make(map[sequenceID]core.Tokens),
		departing: make(map[core.SiteID]bool), stayed: make(map[core.SiteID]bool),
		ledgers: make(map[sequenceID]*ledger), names: make(map[uint64]string), planted: make(map[string]bool), children: make(map[string]map[string]bool), ghosts: make(map[string]core.Tokens),
		catalogue: catalogueModel{
			states:  []catalogueState{{entities: map[string]uint64{}, parents: map[string]string{}, roster: stored.Founded(s.founders)}},
			results: make(map[string]catalogueResult), ran: make(map[string]uint64),
		},
	}
	for range s.names {
		o.net, o.own = append(o.net, make(map[string]core.Tokens)), append(o.own, make(map[string]core.Tokens))
		o.logs = append(o.logs, make(map[string]*readLog))
	}
	o.sequence(sequenceID{})
	return o
}

func (o *observer) sequence(id sequenceID) *sequence {
	q := o.sequences[id]
	if q == nil {
		q = newSequence(id)
		o.sequences[id] = q
	}
	return q
}

// message checks a message that leaves a site: its accepts are durable.
func (o *observer) message(from *node, e *message.Envelope) {
	o.marked(from, e)
	o.sentEarly(from, e)
	if e.Claims != nil {
		o.claimsMessage(from, e.Claims)
		return
	}
	if e.Vouch != nil || e.Gossip != nil || e.Audit != nil {
		return
	}
	if e.Star != nil {
		o.starMessage(from, e)
		return
	}
	if e.Transfer != nil {
		o.transferMessage(from, e)
		return
	}
	if e.Handoff != nil {
		o.handoffMessage(from, e)
		return
	}
	if e.Leave != nil {
		o.leaveMessage(from, e.Leave)
		return
	}
	m := &e.Message
	if err := m.Validate(); err != nil {
		o.s.fail(Sound, "%s sends: %w", from.id, err)
		return
	}
	o.restsOnDisk(from, e)
	if m.Kind == avantan.Accept || m.Kind == avantan.AcceptOk {
		o.accept(sequenceID{e.Entity, e.Generation}, vote{m.Instance, m.Ballot}, from.id, m.Value)
	}
}

func (o *observer) accept(id sequenceID, v vote, site core.SiteID, value *avantan.Value) {
	q := o.sequence(id)
	before := len(q.chosen)
	quorum, err := o.mayVote(q, v, site)
	if err == nil {
		err = q.accept(v, site, value, quorum)
	}
	if err != nil {
		o.s.fail(Agreement, "%w", err)
		return
	}
	if len(q.chosen) == before {
		return
	}
	if o.s.tracing {
		o.s.note("%v: chosen in %d: %+v", id, v.t, *q.chosen[v.t])
	}
	if id.entity == "" {
		o.settleCatalogue(q)
		return
	}
	o.s.report.Instances++
	o.pledgedBy(q, v.t)
	o.settle(q)
}

func (o *observer) settleCatalogue(q *sequence) {
	for q.chosen[q.settled+1] != nil {
		q.settled++
		before := o.catalogue.last().roster
		created, err := o.catalogue.settle(q.chosen[q.settled])
		if err != nil {
			o.s.fail(Sound, "%w", err)
			return
		}
		for _, c := range created {
			e := o.sequence(c.id)
			e.created(c.limit, o.s.rates[e.id.entity].Keys, o.s.names, c.roster.View(c.roster.Version), c.roster.Version)
			o.began(c.id)
			o.created[c.id.entity] = append(o.created[c.id.entity], e)
			o.names[c.id.generation] = c.id.entity
			o.s.report.Creates++
			o.settle(e)
		}
		o.changedSites(&before, &o.catalogue.last().roster)
		for _, id := range o.catalogue.shifted {
			o.sequence(id).shifted = true
		}
		o.catalogue.shifted = nil
		o.s.report.Switches, o.s.report.Moves = o.catalogue.switches, o.catalogue.moves
		o.s.report.Prunes, o.s.report.Misplaced = o.catalogue.prunes, o.catalogue.misplaced
	}
}

func (o *observer) settle(q *sequence) {
	lowered, raised := q.lowered, q.raised
	if err := q.settle(o); err != nil {
		o.s.fail(Sound, "%w", err)
	}
	if q.lowered && !lowered {
		o.s.report.Lowerings++
	}
	if q.raised > raised {
		o.s.report.Raises++
	}
	o.conserved(q, true)
	o.conserved(q, false)
}

// state takes in a site's records about the sequence of a vote.
func (o *observer) state(n *node, id sequenceID, st *avantan.State) {
	o.monotonic(n, id, st)
	if st.Accepted != nil {
		o.accept(id, vote{st.Applied + 1, st.AcceptedAt}, n.id, st.Accepted)
	}
}

// drained checks a batch that a site has handed over.
func (o *observer) drained(n *node, batch *core.Effects) {
	r := &batch.Records
	o.messages = batch.Messages
	o.storedEarly(n, r)
	o.needless(n, batch)
	o.stood(n.drained, r)
	for i := range r.Entities {
		e := &r.Entities[i]
		q := o.sequence(sequenceID{e.Name, e.Generation})
		o.starRecord(n, q, false, e)
		o.transferRecord(n, q, false, e)
		o.handoffRecord(n, q, false, e)
	}
	n.knew[1] = n.lostMembers(false)
	if r.Catalogue != nil || len(r.Deleted) > 0 {
		o.checkSite(n)
		return
	}
	o.touched(n, n.drained, r)
}

func (o *observer) touched(n *node, d *Memory, r *stored.Records) {
	for i := range r.Books {
		o.checkBooks(n, d, r.Books[i].Name)
	}
	for i := range r.Entities {
		name := r.Entities[i].Name
		if !slices.ContainsFunc(r.Books, func(b stored.Books) bool { return b.Name == name }) {
			o.checkBooks(n, d, name)
		}
	}
}

// durable checks a batch that has become durable.
func (o *observer) durable(n *node, r *stored.Records) {
	o.ranOnce(n, r)
	if r.Catalogue != nil {
		o.state(n, sequenceID{}, &r.Catalogue.Protocol)
	}
	// Other moves come first: a decision of the majority variant has the sums checked at
	// once.
	for i := range r.Entities {
		e := &r.Entities[i]
		q := o.sequence(sequenceID{e.Name, e.Generation})
		o.starRecord(n, q, true, e)
		o.transferRecord(n, q, true, e)
		o.handoffRecord(n, q, true, e)
	}
	for i := range r.Entities {
		e := &r.Entities[i]
		o.state(n, sequenceID{e.Name, e.Generation}, &e.Protocol)
	}
	n.knew[0] = n.lostMembers(true)
	if r.Catalogue != nil || len(r.Deleted) > 0 {
		o.checkCatalogue(n, n.durable)
	}
	o.touched(n, n.durable, r)
	o.addsUp(n)
	o.stored(n, r)
	o.claimsStored(n, r)
}

// checkSite checks all that a site holds.
func (o *observer) checkSite(n *node) {
	o.checkCatalogue(n, n.drained)
	for _, name := range slices.Sorted(maps.Keys(n.drained.Entities)) {
		o.checkBooks(n, n.drained, name)
	}
}

// checkCatalogue compares a site's entities with the model.
func (o *observer) checkCatalogue(n *node, d *Memory) {
	if d.Catalogue == nil || len(o.s.nodes) == 1 && !o.alone(d) {
		return
	}
	at := d.Catalogue.Protocol.Applied
	if int(at) >= len(o.catalogue.states) {
		o.s.fail(Agreement, "%s has applied instance %d of the catalogue, decided are %d", n.id, at, len(o.catalogue.states)-1)
		return
	}
	want := o.catalogue.states[at]
	if d.Catalogue.Generation != want.generation || d.Catalogue.Numbered != want.numbered {
		o.s.fail(Catalogue, "%s: catalogue after %d: generation %d, %d changes; want %d, %d", n.id, at,
			d.Catalogue.Generation, d.Catalogue.Numbered, want.generation, want.numbered)
	}
	if d.Catalogue.Mode != want.mode {
		o.s.fail(Catalogue, "%s: mode after instance %d of the catalogue: %+v, want %+v", n.id, at, d.Catalogue.Mode, want.mode)
	}
	o.checkRoster(n, d.Catalogue, &want.roster)
	o.checkVersion(n, d.Catalogue, want.version)
	got, parents := make(map[string]uint64), make(map[string]string)
	for name, e := range d.Entities {
		got[name] = e.Generation
		if e.Parent != 0 {
			parents[name] = o.names[e.Parent]
		}
	}
	if !maps.Equal(got, want.entities) {
		o.s.fail(Catalogue, "%s: entities after instance %d of the catalogue: %v, want %v", n.id, at, got, want.entities)
	}
	if !maps.Equal(parents, want.parents) {
		o.s.fail(Catalogue, "%s: parents after instance %d of the catalogue: %v, want %v", n.id, at, parents, want.parents)
	}
	for name, e := range d.Entities {
		if e.Parent != 0 && want.entities[want.parents[name]] != e.Parent {
			o.s.fail(Catalogue, "%s: %q stands below generation %d, want %q, %d", n.id, name, e.Parent, want.parents[name], want.entities[want.parents[name]])
		}
	}
}

// checkBooks compares a site's record of an entity with the model.
func (o *observer) checkBooks(n *node, d *Memory, name string) {
	e, b := d.Entities[name], d.Books[name]
	q := o.sequence(sequenceID{name, e.Generation})
	if e.Name == "" || b.Generation != e.Generation {
		o.s.fail(Catalogue, "%s: books %+v, entity of generation %d", n.id, b, e.Generation)
		return
	}
	if len(o.s.nodes) == 1 {
		o.checkAlone(n, d, q)
		return
	}
	if q.limits == nil {
		o.s.fail(Catalogue, "%s has entity %q, generation %d, which was never created", n.id, name, e.Generation)
		return
	}
	at := e.Protocol.Applied
	if at > q.settled {
		o.s.fail(Agreement, "%s has applied instance %d of %v, decided are %d", n.id, at, q.id, q.settled)
		return
	}
	if e.Debt != q.debts[at] {
		o.s.fail(Catalogue, "%s: %v after %d owes %d, want %d", n.id, q.id, at, e.Debt, q.debts[at])
	}
	if e.Surplus != q.aside[at] {
		o.s.fail(Catalogue, "%s: %v after %d sets aside %d, want %d", n.id, q.id, at, e.Surplus, q.aside[at])
	}
	if want := q.written[at]; e.WrittenOff != want.tokens || max(q.voters[0], e.Appraised) != want.appraised {
		o.s.fail(Lost, "%s: %v after %d has written off %d up to version %d of the roster, want %+v", n.id, q.id, at, e.WrittenOff, e.Appraised, want)
	}
	if got := (limitState{e.Limit, e.Version}); got != q.limits[at] {
		o.s.fail(Catalogue, "%s: limit and version of %v after %d: %v, want %v", n.id, q.id, at, got, q.limits[at])
	}
	if max(1, e.Voters) != q.voters[at] {
		o.s.fail(Catalogue, "%s: %v after %d goes by version %d of the roster, want %d", n.id, q.id, at, e.Voters, q.voters[at])
	}
	durable := d == n.durable
	moved := q.view(n, durable).moved + q.transferred(n, durable) + q.bequeathed(n, durable)
	if got, want := holdings(&e, &b), q.holdings[at][n.i]+moved; got != want {
		o.s.fail(Conservation, "%s: %v after %d: left %d, pledged %+v, slices %+v, transfers %+v, net %d, that is %d; want %d", n.id,
			q.id, at, b.Left, e.Protocol.Pledge, e.Star.Slices, e.Transfer, b.Net, got, want)
	}
	o.asideStays(n, q, &e)
	if len(e.Protocol.Kept) > len(o.s.names) || len(e.Star.Slices) > star.MaxSlices {
		o.s.fail(Bounded, "%s: %v keeps %d decisions and %d slices", n.id, q.id, len(e.Protocol.Kept), len(e.Star.Slices))
	}
	if b.Left < 0 && !q.shifted {
		o.s.fail(Bounds, "%s: %v has %d left, and nothing moved below it or away", n.id, q.id, b.Left)
	}
	if durable {
		o.debt(n, q, b.Left < 0 || e.Debt > 0)
	}
	if durable && b.Net != o.net[n.i][name] {
		o.s.fail(Durability, "%s: %v has %d out, by its requests %d", n.id, q.id, b.Net, o.net[n.i][name])
	}
	o.conserved(q, durable)
}

// debt counts the debts that sites come out of.
func (o *observer) debt(n *node, q *sequence, in bool) {
	if q.inDebt == nil {
		q.inDebt = make([]bool, len(o.s.nodes))
	}
	if q.inDebt[n.i] && !in {
		o.s.report.DebtsPaid++
	}
	q.inDebt[n.i] = in
}

func holdings(e *stored.Entity, b *stored.Books) core.Tokens {
	sum := b.Left + b.Net + aside(e.Star.Slices)
	if e.Protocol.Pledge != nil {
		sum += e.Protocol.Pledge.Offered
	}
	return sum
}

// conserved is the equation of the package comment, for all sites at once. It ends when
// the first site drops the entity. Moves of star instances add up to nothing, as checked
// where a value is first seen, so they are left out. Tokens that direct transfers have
// taken out of books and not put into others count.
func (o *observer) conserved(q *sequence, durable bool) {
	if q.limits == nil || len(o.s.nodes) < len(o.s.names) || len(o.s.names) == 1 {
		return
	}
	flying, twice := o.bequests(q, durable)
	counts, below := q.counts(durable)
	sum := o.inNoBooks(q, durable) + flying + q.dropped(durable) - counts - below
	for i, n := range o.s.nodes {
		d := n.drained
		if durable || d == nil {
			d = n.durable
		}
		e, found := d.Entities[q.id.entity]
		at := avantan.Instance(0)
		switch {
		case found && e.Generation == q.id.generation:
			b := d.Books[q.id.entity]
			sum += holdings(&e, &b) - q.view(n, durable).moved
			at = e.Protocol.Applied
		case d.generation() < q.id.generation:
			sum += q.holdings[0][i]
		default:
			return
		}
		if at > q.settled {
			return
		}
		sum += q.holdings[q.settled][i] - q.holdings[at][i]
	}
	if counts != twice {
		o.s.fail(Conservation, "%v: bequests count %d tokens twice, open are bequests of %d", q.id, counts, twice)
	}
	limit, aside, debt, back := q.limits[q.settled].limit, q.aside[q.settled], q.debts[q.settled], q.written[q.settled].back
	if sum != limit-aside+debt+back {
		o.s.fail(Conservation, "%v after %d: %d tokens, the limit is %d, %d are set aside, %d are owed, %d written off came back", q.id, q.settled, sum, limit, aside, debt, back)
	}
}
