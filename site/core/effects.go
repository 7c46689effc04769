package core

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
)

// Envelope is a protocol message with the sequence it belongs to, or a message
// about the sender's own data.
type Envelope struct {
	// Entity and Generation name the sequence; empty and 0 for the catalogue's.
	Entity     string
	Generation uint64
	// Message is of the majority variant, unless Star is set.
	Message avantan.Message
	// Star is of the star variant.
	Star *star.Message
	// Transfer is of a direct transfer.
	Transfer *transfer.Message
	// Audit is a step of an audit.
	Audit *Audit
	// Gossip, if set, is what the sender has, and all above is empty.
	Gossip *Gossip
	// Claims, if set, is about requests, and all above is empty.
	Claims *Claims
	// Vouch, if set, is a message about data, and all else but Mark is empty.
	Vouch *Vouch
	// Mark is how far the sender's data had come when the message left: what it
	// rests on is not later.
	Mark Mark
}

// From returns the sender.
func (e *Envelope) From() SiteID {
	switch {
	case e.Vouch != nil:
		return e.Vouch.From
	case e.Star != nil:
		return e.Star.From
	case e.Transfer != nil:
		return e.Transfer.From
	case e.Gossip != nil:
		return e.Gossip.From
	case e.Claims != nil:
		return e.Claims.From
	case e.Audit != nil:
		return e.Audit.From
	}
	return e.Message.From
}

// To returns the receiver.
func (e *Envelope) To() SiteID {
	switch {
	case e.Vouch != nil:
		return e.Vouch.To
	case e.Star != nil:
		return e.Star.To
	case e.Transfer != nil:
		return e.Transfer.To
	case e.Gossip != nil:
		return e.Gossip.To
	case e.Claims != nil:
		return e.Claims.To
	case e.Audit != nil:
		return e.Audit.To
	}
	return e.Message.To
}

// Reply answers one call.
type Reply struct {
	Call   Call
	Answer Answer
}

// Effects is a batch of effects, to be carried out as the package comment says.
type Effects struct {
	Records  Records
	Messages []Envelope
	Replies  []Reply
	// Events are what a metric may count; they bind nobody.
	Events []Event
}

// Empty reports whether there is nothing to carry out.
func (e *Effects) Empty() bool {
	return e.Records.Empty() && len(e.Messages) == 0 && len(e.Replies) == 0 && len(e.Events) == 0
}

// Reset empties the batch for another use, keeping its memory.
func (e *Effects) Reset() {
	clear(e.Messages)
	clear(e.Replies)
	e.Messages, e.Replies, e.Events = e.Messages[:0], e.Replies[:0], e.Events[:0]
	e.Records.reset()
}

// EventKind names what a metric may count.
type EventKind uint8

const (
	// RedistributionStarted: this site began an instance.
	RedistributionStarted EventKind = iota + 1
	// RedistributionApplied: this site applied a decided instance.
	RedistributionApplied
	// RedistributionFailed: an instance this site began found no majority.
	RedistributionFailed
	// GaveUp: waiting acquires were refused as there were no tokens anywhere.
	GaveUp
	// ProtocolFault: a message or decision was refused as impossible.
	ProtocolFault
	// BooksBroken: a balance of the entity went beyond its bound, and the site halts
	// the entity with its tree.
	BooksBroken
	// Serving: the site begins to serve: enough members vouch for its data.
	Serving
	// ForecastFellBack: forecasts were not finite, and the newest bin stood in.
	ForecastFellBack
	// ForecastDropped: a stored state of a forecasting model could not be taken up;
	// the model learns anew.
	ForecastDropped
	// AuditBegun: this site began an audit.
	AuditBegun
	// SurplusFound: an audit here has found a surplus, to be set aside.
	SurplusFound
	// LeaseGranted: a lease was granted.
	LeaseGranted
	// LeaseRenewed: a lease got another time to live.
	LeaseRenewed
	// LeaseCommitted: a lease ended as its holder kept tokens of it for good.
	LeaseCommitted
	// LeaseExpired: a lease ended as its time was up; it gave back what it held.
	LeaseExpired
	// LeaseReturned: a lease gave back tokens before its time was up.
	LeaseReturned
	// ClaimMade: a request was answered of which earlier attempts may have run
	// elsewhere.
	ClaimMade
	// ClaimAnswered: another site has told what became of them there: Verdict.
	ClaimAnswered
	// ClaimsFull: as many requests as may be wait for the answer of Site.
	ClaimsFull
	// ClaimGivenUp: Site has not answered for so long that a Request is no longer
	// asked about, to make room for others.
	ClaimGivenUp
	// CreatedWithout: an entity was created while Site seems to be out of reach; its
	// share is of no use until it is back.
	CreatedWithout
	// TenantRefused: a request was refused as the table of requests is nearly full, and
	// the entity's tenant has an equal part of it.
	TenantRefused
)

