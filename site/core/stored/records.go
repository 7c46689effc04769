// Package stored has the records that a core makes durable, and takes up after a restart.
// It refuses to know how records are encoded; see package store.
package stored

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/message"
)

// Records are the changes that a transaction makes durable.
type Records struct {
	// Block holds the requests answered, to be stored under its Sequence; nil
	// Records for none.
	Block Block
	// ForgetBlocks: blocks with lower sequences are deleted; 0 for none.
	ForgetBlocks uint64
	// Books are stored by entity name.
	Books []Books
	// Entities are stored by name, after Deleted are removed.
	Entities []Entity
	// Deleted are the names for which books, entity records and forecasts are removed.
	Deleted []string
	// Catalogue is stored; nil if unchanged.
	Catalogue *Catalogue
	// Changes are stored by number.
	Changes []Change
	// ForgetChanges: change records with lower numbers are deleted.
	ForgetChanges uint64
	// Commits is the number of this transaction and is stored; 0 for a transaction that
	// changes nothing but Remembered and Version.
	Commits message.Commits
	// Remembered are stored by site.
	Remembered []Remembered
	// Forecasts are stored by name, after Deleted are removed.
	Forecasts []Forecast
	// Claims are stored by number, and SettledClaims removed.
	Claims        []Claim
	SettledClaims []message.ClaimNumber
	// Leases are stored by number, and EndedLeases removed.
	Leases      []Lease
	EndedLeases []uint64
	// Clock is stored; nil if a new record is not yet due.
	Clock *Clock
	// Version is the version of the cluster that the site has come to know; 0 if
	// unchanged. It is durable before all else of the transaction: from then on a build
	// that does not speak it refuses the data.
	Version versions.Version
}

// Empty reports whether there is nothing to make durable.
func (r *Records) Empty() bool {
	return len(r.Block.Records) == 0 && r.ForgetBlocks == 0 && len(r.Books) == 0 && len(r.Entities) == 0 &&
		len(r.Deleted) == 0 && r.Catalogue == nil && len(r.Changes) == 0 && r.ForgetChanges == 0 &&
		r.Commits == 0 && len(r.Remembered) == 0 && len(r.Forecasts) == 0 &&
		len(r.Claims) == 0 && len(r.SettledClaims) == 0 && len(r.Leases) == 0 && len(r.EndedLeases) == 0 && r.Clock == nil &&
		r.Version == 0
}

