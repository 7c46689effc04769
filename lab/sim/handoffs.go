package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// handoffs is the knowledge of an observer of all sites about the bequests of a sequence.
// A pair is a leaver, as the donor, and its heir.
type handoffs struct {
	// views are the sites' parts, by site: durable and handed over.
	views [][2]handoffView
	// made are the durable bequests of a pair, by number from 1.
	made map[pair][]handoff.Estate
	// taken is the last bequest durably taken. brief is one that an heir takes and forgets in
	// the same transaction, as the leaver is out: a message of that transaction tells it.
	taken, brief map[pair]uint64
	// over is set once a site has sent a message about the entity, and dropped it.
	over bool
}

// handoffView is a site's part, as of its last record.
type handoffView struct {
	state handoff.State
	// got and gave are the tokens left that bequests have brought in and taken out so far.
	got, gave core.Tokens
	// counts are the tokens out that bequests have brought into the net and taken out;
	// below are those of bequests of entities below.
	counts, below flow
	// took are the last bequests taken, also of sites that it has forgotten since.
	took []handoff.Taken
	// dropped are its bequests to sites lost for good.
	dropped []*handoff.Bequest
}

func (v *handoffView) moved() core.Tokens { return v.got - v.gave + v.counts.net() + v.below.net() }

// flow is a sum of what came and a sum of what went.
type flow struct{ in, out core.Tokens }

func (f *flow) add(tokens core.Tokens) {
	f.in += max(0, tokens)
	f.out += max(0, -tokens)
}

func (f flow) net() core.Tokens { return f.in - f.out }

func givenTo(st *handoff.State, heir core.SiteID) uint64 {
	for _, g := range st.Given {
		if g.Heir == heir {
			return g.Number
		}
	}
	return 0
}

func takenOf(st *handoff.State, leaver core.SiteID) handoff.Taken {
	for _, t := range st.Taken {
		if t.Leaver == leaver {
			return t
		}
	}
	return handoff.Taken{}
}

// items are the tokens of all items of an estate.
func items(e *handoff.Estate) (sum core.Tokens) {
	for i := range e.Items {
		sum += e.Items[i].Tokens
	}
	return sum
}

// leavesWith is the number of tokens out that leave the books of a leaver as its heir is lost:
// all of a rate quota, whether or not the lost heir has them. They may have come back there.
func (s *sim) leavesWith(name string, e *handoff.Estate) core.Tokens {
	if !s.comesBack(name) {
		return 0
	}
	return max(0, e.Net) + items(e)
}

// idOf is the id of the lease in an item.
func idOf(item *handoff.Item) string {
	var l struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(item.Data, &l) != nil {
		return ""
	}
	return l.ID
}

// handed is the change of a site's part by a transaction: the bequest that it closes, the
// bequest that it opens, and those that it takes.
type handed struct {
	closed, opened *handoff.Bequest
	dropped        bool
	takes          []handoff.Taken
}

// handedBetween compares two states of a site's part. dropped says that the bequest that
// ends was dropped with its heir.
func handedBetween(was, is *handoff.State) handed {
	var h handed
	if was.Open != nil && (is.Open == nil || is.Open.Heir != was.Open.Heir || is.Open.Number != was.Open.Number) {
		h.closed = was.Open
		h.dropped = givenTo(is, was.Open.Heir) == 0
	}
	if is.Open != nil && (was.Open == nil || h.closed != nil) {
		h.opened = is.Open
	}
	for _, t := range is.Taken {
		if t.Number != takenOf(was, t.Leaver).Number {
			h.takes = append(h.takes, t)
		}
	}
	return h
}

func (o *observer) handoffsOf(q *sequence) *handoffs {
	if q.handoffs == nil {
		q.handoffs = &handoffs{
			views: make([][2]handoffView, len(o.s.names)), made: make(map[pair][]handoff.Estate),
			taken: make(map[pair]uint64), brief: make(map[pair]uint64),
		}
	}
	return q.handoffs
}

func (x *handoffs) view(n *node, durable bool) *handoffView {
	if durable {
		return &x.views[n.i][0]
	}
	return &x.views[n.i][1]
}

// place is a site's place in the cluster.
func (o *observer) place(site core.SiteID) int { return slices.Index(o.s.names, site) }