// Event is one thing a metric may count.
type Event struct {
	Kind   EventKind
	Entity string
	// Trigger says why an instance was begun.
	Trigger string
	// Variant is that of an instance begun or failed; Direct for a round of direct
	// transfers begun, failed, or applied, which has brought tokens.
	Variant Variant
	// Count is how many forecasts fell back or were dropped.
	Count uint64
	// Verdict is that of a ClaimAnswered.
	Verdict ClaimVerdict
	// Site is the other member that a ClaimsFull, ClaimGivenUp or CreatedWithout is
	// about, Request the key of a ClaimGivenUp.
	Site    SiteID
	Request RequestKey
	// Err tells a ProtocolFault or BooksBroken.
	Err error
}

// Records is what one transaction makes durable.
type Records struct {
	// Block holds the requests answered, to be stored under its Sequence; nil
	// Records for none.
	Block RequestBlock
	// ForgetBlocks: blocks with lower sequences are to be deleted; 0 for none.
	ForgetBlocks uint64
	// Books to be stored by entity name.
	Books []BooksRecord
	// Entities to be stored by name, after Deleted are removed.
	Entities []EntityRecord
	// Deleted are names whose books, entity records and forecasts are to be removed.
	Deleted []string
	// Catalogue is to be stored; nil if unchanged.
	Catalogue *CatalogueRecord
	// Changes are to be stored by number.
	Changes []ChangeRecord
	// ForgetChanges: change records with lower numbers are to be deleted.
	ForgetChanges uint64
	// Commits is the number of this transaction, to be stored; 0 for one that
	// changes nothing but Remembered.
	Commits Commits
	// Remembered are to be stored by site.
	Remembered []Remembered
	// Forecasts are to be stored by name, after Deleted are removed.
	Forecasts []ForecastRecord
	// Claims are to be stored by number, and SettledClaims removed.
	Claims        []ClaimRecord
	SettledClaims []ClaimNumber
	// Leases are to be stored by number, and EndedLeases removed.
	Leases      []LeaseRecord
	EndedLeases []uint64
	// Clock is to be stored; nil if not yet again.
	Clock *ClockRecord
}

// Empty reports whether there is nothing to make durable.
func (r *Records) Empty() bool {
	return len(r.Block.Records) == 0 && r.ForgetBlocks == 0 && len(r.Books) == 0 && len(r.Entities) == 0 &&
		len(r.Deleted) == 0 && r.Catalogue == nil && len(r.Changes) == 0 && r.ForgetChanges == 0 &&
		r.Commits == 0 && len(r.Remembered) == 0 && len(r.Forecasts) == 0 &&
		len(r.Claims) == 0 && len(r.SettledClaims) == 0 && len(r.Leases) == 0 && len(r.EndedLeases) == 0 && r.Clock == nil
}

