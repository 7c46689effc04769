// Package answer has the answers of a site to its callers. It refuses to decide anything:
// package core does.
package answer

import (
	"cmp"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/input"
)

// Code says how a request ended.
type Code uint8

const (
	// OK: done and durable.
	OK Code = iota
	// OutOfTokens: refused, no site gave the tokens in time.
	OutOfTokens
	// NotFound: no such entity.
	NotFound
	// Exists: an entity with the same name exists.
	Exists
	// Reused: the request id was used with another body.
	Reused
	// Mismatch: the entity or the mode does not have the expected generation or version.
	Mismatch
	// Overloaded: too many requests wait or are remembered already; nothing was done.
	Overloaded
	// NoQuorum: no majority was reached in time; nothing was done.
	NoQuorum
	// Unknown: the time ran out while the sites were deciding the change, which they may
	// still accept. A repeat with the same request id tells.
	Unknown
	// Overflow: the counts would leave the range of 64 bits.
	Overflow
	// Stopping: the site is about to stop; nothing was done.
	Stopping
	// Invalid: the arguments are out of range (zero or negative tokens, no such
	// model).
	Invalid
	// Unvouched: too few members have vouched for the site's data so far; nothing was
	// done.
	Unvouched
	// QueueFull: too many acquires wait for tokens of the entity; nothing was done.
	QueueFull
	// Superseded: the caller made a later attempt of the request; this attempt does
	// nothing.
	Superseded
	// Expired: the request's time to be run is over; nothing was done.
	Expired
	// NoLease: there is no such lease, or it has ended.
	NoLease
	// NoParent: no entity has the name of the parent.
	NoParent
	// HasChildren: the entity to be deleted has entities below it.
	HasChildren
	// Looped: the parent is the entity itself or stands below it.
	Looped
	// TooDeep: an entity would stand deeper than MaxDepth.
	TooDeep
	// ExceedsLimit: refused, the acquire asks for more tokens than a limit that it
	// charges, so no site can ever grant it.
	ExceedsLimit
	// Halted: a balance of the entity, or of an entity in its tree, is broken at this
	// site; nothing was done.
	Halted
	// Unready: not all members are connected and have told that they speak the version
	// to raise the cluster's to; nothing was done.
	Unready
	// Draining: the site takes no new acquires, as it leaves; nothing was done.
	Draining
	// Changing: another change of the members is under way; nothing was done. For a count
	// of an entity, Members has the sites that leave and the number of entities behind.
	Changing
	// Moved: this site leaves and has handed the lease to its heir, Lacking; nothing was
	// done. A lease that has ended is NoLease.
	Moved
	// TooEarly: the cluster has not come to the version that knows the change. Version has
	// the one that the change needs; nothing was done.
	TooEarly
	// ByClock: the request does not go with a rate quota, which the entity is; nothing was
	// done.
	ByClock
	// Unrated: the request is for rate quotas, and the entity is none; nothing was done.
	Unrated
	// OfKey: the request names a template or a key, and does not go with it; nothing was done.
	OfKey
	// Unshareable: the entity has no leases of share, or has a parent; nothing was done.
	Unshareable
)

var codeNames = [...]string{
	"ok", "out_of_tokens", "not_found", "exists", "reused", "mismatch",
	"overloaded", "no_quorum", "unknown", "overflow", "stopping", "invalid", "unvouched",
	"queue_full", "superseded", "expired", "no_lease", "no_parent", "has_children", "looped", "too_deep",
	"exceeds_limit", "halted", "unready", "draining", "changing", "moved", "too_early", "by_clock", "unrated", "of_key", "unshareable",
}

// String returns the code's name.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return "?"
}

