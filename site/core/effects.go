package core

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
)

// Envelope is a protocol message with its sequence, or a message about the sender's own
// data.
type Envelope struct {
	// Entity and Generation name the sequence; empty and 0 for the catalogue's sequence.
	Entity     string
	Generation uint64
	// Message is a message of the majority variant, unless Star is set.
	Message avantan.Message
	// Star is a message of the star variant.
	Star *star.Message
	// Transfer is a message of a direct transfer.
	Transfer *transfer.Message
	// Audit is a step of an audit.
	Audit *Audit
	// Gossip, if set, reports the sender's tokens, and all fields above are empty.
	Gossip *Gossip
	// Claims, if set, is about requests, and all fields above are empty.
	Claims *Claims
	// Vouch, if set, is about data, and all other fields but Mark are empty.
	Vouch *Vouch
	// Mark is the state of the sender's data when the message left: the message rests on
	// nothing later.
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

// Reply answers a call.
type Reply struct {
	Call   Call
	Answer Answer
}

// Effects is a batch of effects, to be carried out as the package comment says.
type Effects struct {
	Records  Records
	Messages []Envelope
	Replies  []Reply
	// Events are for the metrics; they bind nobody.
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

// EventKind names a kind of event for the metrics.
type EventKind uint8

const (
	// RedistributionStarted: this site began an instance.
	RedistributionStarted EventKind = iota + 1
	// RedistributionApplied: this site applied a decided instance.
	RedistributionApplied
	// RedistributionFailed: an instance begun by this site found no majority.
	RedistributionFailed
	// GaveUp: the site refused waiting acquires, as there were no tokens anywhere.
	GaveUp
	// ProtocolFault: the site refused an impossible message or decision.
	ProtocolFault
	// BooksBroken: a balance of the entity went beyond its bound, and the site halts
	// the entity with its tree.
	BooksBroken
	// Serving: the site begins to serve, as enough members vouch for its data.
	Serving
	// ForecastFellBack: forecasts were not finite, and the newest bin replaced them.
	ForecastFellBack
	// ForecastDropped: the stored state of a forecasting model was unusable; the model
	// learns anew.
	ForecastDropped
	// AuditBegun: this site began an audit.
	AuditBegun
	// SurplusFound: an audit here has found a surplus, which the site sets aside.
	SurplusFound
	// LeaseGranted: a lease was granted.
	LeaseGranted
	// LeaseRenewed: a lease got a new time to live.
	LeaseRenewed
	// LeaseCommitted: a lease ended, as its holder kept tokens of the lease for good.
	LeaseCommitted
	// LeaseExpired: a lease ended, as its time was up; its tokens went back.
	LeaseExpired
	// LeaseReturned: a lease gave back tokens before its time was up.
	LeaseReturned
	// ClaimMade: the site answered a request although earlier attempts may have run
	// elsewhere.
	ClaimMade
	// ClaimAnswered: another site has told the fate of the earlier attempts there:
	// Verdict.
	ClaimAnswered
	// ClaimsFull: the maximum number of requests waits for the answer of Site.
	ClaimsFull
	// ClaimGivenUp: Site has not answered for so long that this site stops asking about
	// Request, to make room for others.
	ClaimGivenUp
	// CreatedWithout: an entity was created while Site seemed out of reach; its share is
	// unusable until Site is back.
	CreatedWithout
	// TenantRefused: the site refused a request, as the table of requests is nearly full
	// and the entity's tenant has an equal part of it.
	TenantRefused
)

// Event is an event for the metrics.
type Event struct {
	Kind   EventKind
	Entity string
	// Trigger is the reason for beginning an instance.
	Trigger string
	// Variant is the variant of an instance begun or failed. It is Direct for a round of
	// direct transfers begun, failed, or applied; an applied round has brought tokens.
	Variant Variant
	// Count is the number of forecasts that fell back or were dropped.
	Count uint64
	// Verdict is the verdict of a ClaimAnswered.
	Verdict ClaimVerdict
	// Site is the other member of a ClaimsFull, ClaimGivenUp or CreatedWithout. Request
	// is the key of a ClaimGivenUp.
	Site    SiteID
	Request RequestKey
	// Err describes a ProtocolFault or BooksBroken.
	Err error
}

// Records are the changes that a transaction makes durable.
type Records struct {
	// Block holds the requests answered, to be stored under its Sequence; nil
	// Records for none.
	Block RequestBlock
	// ForgetBlocks: blocks with lower sequences are deleted; 0 for none.
	ForgetBlocks uint64
	// Books are stored by entity name.
	Books []BooksRecord
	// Entities are stored by name, after Deleted are removed.
	Entities []EntityRecord
	// Deleted are the names for which books, entity records and forecasts are removed.
	Deleted []string
	// Catalogue is stored; nil if unchanged.
	Catalogue *CatalogueRecord
	// Changes are stored by number.
	Changes []ChangeRecord
	// ForgetChanges: change records with lower numbers are deleted.
	ForgetChanges uint64
	// Commits is the number of this transaction and is stored; 0 for a transaction that
	// changes nothing but Remembered.
	Commits Commits
	// Remembered are stored by site.
	Remembered []Remembered
	// Forecasts are stored by name, after Deleted are removed.
	Forecasts []ForecastRecord
	// Claims are stored by number, and SettledClaims removed.
	Claims        []ClaimRecord
	SettledClaims []ClaimNumber
	// Leases are stored by number, and EndedLeases removed.
	Leases      []LeaseRecord
	EndedLeases []uint64
	// Clock is stored; nil if a new record is not yet due.
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

// BooksRecord holds an entity's books at this site, as changed by acquires and releases.
// Tokens set aside are in the EntityRecord's pledge.
type BooksRecord struct {
	Name string
	// Generation is the generation of the matching EntityRecord.
	Generation uint64
	Left, Net  Tokens
}

// EntityRecord is the rest of an entity's state at this site.
type EntityRecord struct {
	Name       string
	Generation uint64
	// Initial is the limit the entity was created with.
	Initial Tokens
	// Limit and Version are the values after the last instance applied.
	Limit   Tokens
	Version uint64
	// Results are the results of the last limit changes, oldest first.
	Results []LimitResult
	// Protocol is the state of the entity's sequence.
	Protocol avantan.State
	// Star is the state of the instances decided by their members. Moved counts the star
	// instances applied here.
	Star  star.State
	Moved uint64
	// Transfer is the state of the direct transfers. Fetches counts the rounds that have
	// brought tokens here.
	Transfer transfer.State
	Fetches  uint64
	// Surplus counts tokens found to have been released and never acquired. They are kept
	// out of circulation, so that all books add up to Limit less Surplus.
	Surplus Tokens
	// Debt is the excess of the tokens in circulation over Limit less Surplus. DebtSince
	// is the instance that last raised it. The site stands still until the end of
	// instance Held. Each is 0 for none.
	Debt            Tokens
	DebtSince, Held avantan.Instance
	// DebtHeard are the members that go by a debt: each has applied DebtSince, or stands
	// still until it has.
	DebtHeard []SiteID
	// Parent is the generation of the entity right above; 0 for none.
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
	// Mode is the last mode decided.
	Mode     ModeRecord
	Protocol avantan.State
}

// ChangeRecord is a decided change of the catalogue with its outcome.
type ChangeRecord struct {
	// Number counts the catalogue's changes from 1.
	Number uint64 `json:"number"`
	// Instance is the instance that decided the change.
	Instance avantan.Instance `json:"instance"`
	Change   CatalogueChange  `json:"change"`
	// Outcome is OK, Exists, NotFound, Mismatch, NoParent, HasChildren, Looped or
	// TooDeep.
	Outcome Code `json:"outcome"`
	// Generation is the generation of the entity created or deleted; for SetMode the
	// version of the mode afterwards.
	Generation uint64 `json:"generation,omitempty"`
}

// Restored is a site's durable state, as handed to New after a restart.
type Restored struct {
	Catalogue *CatalogueRecord
	// Changes are in the order of their numbers.
	Changes []ChangeRecord
	// Entities and Books are in any order; each entity has its books.
	Entities []EntityRecord
	Books    []BooksRecord
	// Blocks are in the order of their sequences.
	Blocks []RequestBlock
	// Incarnation is the incarnation of the data, Commits the last number stored.
	Incarnation Incarnation
	Commits     Commits
	// Remembered are the marks of other members, in any order.
	Remembered []Remembered
	// Claims and Leases are in the order of their numbers.
	Claims []ClaimRecord
	Leases []LeaseRecord
	// Clock is the last record stored; nil for none.
	Clock *ClockRecord
	// Forecasts are in any order; New ignores forecasts of other generations.
	Forecasts []ForecastRecord
}