func (r *Records) reset() {
	clear(r.Entities)
	clear(r.Deleted)
	clear(r.Changes)
	clear(r.Forecasts)
	clear(r.Claims)
	clear(r.Leases)
	*r = Records{
		Block:    RequestBlock{Records: r.Block.Records[:0]},
		Books:    r.Books[:0],
		Entities: r.Entities[:0],
		Deleted:  r.Deleted[:0],
		Changes:  r.Changes[:0],

		Remembered: r.Remembered[:0],
		Forecasts:  r.Forecasts[:0],

		Claims: r.Claims[:0], SettledClaims: r.SettledClaims[:0],
		Leases: r.Leases[:0], EndedLeases: r.EndedLeases[:0],
	}
}

// BooksRecord is one entity's books at this site: what acquires and releases
// change. Tokens set aside are in the EntityRecord's pledge.
type BooksRecord struct {
	Name string
	// Generation is that of the EntityRecord the books belong to.
	Generation uint64
	Left, Net  Tokens
}

// EntityRecord is the rest of one entity's state at this site.
type EntityRecord struct {
	Name       string
	Generation uint64
	// Initial is the limit the entity was created with.
	Initial Tokens
	// Limit and Version are those after the last instance applied.
	Limit   Tokens
	Version uint64
	// Results are those of the last limit changes, oldest first.
	Results []LimitResult
	// Protocol is the state of the entity's sequence.
	Protocol avantan.State
	// Star is the state of the instances that their members decide, and Moved
	// counts those applied here.
	Star  star.State
	Moved uint64
	// Transfer is the state of the direct transfers, and Fetches counts the rounds
	// of them that have brought tokens here.
	Transfer transfer.State
	Fetches  uint64
	// Surplus is what was released and never acquired, as far as it was found: it
	// is kept out of circulation, so that all books add up to Limit less Surplus.
	Surplus Tokens
	// Debt is by how much the tokens in circulation exceed Limit less Surplus,
	// DebtSince the instance that last raised it, and Held the instance until whose end
	// the site stands still; each is 0 for none.
	Debt            Tokens
	DebtSince, Held avantan.Instance
	// DebtHeard are the members that go by a debt: each has applied DebtSince, or
	// stands still until the member has.
	DebtHeard []SiteID
	// Parent is the generation of the entity that it stands below; 0 for none.
	Parent uint64
	// Shape is the number of the last change of the catalogue that moved tokens of
	// entities below into or out of its books; 0 for none.
	Shape uint64
}

// CatalogueRecord is the state of the catalogue's sequence.
type CatalogueRecord struct {
	// Generation is the last generation given out.
	Generation uint64
	// Numbered is the number of changes decided so far.
	Numbered uint64
	// Mode is the last one decided.
	Mode     ModeRecord
	Protocol avantan.State
}

// ChangeRecord is one decided change of the catalogue with its outcome.
type ChangeRecord struct {
	// Number counts the catalogue's changes from 1.
	Number uint64 `json:"number"`
	// Instance is the instance that decided it.
	Instance avantan.Instance `json:"instance"`
	Change   CatalogueChange  `json:"change"`
	// Outcome is OK, Exists, NotFound or Mismatch.
	Outcome Code `json:"outcome"`
	// Generation is that of the entity created or deleted; for SetMode the
	// version of the mode afterwards.
	Generation uint64 `json:"generation,omitempty"`
}

// Restored is a site's durable state, as handed to New after a restart.
type Restored struct {
	Catalogue *CatalogueRecord
	// Changes in the order of their numbers.
	Changes []ChangeRecord
	// Entities and Books in any order; each entity has its books.
	Entities []EntityRecord
	Books    []BooksRecord
	// Blocks in the order of their sequences.
	Blocks []RequestBlock
	// Incarnation is that of the data, Commits the last one stored.
	Incarnation Incarnation
	Commits     Commits
	// Remembered of other members, in any order.
	Remembered []Remembered
	// Claims and Leases in the order of their numbers.
	Claims []ClaimRecord
	Leases []LeaseRecord
	// Clock is the last one stored; nil for none.
	Clock *ClockRecord
	// Forecasts in any order; those of other generations are left alone.
	Forecasts []ForecastRecord
}