// Answer is the answer to a call. Most calls are acquires and releases, and their answers
// are small.
type Answer struct {
	Code Code
	// Parked says that a release is recorded, and will be counted once other sites have
	// told that the release did not run there.
	Parked bool
	// More says that entities or leases follow after the page.
	More bool
	// Deleted says that the watched entity was deleted.
	Deleted bool
	// Tokens are the tokens granted or given back; with ExceedsLimit the limit of
	// Lacking.
	Tokens avantan.Tokens
	// Left is the number of tokens left at this site just after the request; with
	// OutOfTokens and ExceedsLimit, at the refusal.
	Left avantan.Tokens
	// RetryAfter is the delay after which another try may fare better; 0 if unknown.
	RetryAfter avantan.Tick
	// Elsewhere says that other sites may have the tokens, and that the caller may ask them
	// (OutOfTokens).
	Elsewhere bool
	// Lacking names an entity charged by the request: the named entity or an ancestor. It
	// lacks the tokens (OutOfTokens, QueueFull), or its limit is too low (ExceedsLimit).
	// With NotFound it is the missing entity, if the request names several. With Moved it
	// is no entity, but the heir.
	Lacking string
	// Missing is how many members must vouch for the site's data before it serves
	// (Unvouched).
	Missing int
	// Returned are the tokens given back by a CommitLease or RescueEntity.
	Returned avantan.Tokens
	// Revision is the revision of the View (Watch).
	Revision input.Revision
	// Details, if not nil, holds the parts that other kinds of answers add.
	Details *Details
}

// Details are the large parts of an answer. Answers share them; nobody may change them.
type Details struct {
	// View is the entity read or changed.
	View View
	// Unapplied are the members not known to have applied a change of the limit
	// (SetLimit), in the order of the members.
	Unapplied []avantan.SiteID
	// Version is the version of the cluster after a RaiseVersion, or instead of it; with
	// TooEarly the version needed.
	// Unready are the members that keep it from being raised, in their order.
	Version versions.Version
	Unready []UnreadySite
	// Mode is the mode decided by a SetMode; a repeat gets the mode of the first
	// decision. After a Mismatch only the version is set. For a ReadMode it is the mode
	// in force.
	Mode Mode
	// Members are the sites of the cluster (ReadMembers), or those that leave (Changing).
	Members Members
	// Forecast is the site's forecasting model (SetForecast, ReadForecast).
	Forecast ForecastChoice
	// Views is the listed page of entities. After is the last name that was looked at, and
	// Sum the sum of all looked at.
	Views []View
	After string
	Sum   Sum
	// Observed is what an Observe has seen, beside the View.
	Observed Observed
	// Lease is the lease granted or renewed, Leases the listed page of leases.
	Lease  Lease
	Leases []Lease
}

// noDetails are the details of an answer without Details.
var noDetails Details

func (a *Answer) details() *Details {
	if a.Details == nil {
		return &noDetails
	}
	return a.Details
}

// View is the View of the Details, empty if there are none.
func (a Answer) View() *View { return &a.details().View }

// Unapplied is the list of the Details, empty if there are none.
func (a Answer) Unapplied() []avantan.SiteID { return a.details().Unapplied }

// Version is the version of the Details, 0 if there are none.
func (a Answer) Version() versions.Version { return a.details().Version }

// Unready is the list of the Details, empty if there are none.
func (a Answer) Unready() []UnreadySite { return a.details().Unready }

// UnreadySite is a member that keeps the version of the cluster from being raised.
type UnreadySite struct {
	Site avantan.SiteID
	// Speaks has the versions that the member's build speaks, as told last; zero if it
	// has told nothing to this run.
	Speaks versions.Range
}

// Mode is the Mode of the Details, empty if there are none.
func (a Answer) Mode() Mode { return a.details().Mode }

// Members is the Members of the Details, empty if there are none.
func (a Answer) Members() *Members { return &a.details().Members }

// Forecast is the Forecast of the Details, empty if there are none.
func (a Answer) Forecast() ForecastChoice { return a.details().Forecast }

// Views is the page of the Details, empty if there are none.
func (a Answer) Views() []View { return a.details().Views }

// After is the last name that a list looked at, empty for none.
func (a Answer) After() string { return a.details().After }

// Sum is the sum of the Details, zero if there is none.
func (a Answer) Sum() Sum { return a.details().Sum }

