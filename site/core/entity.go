package core

import (
	"iter"
	"sync/atomic"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/predict"
)

// entity is the machine of one entity at this site: its books, its waiting
// acquires and its sequence of instances.
type entity struct {
	// What most requests need comes first, so that it is in few lines of a cache.

	name       string
	generation uint64
	// above is the entity that it stands below, its parent, nil for none: what is
	// acquired of this one is acquired of that one too. It may be read at any time.
	above atomic.Pointer[entity]
	// place is nil in a core without lanes.
	place *Place
	// left is what may be handed out now, signed; net is acquired minus
	// released here. What is set aside is in the protocol's state.
	left, net Tokens
	// queue is nil before an acquire has waited.
	queue *queue
	// audit is nil unless the entity was suspicious lately.
	audit  *audit
	demand demand
	// busyUntil is until when others are told of it, demandUntil until when as
	// busy by requests here.
	busyUntil, demandUntil Tick
	// children counts the entities right below.
	children int32
	// heapAt is its place in the core's heap, or -1, and wake when the core must look
	// at this entity again.
	heapAt int32

	dirtyBooks, dirtyRecord, listed bool
	// removed says that the site has it no longer.
	removed bool
	// told says that it is on the list of those that others are told of.
	told bool
	// due says that it is looked at before the step ends, or when the lanes are joined.
	due bool
	// placed is its place in the charge that is being made, from 1; else 0.
	placed int16

	wake    Tick
	initial Tokens
	limit   Tokens
	version uint64
	// majority is the entity's sequence of instances that a majority decides, and
	// star its part in those that their members decide; each is nil until there is
	// one.
	majority *avantan.Machine
	star     *star.Machine
	// moved counts the star instances applied here.
	moved uint64
	// transfer is its part in direct transfers; nil until there is one. fetches
	// counts the rounds that have brought tokens.
	transfer *transfer.Machine
	fetches  uint64
	// views are what other sites have told, by member; nil until one has.
	views []view
	// outside is the sum of the nets that others have told.
	outside Tokens
	hunt    hunt
	// drought is nil before there was one; see droughtNow.
	drought *drought
	// surplus is kept out of circulation; see EntityRecord.
	surplus Tokens
	// seldom is what few entities have; nil for none of it.
	seldom *seldom
	// revision is that of the last transaction of this life that it was part of;
	// watch is nil unless somebody watches it.
	revision Revision
	watch    *watched
}

// seldom is what few entities have, and most need no memory for.
type seldom struct {
	// own is what the site held, with what was out, when a majority was there last;
	// nil while one is. See loans.go.
	own *Tokens
	// debt is nil while the site may use all that is left; see debt.go.
	debt *debt
	// acks is nil before a change of the limit, in this life of the core; see applied.go.
	acks *acks
	// turns is from when on the sites of a crowd may begin the next instance, one after
	// the other; 0 where there is none. See crowd.go.
	turns Tick
	// changes are the limit changes asked for here and not yet decided, results those
	// that were decided lately.
	changes []*pendingChange
	results []LimitResult
}

// limitChanges are seldom.changes.
func (e *entity) limitChanges() []*pendingChange {
	if e.seldom == nil {
		return nil
	}
	return e.seldom.changes
}

// setLimitChanges stores seldom.changes.
func (e *entity) setLimitChanges(changes []*pendingChange) {
	if len(changes) > 0 || e.seldom != nil {
		e.rarely().changes = changes
	}
}

// limitResults are seldom.results.
func (e *entity) limitResults() []LimitResult {
	if e.seldom == nil {
		return nil
	}
	return e.seldom.results
}

// setLimitResults stores seldom.results.
func (e *entity) setLimitResults(results []LimitResult) {
	if len(results) > 0 || e.seldom != nil {
		e.rarely().results = results
	}
}

// rarely is what few entities have, to be changed.
func (e *entity) rarely() *seldom {
	if e.seldom == nil {
		e.seldom = new(seldom)
	}
	return e.seldom
}

// applied is the last instance applied that a majority has decided.
func (e *entity) applied() avantan.Instance {
	if e.majority == nil {
		return 0
	}
	return e.majority.State().Applied
}

// offered is what is set aside for the instances under way.
func (e *entity) offered() Tokens {
	offered, lacking := e.pledged()
	return offered - lacking
}

// lacking is by how much offers under way were of less than nothing: a site that had
// less than that offers what it lacks.
func (e *entity) lacking() Tokens {
	if e.majority == nil && e.star == nil {
		return 0
	}
	_, lacking := e.pledged()
	return lacking
}

// pledged adds up the offers of more than nothing, and those of less.
func (e *entity) pledged() (offered, lacking Tokens) {
	if e.majority != nil && e.majority.State().Pledge != nil {
		tokens := e.majority.State().Pledge.Offered
		offered, lacking = max(0, tokens), max(0, -tokens)
	}
	if e.star != nil {
		for i := range e.star.State().Slices {
			if s := &e.star.State().Slices[i]; !s.Committed {
				offered += max(0, s.Pledge.Offered)
				lacking += max(0, -s.Pledge.Offered)
			}
		}
	}
	return offered, lacking
}

// owes reports whether the site is in debt, also if that is part of an offer: it
// may come back.
func (e *entity) owes() bool { return e.left < 0 || e.left+e.offered() < 0 }

func (e *entity) situation(now Tick, forecast predict.Forecast) Situation {
	return Situation{
		Left:      e.usable(),
		Limit:     e.limit,
		Queued:    e.queue.asked(),
		First:     e.queue.first(),
		Rate:      e.demand.rateAt(now),
		Pace:      e.demand.paceAt(now),
		Forecast:  forecast,
		LastGrant: e.hunt.lastGrant,
		Changing:  firstDue(e.limitChanges()) != nil,

		Refused:      e.droughtNow().refused,
		SinceTrigger: now - e.hunt.triggered,
	}
}

// parent is the entity that it stands below, nil for none.
func (e *entity) parent() *entity { return e.above.Load() }

// MaxDepth bounds how many entities stand one below the other.
const MaxDepth = 8

// chain yields the entity and all above it, from the bottom up: what one request
// charges.
func (e *entity) chain() iter.Seq[*entity] {
	return func(yield func(*entity) bool) {
		for e != nil && yield(e) {
			e = e.parent()
		}
	}
}

// shareOf is the part of a limit that a site gets when the entity is created:
// equal parts, the remainder one token each to the first sites.
func shareOf(limit Tokens, members []SiteID, site SiteID) Tokens {
	n := Tokens(len(members))
	share := limit / n
	for i, m := range members {
		if m == site && Tokens(i) < limit%n {
			share++
		}
	}
	return share
}

var _ avantan.Ledger = (*entityLedger)(nil)