// Reset empties the records and keeps their memory for reuse.
func (r *Records) Reset() {
	clear(r.Entities)
	clear(r.Deleted)
	clear(r.Changes)
	clear(r.Forecasts)
	clear(r.Claims)
	clear(r.Leases)
	*r = Records{
		Block: Block{
			Records: r.Block.Records[:0], Packed: r.Block.Packed[:0], Runs: r.Block.Runs[:0], Sessions: r.Block.Sessions[:0],
		},
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

// Books holds an entity's books at this site, as changed by acquires and releases.
// Tokens set aside are in the Entity's pledge.
type Books struct {
	Name string
	// Generation is the generation of the matching Entity.
	Generation uint64
	Left, Net  avantan.Tokens
}

// Entity is the rest of an entity's state at this site.
type Entity struct {
	Name       string
	Generation uint64
	// Initial is the limit the entity was created with.
	Initial avantan.Tokens
	// Limit and Version are the values after the last instance applied.
	Limit   avantan.Tokens
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
	// Handoff is the state of the handoffs of sites that leave.
	Handoff handoff.State
	Fetches uint64
	// Surplus counts tokens found to have been released and never acquired. They are kept
	// out of circulation, so that all books add up to Limit less Surplus.
	Surplus avantan.Tokens
	// WrittenOff counts tokens that sites lost for good held. They are kept out of
	// circulation until the entity is reconciled. All books add up to Limit less Surplus
	// and WrittenOff. It may be negative.
	WrittenOff avantan.Tokens
	// Debt is the excess of the tokens in circulation over Limit less Surplus. DebtSince
	// is the instance that last raised it. The site stands still until the end of
	// instance Held. Each is 0 for none.
	Debt            avantan.Tokens
	DebtSince, Held avantan.Instance
	// DebtHeard are the members that go by a debt: each has applied DebtSince, or stands
	// still until it has.
	DebtHeard []avantan.SiteID
	// Parent is the generation of the entity right above; 0 for none.
	Parent uint64
	// Shape is the number of the last change of the catalogue that moved tokens of
	// entities below into or out of its books; 0 for none.
	Shape uint64
	// Born is the version of the roster at the creation, Voters the version of the view
	// of the next instance; 0 stands for 1.
	Born, Voters uint16
	// Appraised is the version of the roster up to which losses of sites are in
	// WrittenOff; 0 for none.
	Appraised uint16
	// Returned is the version of the roster up to which losses were in WrittenOff when the
	// entity was last reconciled: what those sites held is back. It is 0 for none.
	Returned uint16
	// Rescued are the lost sites whose data has brought back what they held, in the order
	// of their names.
	Rescued []avantan.SiteID
	// Rate is the state of a rate quota; zero for other entities.
	Rate Rate
}

// Rate is the state of a rate quota.
type Rate struct {
	Terms rates.Terms
	// Window is the number of the site's window.
	Window int64
	// Late is the number of tokens out that come back only once the window Opens begins;
	// each is 0 for none.
	Late  avantan.Tokens
	Opens int64
	// Ended are tokens out of leases of share that have ended, of a quota with windows.
	Ended Ended
}

// Validate reports terms or numbers out of range.
func (r *Rate) Validate() error {
	if r.Window < 0 || r.Late < 0 || r.Opens < 0 || !r.Ended.valid() || r.Terms.None() && *r != (Rate{}) {
		return fmt.Errorf("window %d with %d tokens late until window %d, per %q: out of range", r.Window, r.Late, r.Opens, r.Terms.Per())
	}
	return r.Terms.Validate()
}

// Catalogue is the state of the catalogue's sequence.
type Catalogue struct {
	// Generation is the last generation given out.
	Generation uint64
	// Numbered is the number of changes decided so far.
	Numbered uint64
	// Mode is the last mode decided.
	Mode     answer.DecidedMode
	Protocol avantan.State
	// Roster is the sites as decided; unknown where the founders are the only sites ever.
	Roster Roster
	// Destroyed are the sites that an operator has given up after a majority was lost,
	// sorted.
	Destroyed []avantan.SiteID
	// SettledIn says that all members know of this site.
	SettledIn bool
	// Version is the version of the cluster as decided; 0 for the first, and before the
	// first change.
	Version versions.Version
}

// Change is a decided change of the catalogue with its outcome.
type Change struct {
	// Number counts the catalogue's changes from 1.
	Number uint64 `json:"number"`
	// Instance is the instance that decided the change.
	Instance avantan.Instance `json:"instance"`
	Change   CatalogueChange  `json:"change"`
	// Outcome is OK, Exists, NotFound, Mismatch, NoParent, HasChildren, Looped or
	// TooDeep.
	Outcome answer.Code `json:"outcome"`
	// Generation is the generation of the entity created or deleted; for SetMode the
	// version of the mode afterwards, for RaiseVersion that of the cluster.
	Generation uint64 `json:"generation,omitempty"`
}

// Restored is a site's durable state, as handed to New after a restart.
type Restored struct {
	Catalogue *Catalogue
	// Changes are in the order of their numbers.
	Changes []Change
	// Entities and Books are in any order; each entity has its books.
	Entities []Entity
	Books    []Books
	// Blocks are blocks of requests; nil for none. See EachBlock.
	Blocks Blocks
	// Incarnation is the incarnation of the data, Commits the last number stored.
	Incarnation message.Incarnation
	Commits     message.Commits
	// Remembered are the marks of other members, in any order.
	Remembered []Remembered
	// Claims and Leases are in the order of their numbers.
	Claims []Claim
	Leases []Lease
	// Clock is the last record stored; nil for none.
	Clock *Clock
	// Version is the version of the cluster known last; 0 for new data without one, of
	// a cluster that would begin with the build's version.
	Version versions.Version
	// Forecasts are in any order; New ignores forecasts of other generations.
	Forecasts []Forecast
}

// Clock is a site's own time at a transaction.
type Clock struct {
	// Own counts the milliseconds that went by while the site ran, and the trusted part
	// of its downtime; it begins with a wall time. Wall is the time of the wall clock.
	Own, Wall int64
}

// Forecast is the stored state of an entity's forecasting model. It is useful, but
// no guarantee rests on it: the core drops an unusable state, and the model learns anew.
type Forecast struct {
	Name string
	// Generation is the entity's generation.
	Generation uint64
	// Model is the model's name, and Bin the length of its bins in milliseconds.
	Model string
	Bin   avantan.Tick
	// Wall is the end of the model's last bin, in milliseconds since the Unix epoch.
	Wall int64
	// State is the result of the model's MarshalBinary; empty if it was found damaged.
	State []byte
}

// Remembered is a site's durable memory of another site's data.
type Remembered struct {
	Site avantan.SiteID
	// Mark is the latest mark that Site has told, in the last run vouched for.
	Mark message.Mark
	// Before is the run vouched for before that run; 0 for none. Its late messages are
	// still taken.
	Before message.Run
	// Served says that Site has told of a commit since: enough members vouched for that
	// incarnation, and it has something to lose. A site that never did is empty or was
	// started on the wrong data, and gives way to another incarnation.
	Served bool
}

// Lease is a lease. It is stored by its number, until it has ended.
type Lease struct {
	// Number counts the site's leases from 1.
	Number uint64
	// ID is the acquire's request id.
	ID         string
	Entity     string
	Generation uint64
	// Tokens is the number of tokens it still holds; they are part of the entity's net.
	Tokens avantan.Tokens
	// Expires is the end by the site's own time, see Clock, in milliseconds since
	// the Unix epoch. Within a life of the core the lease ends by the monotonic clock.
	Expires int64
	TTL     avantan.Tick
	Holder  string
	// Window is, of a rate quota, the number of the window of the grant; else 0.
	Window int64
	// Above has the marks of the rate quotas above the entity; see Window.
	Above []Mark
	// Share says that the holder grants tokens of a rate quota in place of the site.
	Share bool
}

// Mark tells when a rate quota granted the tokens of a lease.
type Mark struct {
	// Generation is the rate quota's, Window as in Lease.
	Generation uint64
	Window     int64
}

// MarkOf tells when the rate quota of a generation granted the tokens of a lease; false if
// that is not known.
func (l *Lease) MarkOf(generation uint64) (window int64, known bool) {
	if generation == l.Generation {
		return l.Window, true
	}
	for _, m := range l.Above {
		if m.Generation == generation {
			return m.Window, true
		}
	}
	return 0, false
}

// Claim is a site's open question to other sites about a request. It is stored by
// its number, until all have answered.
type Claim struct {
	message.ClaimAsk
	// Generation is the generation of the entity at this site.
	Generation uint64
	// Sites are the sites that have not answered.
	Sites []avantan.SiteID
}