// handoffRecord takes in the handoffs of a record of a site.
func (o *observer) handoffRecord(n *node, q *sequence, durable bool, e *stored.Entity) {
	is := &e.Handoff
	wentBy := q.goesBy(n, durable, e.Voters)
	if q.handoffs == nil && is.Open == nil && len(is.Given) == 0 && len(is.Taken) == 0 {
		return
	}
	x := o.handoffsOf(q)
	view := x.view(n, durable)
	was := view.state
	d := n.drained
	if durable {
		d = n.durable
	}
	o.numbersGrow(n, q, d, &was, is)
	if !durable {
		o.takenBriefly(n, q, is)
	}
	h := o.handedOf(n, q, view, d.roster(), &was, is)
	before := view.counts
	if h.closed != nil {
		p := pair{n.i, o.place(h.closed.Heir)}
		switch {
		case h.dropped:
			view.dropped = append(slices.Clone(view.dropped), h.closed)
			view.counts.add(-o.s.leavesWith(q.id.entity, &h.closed.Estate))
			if durable {
				o.bequestDropped(n, q, h.closed)
			}
		case x.taken[p] < h.closed.Number && x.over:
		case x.taken[p] < h.closed.Number:
			o.s.fail(Integrity, "%s: %v: bequest %d to %s is closed, %d are durably taken", n.id, q.id, h.closed.Number, h.closed.Heir, x.taken[p])
		default:
			view.got += h.closed.Estate.Owed
			view.counts.add(-max(0, h.closed.Estate.Net) - items(&h.closed.Estate))
		}
	}
	if b := h.opened; b != nil {
		view.gave += b.Estate.Left
		view.counts.add(max(0, -b.Estate.Net))
		if durable {
			o.bequestMade(n, q, b)
			// It may vote again since, as others have let it vote before they knew of the drain.
			if votes := o.votedOn(n, wentBy, e); votes != nil && !o.stayed[n.id] {
				o.s.fail(Leaving, "%s: %v: bequeaths, and votes on the entity: %v", n.id, q.id, votes)
			}
		}
	}
	for _, t := range h.takes {
		o.bequestTaken(n, q, durable, view, &t)
	}
	view.state = is.Clone()
	if view.counts == before {
		return
	}
	for _, above := range d.sums(e.Name)[1:] {
		id := sequenceID{above, d.Entities[above].Generation}
		below := &o.handoffsOf(o.sequence(id)).view(n, durable).below
		below.in += view.counts.in - before.in
		below.out += view.counts.out - before.out
	}
}

// goesBy notes the version of the roster that a site's record of the entity goes by, and
// returns the version of the record before.
func (q *sequence) goesBy(n *node, durable bool, version uint16) (before uint16) {
	if q.wentBy == nil {
		q.wentBy = make([][2]uint16, len(n.s.names))
	}
	at := &q.wentBy[n.i][0]
	if !durable {
		at = &q.wentBy[n.i][1]
	}
	before, *at = *at, version
	return before
}

// votedOn is the view that an entity goes by, if a site votes in it and in the view of its
// record before; else nil.
func (o *observer) votedOn(n *node, before uint16, e *stored.Entity) avantan.View {
	r := &o.catalogue.last().roster
	now := r.View(max(1, e.Voters))
	if !now.Has(n.id) || !r.View(max(1, before)).Has(n.id) {
		return nil
	}
	return now
}

// takenBriefly notes a bequest that a site takes and forgets in the same transaction.
func (o *observer) takenBriefly(n *node, q *sequence, is *handoff.State) {
	for i := range o.messages {
		e := &o.messages[i]
		if m := e.Handoff; m != nil && e.Entity == q.id.entity && e.Generation == q.id.generation && m.Taken > takenOf(is, m.To).Number {
			q.handoffs.brief[pair{o.place(m.To), n.i}] = m.Taken
		}
	}
}

// handedOf is handedBetween, with the bequests taken briefly of sites that are out by a
// roster.
func (o *observer) handedOf(n *node, q *sequence, view *handoffView, r *stored.Roster, was, is *handoff.State) handed {
	h := handedBetween(was, is)
	if q.handoffs == nil || r == nil {
		return h
	}
	for p, number := range q.handoffs.brief {
		leaver := o.s.names[p.donor]
		took := func(t handoff.Taken) bool { return t.Leaver == leaver && t.Number >= number }
		if p.receiver == n.i && outside(r, leaver) && takenOf(is, leaver).Number == 0 && !slices.ContainsFunc(view.took, took) {
			h.takes = append(h.takes, handoff.Taken{Leaver: leaver, Number: number})
		}
	}
	return h
}