// Observed is what an Observe has seen of an entity.
type Observed struct {
	// Tally counts since the last look, Since milliseconds ago; 0 if there was none lately.
	Tally Tally
	Since avantan.Tick
	// Forecast is the forecast for Horizon milliseconds. Forecasts reports whether there is
	// one.
	Forecast  Forecast
	Forecasts bool
	Horizon   avantan.Tick
}

// Tally counts the tokens of an entity that acquires got, that acquires were refused, and
// that came back, and the tokens that moved between sites.
type Tally struct {
	Granted, Refused, Released avantan.Tokens
	Moves                      []Move
}

// Move is a move of tokens between sites. Of a transfer From or To is this site. An instance
// names no sites; its tokens are above zero if this site got them, and below if it gave them.
type Move struct {
	Wall     int64
	From, To avantan.SiteID
	Tokens   avantan.Tokens
}

// Forecast is a forecast of the demand for an entity here; see predict.Forecast.
type Forecast struct{ Expected, Median, High float64 }

// Sum adds up entities at a site. The tokens are those of entities without a parent that are
// no rate quotas.
type Sum struct {
	Entities, Waiting  int
	Left, Net, Offered avantan.Tokens
}

// Lease is the Lease of the Details, empty if there are none.
func (a Answer) Lease() *Lease { return &a.details().Lease }

// Leases is the page of the Details, empty if there are none.
func (a Answer) Leases() []Lease { return a.details().Leases }

// View is this site's knowledge of an entity.
type View struct {
	Name       string
	Limit      avantan.Tokens
	Generation uint64
	Version    uint64
	// Members is the version of the sites of the cluster that this site knew, see Members:
	// of a Read.
	Members uint64
	// Left, Offered and Net are this site's books.
	Left, Offered, Net avantan.Tokens
	// Waiting is the number of acquires that wait here.
	Waiting int
	// Applied is the number of majority instances applied here, Moved the number of star
	// instances.
	Applied avantan.Instance
	Moved   uint64
	// Fetches is the number of rounds of direct transfers that brought tokens here.
	Fetches uint64
	// Surplus is the number of tokens kept out of circulation; see stored.Entity.
	Surplus avantan.Tokens
	// Debt is the excess of the tokens in circulation over Limit less Surplus; see
	// stored.Entity. Usable is the part of Left that the site may hand out.
	Debt, Usable avantan.Tokens
	// DebtSince is the instance that last raised the debt; 0 for none.
	DebtSince avantan.Instance
	// MayExceed bounds the excess of tokens out over Limit less Surplus: members that may
	// not have heard of the debt go on granting. It is 0 if all have heard.
	MayExceed avantan.Tokens
	// Parent is the name of the entity right above, empty for none. Children is the
	// number of entities right below.
	Parent   string
	Children int
	// WrittenOff is the number of tokens retired with lost sites; see stored.Entity.
	WrittenOff avantan.Tokens
	// Rate has the terms of a rate quota; zero for other entities. Ends is the end of the
	// window, in milliseconds since the Unix epoch; 0 for other entities.
	Rate rates.Terms
	Ends int64
	// Count is for a cut only.
	Count Count
	// Moves are the moves between sites that the books contain.
	Moves Moves
	// Others holds the other sites' reports, in the order of the members.
	Others []OtherView
}

// Count is a site's part of the tokens in use of an entity, as a cut counts them.
type Count struct {
	// Own is the site's net of the entity, less the nets of the entities below.
	Own avantan.Tokens
	// Returning bounds the part of Own that comes back without another request.
	Returning avantan.Tokens
	// Leased is the part of Own that leases hold.
	Leased avantan.Tokens
}

// Moves lists the moves of tokens between sites that a site's books contain.
type Moves struct {
	// Pledged says that the site has a part in the next majority instance. If false, no
	// value of that instance decided so far contains the site.
	Pledged  bool
	Stars    []StarMove
	Sent     []TransferMove
	Received []TransferMove
	// Handed are the last bequests to heirs, with Tokens 1 until they are acknowledged;
	// Inherited are the last bequests taken from sites that leave.
	Handed, Inherited []TransferMove
}

