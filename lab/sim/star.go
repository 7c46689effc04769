package sim

import (
	"slices"
	"strings"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/redistribute"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// members is a set of sites, by their place in the cluster.
type members uint32

func (m members) has(i int) bool { return m>>i&1 != 0 }

// starInstance is the knowledge of an observer of all sites about a star instance. Only
// durable records count.
type starInstance struct {
	value *avantan.Value
	// r are the members of the value; grants less offers are the moves, by site.
	r     members
	moves []core.Tokens
	// pledged, accepted, aborted, applied, concluded and gone are who has done so durably.
	pledged, accepted, aborted, applied, concluded, gone members
	// unsure are the members that can only conclude, as another has concluded.
	unsure members
	// early are the sites that have told of a vote that was never in their records.
	early   members
	pledges []avantan.Contribution
}

func (x *starInstance) committed(and members) bool {
	return x.value != nil && x.r&^(x.accepted|and) == 0
}

// starView is a site's part in the star instances of a sequence, as of its last record:
// durable, or handed over.
type starView struct {
	slices   []star.Slice
	floors   []star.ID
	reserved uint64
	// moved is how many tokens the applied instances have given it, applied their number.
	moved   core.Tokens
	applied uint64
	// fresh is how many more the record under check applies and forgets.
	fresh uint64
}

// aside is how many tokens slices have set aside.
func aside(list []star.Slice) core.Tokens {
	var sum core.Tokens
	for i := range list {
		if !list[i].Committed {
			sum += list[i].Pledge.Offered
		}
	}
	return sum
}

// starRecord takes in the star part of a record of a site.
func (o *observer) starRecord(n *node, q *sequence, durable bool, e *stored.Entity) {
	view := q.view(n, durable)
	was, is := view.slices, e.Star.Slices
	if len(was) == 0 && len(is) == 0 && e.Star.Reserved == 0 && len(e.Star.Floors) == 0 {
		return
	}
	if e.Star.Reserved < view.reserved {
		o.s.fail(Monotonic, "%s: %v: counters reserved go from %d to %d", n.id, q.id, view.reserved, e.Star.Reserved)
	}
	for _, f := range view.floors {
		if now := floorOf(e.Star.Floors, f.Leader); now < f.Counter {
			o.s.fail(Monotonic, "%s: %v: floor %v goes to %d", n.id, q.id, f, now)
		}
	}
	view.reserved, view.floors, view.slices = e.Star.Reserved, e.Star.Floors, is
	view.fresh = e.Moved - view.applied - appliedNow(was, is)
	i, j := 0, 0
	for i < len(was) || j < len(is) {
		switch {
		case j == len(is) || i < len(was) && was[i].ID.Compare(is[j].ID) < 0:
			o.starGone(n, q, durable, view, &was[i])
			i++
		case i == len(was) || was[i].ID.Compare(is[j].ID) > 0:
			o.starSlice(n, q, durable, view, nil, &is[j])
			j++
		default:
			o.starSlice(n, q, durable, view, &was[i], &is[j])
			i++
			j++
		}
	}
	if e.Moved != view.applied {
		o.s.fail(AppliedOnce, "%s: %v: %d star instances applied, by its slices %d", n.id, q.id, e.Moved, view.applied)
	}
}

func floorOf(floors []star.ID, leader avantan.SiteID) uint64 {
	for _, f := range floors {
		if f.Leader == leader {
			return f.Counter
		}
	}
	return 0
}

// starSlice checks a slice of a record against the slice before.
func (o *observer) starSlice(n *node, q *sequence, durable bool, view *starView, was, is *star.Slice) {
	x := q.starOf(is.ID, len(o.s.names))
	self := members(1) << n.i
	if was == nil {
		if x.gone&self != 0 {
			o.s.fail(Monotonic, "%s: %v: takes part in %v, which has ended there", n.id, q.id, is.ID)
		}
	} else {
		switch {
		case was.Pledge != is.Pledge:
			o.s.fail(Integrity, "%s: %v: %v: pledge %+v becomes %+v", n.id, q.id, is.ID, was.Pledge, is.Pledge)
		case was.Value != nil && (is.Value == nil || !was.Value.Equal(is.Value)):
			o.s.fail(Monotonic, "%s: %v: %v: its vote for %+v becomes one for %+v", n.id, q.id, is.ID, was.Value, is.Value)
		case was.Committed && (!is.Committed || was.Concluded != is.Concluded):
			o.s.fail(AppliedOnce, "%s: %v: %v is no longer committed", n.id, q.id, is.ID)
		}
	}
	if durable {
		x.pledged |= self
		x.pledges[n.i] = is.Pledge
		if is.Value != nil && x.accepted&self == 0 {
			o.starAccepted(n, q, is.ID, x, is.Value)
		}
	}
	switch {
	case !is.Committed || was != nil && was.Committed:
	case is.Concluded:
		o.starConcluded(n, q, durable, view, is.ID, x, is.Value)
	default:
		o.starApplied(n, q, durable, view, is.ID, x, is.Value != nil)
	}
}

// starAccepted notes that a site has durably accepted a value.
func (o *observer) starAccepted(n *node, q *sequence, id star.ID, x *starInstance, v *avantan.Value) {
	x.accepted |= 1 << n.i
	if id.Leader == n.id {
		o.s.loser.begins(inInstance, o.place(v.Contributions[o.s.loser.pick(len(v.Contributions))].Site))
	}
	if x.early.has(n.i) {
		o.s.fail(Durability, "%s: %v: the vote for %v is stored after it was sent", n.id, q.id, id)
	}
	if x.value != nil && !x.value.Equal(v) {
		o.s.fail(Agreement, "%v: %v: accepted are %+v and %+v", q.id, id, x.value, v)
		return
	}
	if x.value == nil {
		if strings.HasPrefix(v.Policy, settling) {
			o.s.fail(Agreement, "%v: %v settles a debt, which a majority alone may: %+v", q.id, id, v)
			return
		}
		moves := o.starMoves(q, v)
		if moves == nil {
			return
		}
		x.value, x.moves, x.r = v, moves, o.membersOf(v)
		for _, c := range v.Contributions {
			i := slices.Index(o.s.names, c.Site)
			if !x.early.has(i) && (!x.pledged.has(i) || x.pledges[i] != c) {
				o.s.fail(Integrity, "%v: %v: the value has %+v, set aside is %+v", q.id, id, c, x.pledges[i])
			}
		}
	}
	if x.aborted&x.r&(1<<n.i) != 0 {
		o.s.fail(Agreement, "%s: %v: %v is accepted after it was aborted there", n.id, q.id, id)
	}
	if x.committed(0) {
		if x.aborted&x.r != 0 {
			o.s.fail(Agreement, "%v: %v is committed, and aborted by %b", q.id, id, x.aborted&x.r)
		}
		o.s.report.StarDecided++
		if o.s.tracing {
			o.s.note("%v: %v is committed: %+v", q.id, id, *v)
		}
	}
}

// starApplied notes that a site has applied an instance.
func (o *observer) starApplied(n *node, q *sequence, durable bool, view *starView, id star.ID, x *starInstance, votes bool) {
	var own members
	if votes && !durable {
		own = 1 << n.i
	}
	if !x.committed(own) {
		// The value may be unknown here so far because it is not durable anywhere.
		o.s.fail(Agreement, "%s: %v: applies %v, accepted by %b of %b", n.id, q.id, id, x.accepted, x.r)
		return
	}
	if durable {
		x.applied |= 1 << n.i
	}
	view.moved += x.moves[n.i]
	view.applied++
	o.certain(n, q, id, x)
}

// starGone looks at a slice that is in a site's records no more.
func (o *observer) starGone(n *node, q *sequence, durable bool, view *starView, was *star.Slice) {
	x := q.starOf(was.ID, len(o.s.names))
	self := members(1) << n.i
	if durable {
		x.gone |= self
	}
	lost := n.lostMembers(durable)
	over := x.applied | x.concluded | self | lost
	if !was.Committed && was.Value != nil && x.committed(0) && (lost == 0 || view.fresh > 0) {
		view.fresh--
		o.starApplied(n, q, durable, view, was.ID, x, true)
		if x.r&^over != 0 {
			o.s.fail(Integrity, "%s: %v: forgets %v, applied by %b of %b", n.id, q.id, was.ID, x.applied, x.r)
		}
		return
	}
	if r := o.membersOf(was.Value); !was.Committed && r&lost != 0 && x.aborted&r&^lost&^self == 0 {
		o.starConcluded(n, q, durable, view, was.ID, x, was.Value)
		return
	}
	switch {
	case was.Committed:
		if x.r&^over != 0 {
			o.s.fail(Integrity, "%s: %v: forgets %v, ended by %b of %b", n.id, q.id, was.ID, x.applied|x.concluded, x.r)
		}
	case was.Value != nil && x.aborted&o.membersOf(was.Value)&^self == 0:
		o.s.fail(Agreement, "%s: %v: takes back what it has accepted in %v, nobody has aborted it", n.id, q.id, was.ID)
	case durable:
		if x.aborted&x.r == 0 && x.value != nil && x.r.has(n.i) {
			o.s.report.StarAborted++
		}
		x.aborted |= self
		if was.Value != nil {
			o.certain(n, q, was.ID, x)
		}
		if x.committed(0) && x.r.has(n.i) {
			o.s.fail(Agreement, "%s: %v: aborts %v, which is committed", n.id, q.id, was.ID)
		}
	}
}

// membersOf returns the members of a value, perhaps durable nowhere yet; nil has none.
func (o *observer) membersOf(v *avantan.Value) members {
	var r members
	if v == nil {
		return r
	}
	for _, c := range v.Contributions {
		r |= 1 << slices.Index(o.s.names, c.Site)
	}
	return r
}

// starMessage checks that a message that leaves rests on durable records.
func (o *observer) starMessage(from *node, e *message.Envelope) {
	m := e.Star
	if err := m.Validate(); err != nil {
		o.s.fail(Sound, "%s sends: %w", from.id, err)
		return
	}
	q := o.sequence(sequenceID{e.Entity, e.Generation})
	view := q.view(from, true)
	self := members(1) << from.i
	if rec, found := from.durable.Entities[e.Entity]; !found || rec.Generation != e.Generation {
		o.believe(from, q, m)
		return
	}
	fail := func(why string) { o.s.fail(Durability, "%s sends %+v: %s", from.id, *m, why) }
	switch m.Kind {
	case star.Election:
		if view.reserved < m.ID.Counter {
			fail("the counter is not reserved")
		}
	case star.ElectionOk:
		if m.Contribution != nil && floorOf(view.floors, m.ID.Leader) < m.ID.Counter {
			fail("nothing is set aside")
		}
	case star.Accept, star.AcceptOk, star.Undecided:
		o.namesLost(from, m)
		// The vote may have ended in the batch that cast it.
		if x := q.starOf(m.ID, len(o.s.names)); x.accepted&self == 0 && x.gone&self == 0 {
			x.early |= self
		}
	case star.Abort:
		if x := q.starOf(m.ID, len(o.s.names)); x.committed(0) && x.r.has(from.i) && x.r&^(x.applied|x.concluded|from.lostMembers(true)) != 0 {
			o.s.fail(Agreement, "%s sends %+v, which is committed", from.id, *m)
		}
	case star.Commit:
		if x := q.starOf(m.ID, len(o.s.names)); !x.committed(0) {
			o.s.fail(Agreement, "%s sends %+v, accepted by %b of %b", from.id, *m, x.accepted, x.r)
		}
	case star.Applied:
		if x := q.starOf(m.ID, len(o.s.names)); x.applied&self == 0 {
			fail("it is not applied")
		}
	case star.Settled:
		if x := q.starOf(m.ID, len(o.s.names)); x.r&^x.applied != 0 {
			fail("not all have applied it")
		}
	case star.Concluded:
		if x := q.starOf(m.ID, len(o.s.names)); x.concluded&self == 0 {
			fail("it is not concluded")
		}
	case star.Ended:
		if x := q.starOf(m.ID, len(o.s.names)); x.r&self != 0 && (x.applied|x.concluded|x.aborted)&self == 0 {
			fail("it has not ended")
		}
	}
}

// believe takes a message as a record of its sender: the entity was deleted in the same
// batch, so that nothing else tells.
func (o *observer) believe(from *node, q *sequence, m *star.Message) {
	x := q.starOf(m.ID, len(o.s.names))
	self := members(1) << from.i
	switch m.Kind {
	case star.ElectionOk:
		if m.Contribution != nil {
			x.pledged |= self
			x.pledges[from.i] = *m.Contribution
		}
	case star.Accept:
		if c, in := m.Value.Of(from.id); in && !x.pledged.has(from.i) {
			x.pledged |= self
			x.pledges[from.i] = c
		}
		if !x.accepted.has(from.i) {
			o.starAccepted(from, q, m.ID, x, m.Value)
		}
	case star.AcceptOk, star.Undecided:
		x.accepted |= self
	case star.Concluded:
		x.accepted |= self
		x.concluded |= self
	case star.Commit, star.Applied, star.Settled:
		x.accepted |= self
		x.applied |= self
	case star.Abort:
		x.aborted |= self
	}
}

// view returns a site's part in the star instances of the sequence.
func (q *sequence) view(n *node, durable bool) *starView {
	if q.views == nil {
		q.views = make([][2]starView, len(n.s.names))
	}
	if durable {
		return &q.views[n.i][0]
	}
	return &q.views[n.i][1]
}

func (q *sequence) starOf(id star.ID, sites int) *starInstance {
	x := q.stars[id]
	if x == nil {
		x = &starInstance{pledges: make([]avantan.Contribution, sites)}
		if q.stars == nil {
			q.stars = make(map[star.ID]*starInstance)
		}
		q.stars[id] = x
	}
	return x
}

// lost forgets everything that a site had handed over and not made durable.
func (o *observer) lost(n *node) {
	n.knew[1] = n.knew[0]
	for _, q := range o.sequences {
		if q.views != nil {
			q.views[n.i][1] = q.views[n.i][0]
		}
		if q.direct != nil {
			q.direct.views[n.i][1] = q.direct.views[n.i][0]
		}
		if q.handoffs != nil {
			q.handoffs.views[n.i][1] = q.handoffs.views[n.i][0]
		}
	}
}

// settling begins the name of the policy of a value that settles the debt.
const settling = "debt/"

// grants computes the grants of a value's members out of their offers and a change of the
// tokens in circulation. It also returns the entity's debt afterwards; owed is the debt
// before. It checks the policy's promises.
func (o *observer) grants(q *sequence, v *avantan.Value, delta, owed core.Tokens) ([]core.Tokens, core.Tokens) {
	name, settles := strings.CutPrefix(v.Policy, settling)
	if settles {
		delta -= owed
	}
	plain := avantan.Value{Policy: name, Contributions: v.Contributions}
	grants := o.shared(q, &plain, delta)
	if grants == nil || !settles {
		return grants, owed
	}
	pool := delta
	for _, c := range v.Contributions {
		pool += c.Offered
	}
	if pool < 0 {
		clear(grants)
	}
	return grants, max(0, -pool)
}

// shared computes a policy's grants, and checks its promises; nil if it cannot.
func (o *observer) shared(q *sequence, v *avantan.Value, delta core.Tokens) []core.Tokens {
	policy, err := redistribute.ByName(v.Policy)
	if err != nil {
		o.s.fail(Reallocation, "%v: %w", q.id, err)
		return nil
	}
	grants, err := policy.Grants(v.Contributions, delta)
	if err != nil {
		o.s.fail(Reallocation, "%v: %w", q.id, err)
		return nil
	}
	backwards := slices.Clone(v.Contributions)
	slices.Reverse(backwards)
	again, err := policy.Grants(backwards, delta)
	if err != nil {
		o.s.fail(Reallocation, "%v: %w", q.id, err)
		return nil
	}
	slices.Reverse(again)
	sum := delta
	for i, c := range v.Contributions {
		sum += c.Offered - grants[i]
	}
	if sum != 0 || !slices.Equal(grants, again) {
		o.s.fail(Reallocation, "%v: %+v and %d make %v, backwards %v", q.id, v, delta, grants, again)
		return nil
	}
	if err := keepsPromises(v, delta, grants); err != nil {
		o.s.fail(Reallocation, "%v: %+v and %d make %v: %w", q.id, v, delta, grants, err)
	}
	return grants
}
