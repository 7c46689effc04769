package core

import (
	"iter"
	"sync/atomic"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core/books"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// entity is the machine of one entity at this site: its books, its waiting
// acquires and its sequence of instances.
type entity struct {
	// Fields that most requests need come first, to fill few cache lines.

	name       string
	generation uint64
	// above is the parent, the entity right above; nil for none. An acquire charges the
	// parent too. Any goroutine may read it at any time.
	above atomic.Pointer[entity]
	// place is nil in a core without shards.
	handle *Handle
	books  books.Books
	// queue is nil before an acquire has waited.
	queue *queue
	// audit is nil unless the entity was suspicious lately.
	audit  *audit
	demand demand
	// busyUntil is the tick until which this site tells others of the entity, demandUntil
	// the tick until which it tells them that requests here keep it busy.
	busyUntil, demandUntil Tick
	// children counts the entities right below.
	children int32
	// heapAt is its place in the core's calendar, or -1; wake is the tick at which the
	// core must look at this entity again.
	heapAt int32

	dirtyBooks, dirtyRecord, listed bool
	// removed says that the site has deleted the entity.
	removed bool
	// learns says that this site is no voter of the next instance. It uses no tokens
	// until it is: it may not know of a debt.
	learns bool
	// told says that the entity is in gossip.busy, to be told to other sites.
	told bool
	// due says that the entity is marked: the core settles it before the step ends, or
	// looks at it when the shards are joined. changed says that its tokens or its queue
	// have changed; see Core.later.
	due, changed bool
	// placed is its place in the charge under construction, from 1; else 0.
	placed int16
	// born is the version of the roster at which the entity was created, voters the
	// version of the view of its next instance.
	born, voters uint16
	// appraised is the version of the roster up to which losses of sites are in the tokens
	// written off.
	appraised uint16

	wake    Tick
	initial Tokens
	limit   Tokens
	version uint64
	// majority is the entity's sequence of majority instances, star its part in instances
	// decided by their members; each is nil before the first instance.
	majority *avantan.Machine
	star     *star.Machine
	// moved counts the star instances applied here.
	moved uint64
	// transfer is its part in direct transfers; nil before the first. fetches counts the
	// rounds that have brought tokens.
	transfer *transfer.Machine
	fetches  uint64
	// views are the other sites' reports, by member; nil before the first report.
	views []view
	// outside is the sum of the nets in the other sites' reports.
	outside   Tokens
	rebalance rebalance
	// exhaustion is nil before the first exhaustion; see exhaustionNow.
	exhaustion *exhaustion
	// seldom is the state that few entities have; nil if empty.
	seldom *seldom
	// revision is the revision of the last transaction of this life with the entity in
	// it; watch is nil unless somebody watches the entity.
	revision input.Revision
	watch    *watched
}

// seldom is the state that few entities have; the others need no memory for it.
type seldom struct {
	// own is the site's escrow, including its tokens out, at the last time with a
	// majority; nil while there is a majority. See loans.go.
	own *Tokens
	// debt is nil while the site may use all tokens left; see debt.go.
	debt *debt
	// acks is nil before a change of the limit, in this life of the core; see applied.go.
	acks *acks
	// turns is the tick from which on the sites of a crowd take turns to begin the next
	// instance; 0 for no crowd. See crowd.go.
	turns Tick
	// handoff is the entity's part in handoffs of sites that leave; nil before the first.
	handoff *handoff.Machine
	// surplus is the number of tokens kept out of circulation.
	surplus Tokens
	// writtenOff is the number of tokens written off with lost sites.
	writtenOff Tokens
	// rate is nil unless the entity is a rate quota; see rate.go.
	rate *rate
	// returned and rescued are as in stored.Entity.
	returned uint16
	rescued  []SiteID
	// changes are the limit changes requested here without a decision, results the changes
	// decided lately.
	changes []*pendingChange
	results []stored.LimitResult
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
func (e *entity) limitResults() []stored.LimitResult {
	if e.seldom == nil {
		return nil
	}
	return e.seldom.results
}

// setLimitResults stores seldom.results.
func (e *entity) setLimitResults(results []stored.LimitResult) {
	if len(results) > 0 || e.seldom != nil {
		e.rarely().results = results
	}
}

// handoff is nil before the first handoff.
func (e *entity) handoff() *handoff.Machine {
	if e.seldom == nil {
		return nil
	}
	return e.seldom.handoff
}

// surplus is the number of tokens kept out of circulation; see stored.Entity.
func (e *entity) surplus() Tokens {
	if e.seldom == nil {
		return 0
	}
	return e.seldom.surplus
}

// writtenOff is the number of tokens written off; see stored.Entity.
func (e *entity) writtenOff() Tokens {
	if e.seldom == nil {
		return 0
	}
	return e.seldom.writtenOff
}

// keptOut is the number of tokens that no site's books have: the surplus, and tokens
// written off.
func (e *entity) keptOut() Tokens { return e.surplus() + e.writtenOff() }

// plain reports whether an entity has no state that few entities have, and no acquire ever
// waited for its tokens: most acquires ask this first.
func plain(e *entity) bool { return e.seldom == nil && e.queue == nil }

// halted reports whether a balance of the entity, or of an entity in its tree, is broken.
func (e *entity) halted() bool { return e.books.Closed() }

// rarely returns the seldom state for changes, and creates it if nil.
func (e *entity) rarely() *seldom {
	if e.seldom == nil {
		e.seldom = new(seldom)
	}
	return e.seldom
}

// applied is the last majority instance applied.
func (e *entity) applied() avantan.Instance {
	if e.majority == nil {
		return 0
	}
	return e.majority.State().Applied
}

// offered is the number of tokens set aside for the instances under way.
func (e *entity) offered() Tokens {
	offered, lacking := e.pledged()
	return offered - lacking
}

// lacking is the number of tokens that negative offers under way ask for: a site in debt
// offers its debt.
func (e *entity) lacking() Tokens {
	if e.majority == nil && e.star == nil {
		return 0
	}
	_, lacking := e.pledged()
	return lacking
}

// pledged adds up the positive offers, and the negative ones.
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

// parent is the entity right above, nil for none.
func (e *entity) parent() *entity { return e.above.Load() }

// MaxDepth bounds the number of levels of a tree of entities.
const MaxDepth = 8

// chain yields the entity and its ancestors, from the bottom up: the entities that a
// request charges.
func (e *entity) chain() iter.Seq[*entity] {
	return func(yield func(*entity) bool) {
		for e != nil && yield(e) {
			e = e.parent()
		}
	}
}

// shareOf is a site's part of the limit when the entity is created: equal parts, the
// remainder in single tokens to the first sites. A site that does not vote has no part.
func shareOf(limit Tokens, voters avantan.View, site SiteID) Tokens {
	n, share := Tokens(len(voters)), Tokens(0)
	if voters.Has(site) {
		share = limit / n
	}
	for i, m := range voters {
		if m == site && Tokens(i) < limit%n {
			share++
		}
	}
	return share
}

var _ avantan.Ledger = (*entityLedger)(nil)

// redistributing reports whether a redistribution is under way here.
func (e *entity) redistributing() bool {
	return e.transfer != nil && e.transfer.Open() || e.majority != nil && e.majority.Open() || e.star != nil && e.star.Open()
}

// noQuorum reports whether the site goes on without a majority.
func (e *entity) noQuorum() bool { return e.seldom != nil && e.seldom.own != nil }

// busy reports whether the site has to wait before it begins another majority instance.
func (e *entity) busy() bool {
	return e.majority != nil && (e.majority.Open() || e.majority.Waits())
}

// starBusy reports whether the site has to wait before it begins another star
// instance.
func (e *entity) starBusy() bool {
	return e.star != nil && (e.star.Open() || e.star.Waits())
}

// acks is nil if nothing is known.
func (e *entity) acks() *acks {
	if e.seldom == nil {
		return nil
	}
	return e.seldom.acks
}

// exhaustionNow is the present belief: the zero exhaustion before the first one.
func (e *entity) exhaustionNow() exhaustion {
	if e.exhaustion == nil {
		return exhaustion{}
	}
	return *e.exhaustion
}

// itsExhaustion returns the exhaustion for changes, and creates it if nil.
func (e *entity) itsExhaustion() *exhaustion {
	if e.exhaustion == nil {
		e.exhaustion = new(exhaustion)
	}
	return e.exhaustion
}