// StarMove is a part in an instance decided by its own members.
type StarMove struct {
	Leader  avantan.SiteID
	Counter uint64
	Applied bool
}

// TransferMove is the last transfer between two sites that this site knows of. Tokens is
// the amount of a transfer sent and not acknowledged.
type TransferMove struct {
	Site   avantan.SiteID
	Seq    uint64
	Tokens avantan.Tokens
}

// OtherView is another site's report of its books.
type OtherView struct {
	Site               avantan.SiteID
	Left, Offered, Net avantan.Tokens
	// Age is the time since the report; [Never] if there was no report.
	Age avantan.Tick
}

// Never is the age of a report that never came.
const Never = ^avantan.Tick(0)

// Lease describes a lease to clients.
type Lease struct {
	Number uint64
	ID     string
	Entity string
	Tokens avantan.Tokens
	// Remaining is the time in milliseconds until it ends.
	Remaining avantan.Tick
	Holder    string
	// Share says that the holder grants tokens in place of the site.
	Share bool
}

// ForecastChoice names the models by which a site forecasts.
type ForecastChoice struct {
	// Model is the model in force, Configured the site's own setting, which is in force
	// again after a restart.
	Model, Configured string
}

// DecidedMode is the last mode decided by the catalogue. The zero value says that the
// catalogue has decided none.
type DecidedMode struct {
	// Protocol is a name in ProtocolNames; empty for none.
	Protocol string `json:"protocol,omitempty"`
	// Version counts the decided changes of the mode, from 1.
	Version uint64 `json:"version,omitempty"`
}

// Mode names the protocol under which a site begins instances. Whatever it says, the site
// takes part in the instances of every protocol.
type Mode struct {
	// Decided is the mode decided by the catalogue, as far as this site knows.
	Decided DecidedMode
	// Configured is the site's own choice, in force until the catalogue decides a mode.
	Configured string
}

// Protocol returns the name of the protocol in force at the site.
func (m Mode) Protocol() string { return cmp.Or(m.Decided.Protocol, m.Configured) }

// Members are the sites of a cluster, as a site knows them.
type Members struct {
	// Version counts the changes of the voters; the founders' is 1.
	Version uint64
	// Behind is the number of entities that have not adopted the present voters yet.
	Behind int
	// Sites are in the order of their names.
	Sites []Member
}

// Member is a site of a cluster.
type Member struct {
	Site avantan.SiteID
	// State is the state of the site's seat; see stored.SeatState.
	State string
	// Heir is the member that takes over from a site that drains or is gone.
	Heir avantan.SiteID
	// Knows reports whether the site is known to have applied the change that decided its
	// state; a site that joins has then learned the catalogue.
	Knows bool
	// Unheard are the other members that are not known to have applied that change, in the
	// order of their names.
	Unheard []avantan.SiteID
	// Drain tells what a site that drains still holds; nil at all sites but the site itself.
	Drain *Drain
	// Rescued says that all that a lost site held is back.
	Rescued bool
	// Unsettled says that the drain of a member was cancelled, and that a bequest of the
	// member may still be open.
	Unsettled bool
	// Remembered is what the answering site remembers of the data of a lost site; zero for
	// nothing.
	Remembered Remembered
}

// Remembered is a site's memory of another site's data; see stored.Remembered.
type Remembered struct {
	Incarnation, Commits uint64
	// Served says that the data has told of a commit.
	Served bool
}

// Drain is what a site that leaves still holds, and what it waits for.
type Drain struct {
	// Entities, Leases and Claims count the entities of which the site still holds tokens,
	// the leases at the site, and the claims that it has not answered.
	Entities, Leases, Claims int
	// Tokens are those left at the site, of all entities; below zero for debts.
	Tokens avantan.Tokens
	// Records is the time in milliseconds until the last record of a request may be
	// forgotten; 0 once none is left.
	Records avantan.Tick
	// Unclear are the sites that still have something under way with the site, in the order
	// of their names.
	Unclear []avantan.SiteID
	// Emptied reports whether the site holds nothing any more: the members may retire it.
	Emptied bool
}