// numbersGrow checks that a site's numbers of bequests are never taken back, but of sites
// that are out.
func (o *observer) numbersGrow(n *node, q *sequence, d *Memory, was, is *handoff.State) {
	out := func(site core.SiteID) bool { r := d.roster(); return r != nil && outside(r, site) }
	for _, g := range was.Given {
		if now := givenTo(is, g.Heir); now != g.Number && now != g.Number+1 && (now > 0 || !out(g.Heir)) {
			o.s.fail(Monotonic, "%s: %v: bequests given %+v become %d", n.id, q.id, g, now)
		}
	}
	for _, t := range was.Taken {
		if now := takenOf(is, t.Leaver).Number; now != t.Number && now != t.Number+1 && (now > 0 || !out(t.Leaver)) {
			o.s.fail(Monotonic, "%s: %v: bequests taken %+v become %d", n.id, q.id, t, now)
		}
	}
}

// bequestMade notes a durable bequest.
func (o *observer) bequestMade(n *node, q *sequence, b *handoff.Bequest) {
	x, p := q.handoffs, pair{n.i, o.place(b.Heir)}
	if b.Number != uint64(len(x.made[p]))+1 {
		o.s.fail(ExactlyOnce, "%s: %v: bequest %d to %s, after %d", n.id, q.id, b.Number, b.Heir, len(x.made[p]))
		return
	}
	if !o.drainKnown(n, b.Heir) {
		o.s.fail(Leaving, "%s: %v: bequeaths to %s, which does not know of the drain", n.id, q.id, b.Heir)
	}
	x.made[p] = append(x.made[p], b.Estate)
	o.s.report.Bequests++
	o.s.loser.begins(inBequest, p.receiver)
}

// drainKnown reports whether a heir durably knows that a site drains.
func (o *observer) drainKnown(n *node, heir core.SiteID) bool {
	mine, theirs := n.drained.roster(), o.s.nodes[o.place(heir)].durable.Catalogue
	if mine == nil || theirs == nil {
		return false
	}
	// The site may know already that its drain was cancelled.
	seat := mine.Seat(n.id)
	return seat.State != stored.SeatDraining || theirs.Protocol.Applied >= seat.Since
}

// bequestTaken checks a bequest that a site takes: its leaver has durably made it.
func (o *observer) bequestTaken(n *node, q *sequence, durable bool, view *handoffView, t *handoff.Taken) {
	x, p := q.handoffs, pair{o.place(t.Leaver), n.i}
	if t.Number > uint64(len(x.made[p])) {
		o.s.fail(Durability, "%s: %v: takes %+v, durably made are %d", n.id, q.id, t, len(x.made[p]))
		return
	}
	e := &x.made[p][t.Number-1]
	view.got += e.Left
	view.gave += e.Owed
	view.counts.add(e.Net)
	view.counts.add(items(e))
	view.took = slices.DeleteFunc(slices.Clone(view.took), func(was handoff.Taken) bool { return was.Leaver == t.Leaver })
	view.took = append(view.took, *t)
	if !durable {
		return
	}
	if t.Number != x.taken[p]+1 {
		o.s.fail(AppliedOnce, "%s: %v: takes %+v, after %d", n.id, q.id, t, x.taken[p])
	}
	x.taken[p] = t.Number
	o.inheritsGrants(q, p.donor, p.receiver)
	o.s.report.BequestsTaken++
}

// handoffs returns the handoffs of a sequence by a site's record.
func (n *node) handoffs(q *sequence, durable bool) *handoff.State {
	d := n.drained
	if durable || d == nil {
		d = n.durable
	}
	if e, found := d.Entities[q.id.entity]; found && e.Generation == q.id.generation {
		return &e.Handoff
	}
	return new(handoff.State)
}

