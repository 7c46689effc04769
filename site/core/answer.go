package core

import "github.com/samya-db/samya/avantan"

// Code says how a request ended.
type Code uint8

const (
	// OK: done and durable.
	OK Code = iota
	// OutOfTokens: refused, the tokens were not found in time.
	OutOfTokens
	// NotFound: no such entity.
	NotFound
	// Exists: an entity of that name exists.
	Exists
	// Reused: the request id was used with another body.
	Reused
	// Mismatch: the entity, or the mode, has not the expected generation or version.
	Mismatch
	// Overloaded: too much waits or is remembered already; nothing was done.
	Overloaded
	// NoQuorum: no majority was reached in time; nothing was done.
	NoQuorum
	// Unknown: the time ran out while the change was being decided: it may
	// still be. Repeating the request id tells.
	Unknown
	// Overflow: the counts would leave the range of 64 bits.
	Overflow
	// Stopping: the site is about to stop; nothing was done.
	Stopping
	// Invalid: the arguments are out of range (zero or negative tokens, no such
	// model).
	Invalid
	// Unvouched: too few members have vouched for the site's data so far;
	// nothing was done.
	Unvouched
	// QueueFull: too many acquires wait for tokens of the entity; nothing was done.
	QueueFull
	// Superseded: a later attempt of the request was made; this one does nothing.
	Superseded
	// Expired: the request's time to be run is over; nothing was done.
	Expired
	// NoLease: there is no such lease, or it has ended.
	NoLease
	// NoParent: there is no entity of the parent's name.
	NoParent
	// HasChildren: entities stand below the one to be deleted.
	HasChildren
	// Looped: the parent is the entity itself or stands below it.
	Looped
	// TooDeep: an entity would stand deeper than MaxDepth.
	TooDeep
	// ExceedsLimit: refused, the acquire asks for more than a limit at the least, which
	// no site can ever grant.
	ExceedsLimit
	// Halted: a balance of the entity, or of one in its tree, is broken at this site;
	// nothing was done.
	Halted
)

var codeNames = [...]string{
	"ok", "out_of_tokens", "not_found", "exists", "reused", "mismatch",
	"overloaded", "no_quorum", "unknown", "overflow", "stopping", "invalid", "unvouched",
	"queue_full", "superseded", "expired", "no_lease", "no_parent", "has_children", "looped", "too_deep",
	"exceeds_limit", "halted",
}

// String returns the code's name.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return "?"
}

// Answer is the answer to one call. Most calls are acquires and releases, and
// theirs are small.
type Answer struct {
	Code Code
	// Parked says that a release is recorded, and counted once other sites have
	// told that it did not run there.
	Parked bool
	// More says that entities, or leases, follow behind the page.
	More bool
	// Deleted says that the entity watched was deleted.
	Deleted bool
	// Tokens are those granted or given back (ExceedsLimit: the limit of Lacking).
	Tokens Tokens
	// Left is what this site had left just after (OutOfTokens, ExceedsLimit: just then).
	Left Tokens
	// RetryAfter is when another try may fare better; 0 for no idea.
	RetryAfter Tick
	// Lacking is the entity that has not the tokens (OutOfTokens, QueueFull) or whose
	// limit is too low (ExceedsLimit), of those that the request charges: the one named
	// or one above it. If the request
	// names several, and one of them is not there when it comes (NotFound), it is that.
	Lacking string
	// Missing is how many members must vouch for the site's data before it serves
	// (Unvouched).
	Missing int
	// Returned are the tokens that a CommitLease gave back.
	Returned Tokens
	// Revision is that of the View (Watch).
	Revision Revision
	// Details, if not nil, is what other answers tell beside.
	Details *Details
}

// Details are the parts of an answer that are large. They are shared, and not
// to be changed.
type Details struct {
	// View is the entity read or changed.
	View View
	// Unapplied are the members that are not known to have applied a change of the
	// limit (SetLimit), in their order.
	Unapplied []SiteID
	// Mode is the one decided by a SetMode, with a repeat the one decided then; of
	// a Mismatch it has the version alone. Of a ReadMode it is the one in force.
	Mode Mode
	// Forecast is by which model the site forecasts (SetForecast, ReadForecast).
	Forecast ForecastChoice
	// Views is the page listed.
	Views []View
	// Lease is the lease granted or renewed, Leases the page listed.
	Lease  LeaseView
	Leases []LeaseView
}

// noDetails are those of an answer that has none.
var noDetails Details

func (a *Answer) details() *Details {
	if a.Details == nil {
		return &noDetails
	}
	return a.Details
}

// View is that of the Details, empty if there are none.
func (a Answer) View() *View { return &a.details().View }

// Unapplied are those of the Details, none if there are none.
func (a Answer) Unapplied() []SiteID { return a.details().Unapplied }

// Mode is that of the Details, empty if there are none.
func (a Answer) Mode() Mode { return a.details().Mode }

// Forecast is that of the Details, empty if there are none.
func (a Answer) Forecast() ForecastChoice { return a.details().Forecast }

// Views are those of the Details, none if there are none.
func (a Answer) Views() []View { return a.details().Views }

// Lease is that of the Details, empty if there are none.
func (a Answer) Lease() *LeaseView { return &a.details().Lease }

// Leases are those of the Details, none if there are none.
func (a Answer) Leases() []LeaseView { return a.details().Leases }

// View is what this site knows of an entity.
type View struct {
	Name       string
	Limit      Tokens
	Generation uint64
	Version    uint64
	// Left, Offered and Net are this site's books.
	Left, Offered, Net Tokens
	// Waiting is how many acquires wait here.
	Waiting int
	// Applied is how many instances that a majority decided are applied here, and
	// Moved how many that their members decided.
	Applied avantan.Instance
	Moved   uint64
	// Fetches is how many rounds of direct transfers have brought tokens here.
	Fetches uint64
	// Surplus is kept out of circulation; see EntityRecord.
	Surplus Tokens
	// Debt is by how much the tokens in circulation exceed Limit less Surplus; see
	// EntityRecord. Usable is what the site may hand out of Left.
	Debt, Usable Tokens
	// DebtSince is the instance that last raised the debt; 0 for none.
	DebtSince avantan.Instance
	// MayExceed is by how many tokens Limit less Surplus may be exceeded at most, as
	// members that may not have heard of the debt go on granting; 0 if all have heard.
	MayExceed Tokens
	// Parent is the name of the entity that it stands below, empty for none, and
	// Children how many stand right below it.
	Parent   string
	Children int
	// Moves are the moves between sites that the books contain.
	Moves Moves
	// Others is what other sites have told, in the order of the members.
	Others []OtherView
}

// Moves tells which moves of tokens between sites a site's books contain.
type Moves struct {
	// Pledged: the site has a part in the next instance that a majority decides.
	// Without one it is in no value of it that was decided by then.
	Pledged  bool
	Stars    []StarMove
	Sent     []TransferMove
	Received []TransferMove
}

// StarMove is a part in an instance decided by its members.
type StarMove struct {
	Leader  SiteID
	Counter uint64
	Applied bool
}

// TransferMove is the last transfer between two sites that one of them knows of;
// Tokens are those of one sent and not acknowledged.
type TransferMove struct {
	Site   SiteID
	Seq    uint64
	Tokens Tokens
}

// OtherView is what another site has told of its books.
type OtherView struct {
	Site               SiteID
	Left, Offered, Net Tokens
	// Age is how long ago it was heard; [Never] if it was not.
	Age Tick
}

// Never is the age of what was never heard.
const Never = ^Tick(0)