// estate returns the estate of a durable bequest; nil for none.
func (o *observer) estate(q *sequence, leaver core.SiteID, heir *node, number uint64) *handoff.Estate {
	if q.handoffs == nil {
		return nil
	}
	made := q.handoffs.made[pair{o.place(leaver), heir.i}]
	if number == 0 || number > uint64(len(made)) {
		return nil
	}
	return &made[number-1]
}

// handoffMessage checks that a message that leaves rests on durable records.
func (o *observer) handoffMessage(from *node, e *message.Envelope) {
	m := e.Handoff
	if err := m.Validate(); err != nil {
		o.s.fail(Sound, "%s sends: %w", from.id, err)
		return
	}
	q := o.sequence(sequenceID{e.Entity, e.Generation})
	rec, found := from.durable.Entities[e.Entity]
	if !found || rec.Generation != e.Generation {
		// The entity was deleted in the same batch, so that nothing else tells.
		x, p := o.handoffsOf(q), pair{o.place(m.To), from.i}
		x.over = true
		x.taken[p] = max(x.taken[p], m.Taken)
		return
	}
	t := takenOf(&rec.Handoff, m.To)
	ok := t.Number >= m.Taken || outside(&o.catalogue.last().roster, m.To)
	if m.Kind == handoff.Bequeath {
		est := o.estate(q, from.id, o.s.nodes[o.place(m.To)], m.Number)
		ok = ok && est != nil && sameEstate(est, &m.Estate)
	}
	if !ok {
		o.s.fail(Durability, "%s sends %+v of %q/%d; durable is %+v", from.id, *m, e.Entity, e.Generation, rec.Handoff)
	}
}

func sameEstate(a, b *handoff.Estate) bool {
	return a.Left == b.Left && a.Owed == b.Owed && a.Net == b.Net && slices.EqualFunc(a.Items, b.Items, func(x, y handoff.Item) bool {
		return x.Tokens == y.Tokens && bytes.Equal(x.Data, y.Data)
	})
}

// leaveMessage checks a message about a site that leaves.
func (o *observer) leaveMessage(from *node, m *message.Leave) {
	var err error
	switch m.Kind {
	case message.LeaveEmpty:
		// In the batch of the message it may have heard that its drain was cancelled since.
		if err = o.empty(from); err == nil && !from.durable.leaves(from.id) && !from.drainedBefore {
			err = fmt.Errorf("it does not drain")
		}
	case message.LeaveClear:
		err = o.clear(from, o.s.nodes[o.place(m.To)])
	case message.LeaveOut:
		if !outside(&o.catalogue.last().roster, m.To) {
			err = fmt.Errorf("%s is not out", m.To)
		}
	}
	if err != nil {
		o.s.fail(Leaving, "%s tells %s %v: %w", from.id, m.To, m.Kind, err)
	}
}

// inFlight reports whether tokens of a site's entity are under way to a receiver, empty for
// any. A site may know that its tokens were credited before that is durable.
func (o *observer) inFlight(n *node, e *stored.Entity, to core.SiteID) bool {
	return slices.ContainsFunc(e.Transfer.Debits, func(d transfer.Debit) bool {
		if d.Amount == 0 || to != "" && d.Receiver != to {
			return false
		}
		at := o.s.nodes[o.place(d.Receiver)].durable.Entities[e.Name]
		return at.Generation == e.Generation && !slices.ContainsFunc(at.Transfer.Credits, func(c transfer.Credit) bool {
			return c.Donor == n.id && c.Seq >= d.Seq
		})
	})
}

// clear reports why something is under way between a site and a site that leaves.
func (o *observer) clear(n, of *node) error {
	for name, e := range n.drained.Entities {
		if o.inFlight(n, &e, of.id) {
			return fmt.Errorf("%q: %+v", name, e.Transfer.Debits)
		}
		for i := range e.Star.Slices {
			s := &e.Star.Slices[i]
			if s.ID.Leader == of.id && !s.Committed {
				return fmt.Errorf("%q: %+v", name, s)
			}
		}
	}
	for _, c := range n.drained.Claims {
		// An acquire that has waited there makes a claim afterwards. It never ran at the site
		// that leaves. A claim of a third site may have left a tombstone there, which says so.
		if p := o.s.opOf(c.Key); slices.Contains(c.Sites, of.id) && (p == nil || !p.at[of.i].blank()) {
			return fmt.Errorf("claim %+v", c)
		}
	}
	return nil
}
