// Package input has the inputs of a core: requests of callers, messages of other sites,
// and the passing of time. Its validation of requests is that of sites and of app
// managers alike. It refuses to know whether a request can be granted.
package input

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/internal/spanctx"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/message"
)

// MaxTokens bounds limits and the tokens of a request: every such number is exact in
// JSON, and sums of many stay far from overflow.
const MaxTokens avantan.Tokens = 1<<53 - 1

// Now is the time of an input.
type Now struct {
	// Tick is monotonic within one life of the core. Time-outs rest on it.
	Tick avantan.Tick
	// Wall is in milliseconds since the Unix epoch. NotAfter times, the retention of
	// request records and the ends of leases over a restart rest on it.
	Wall int64
	// Nanos is monotonic since any time, in nanoseconds; 0 if unknown. The times of spans go
	// by it, and nothing else.
	Nanos int64
}

// Call identifies the waiting receiver of a reply; it is opaque to the core.
type Call any

// Input is an event for a site.
type Input interface{ input() }

// Acquire asks for tokens.
type Acquire struct {
	Call    Call
	Entity  string
	Tokens  avantan.Tokens
	Request attempt.Key
	// Wait is the time in milliseconds that the request may wait for tokens from other
	// sites.
	Wait avantan.Tick
	// Least is the fewest tokens to be content with; 0 for all of Tokens.
	Least avantan.Tokens
	// DryRun asks for the grant to expect at once: nothing moves or is recorded.
	DryRun bool
	// Lease, if not nil, asks for a lease.
	Lease *LeaseTerms
	// Once says that nobody repeats the request: if it needs not be durable, nothing remembers
	// it.
	Once bool
	// Trace is the span of the acquire if its trace is recorded; else nil.
	Trace *spanctx.Context
	Tries
}

// AcquireAll asks for tokens of several entities, all or none.
type AcquireAll struct {
	Call Call
	// Parts are the requested tokens, in the order of the caller; each part charges its
	// entity and all ancestors. There are at most MaxParts, and an entity may be named
	// twice.
	Parts   []Part
	Request attempt.Key
	// Wait is the time in milliseconds that the request may wait for tokens from other
	// sites.
	Wait avantan.Tick
	// Once and Trace are as in Acquire.
	Once  bool
	Trace *spanctx.Context
	Tries
}

// MaxParts bounds the parts of an AcquireAll.
const MaxParts = 1000

// Part is an entity's part of a request that spans several entities.
type Part struct {
	Entity string
	Tokens avantan.Tokens
}

// Tries places an acquire or release among the attempts of its request id.
type Tries struct {
	// attempt.Number is the attempt's number; 0 is the first.
	Attempt attempt.Number
	// Tried are the other sites that earlier attempts may have reached. If nil, and the
	// caller's count is above 1, these are all other sites.
	Tried []avantan.SiteID
	// NotAfter is the wall time after which the attempt must not run, in milliseconds
	// since the Unix epoch; 0 for none, which only first attempts may have.
	NotAfter int64
	// Acked acknowledges requests of the request's session: those of lower sequences. Their
	// client has the answers, each of a first attempt and final, and asks for none again. At
	// most the request's own sequence.
	Acked uint64
}

// Release gives tokens back.
type Release struct {
	Call   Call
	Entity string
	// Tokens may be 0 with a Lease: all tokens of the lease.
	Tokens  avantan.Tokens
	Request attempt.Key
	// Lease, if not nil, is the lease that holds the tokens.
	Lease *LeaseRef
	Tries
}

// RenewLease gives a lease of this site a new time to live.
type RenewLease struct {
	Call  Call
	Lease attempt.Key
	// TTL is the new time to live in milliseconds; 0 keeps the previous TTL.
	TTL avantan.Tick
	// Touches reports whether the caller may touch an entity; nil for any entity. To the
	// caller, a lease of an entity that it may not touch does not exist.
	Touches func(entity string) bool
}

// CommitLease turns tokens of a lease of this site into tokens held without an end, gives
// the rest back and ends the lease.
type CommitLease struct {
	Call  Call
	Lease attempt.Key
	// Tokens to keep; 0 for all.
	Tokens  avantan.Tokens
	Request attempt.Key
	// Touches is as in RenewLease.
	Touches func(entity string) bool
}

// ListLeases asks for leases of this site, in the order of their numbers.
type ListLeases struct {
	Call Call
	// Holder and Entity filter; empty for any.
	Holder, Entity string
	// After is the number after which to start, Count the most leases to return.
	After uint64
	Count int
}

// Reset has the tokens out of a rate quota or a key come back at once, at this site. Of a
// template it resets all keys.
type Reset struct {
	Call   Call
	Entity string
}

// Watch asks for the next state of an entity. The answer comes once the entity has a
// later revision, or is deleted.
type Watch struct {
	Call   Call
	Entity string
	// After is the last revision seen; 0 for none.
	After Revision
}

// Revision orders the states of an entity that a site tells, within a life of its core:
// it counts the core's transactions from 1.
type Revision uint64

// Cancel says that nobody waits for a call any more. An acquire that waits for tokens is
// dropped without a reply: nothing is moved and nothing recorded.
type Cancel struct{ Call Call }

// Read asks for this site's view of an entity.
type Read struct {
	Call   Call
	Entity string
	// Cut asks for the Count of the view too.
	Cut bool
}

// ReadMode asks for the mode in force at this site.
type ReadMode struct{ Call Call }

// ReadMembers asks for the sites of the cluster.
type ReadMembers struct{ Call Call }

// Recover tells a site that a majority of the members is lost for good: the machines of
// Lost are destroyed, and Survivors are all others. The answer is OK once it is durable,
// also for a repeat. It is Mismatch if the survivors are a majority, Invalid with Lacking
// the site that is in neither list, in both or was lost before, and NotFound with Lacking
// the entity of which no voter survives, empty for the catalogue.
type Recover struct {
	Call            Call
	Survivors, Lost []avantan.SiteID
	// Check has nothing changed: the answer tells whether it would be.
	Check bool
}

// SetForecast asks for another forecasting model, until this site ends. Entities change
// over when their next bin closes, and keep as much as possible of their learning.
type SetForecast struct {
	Call Call
	// Model is a name in predict.Names.
	Model string
}

// ReadForecast asks for this site's forecasting model.
type ReadForecast struct{ Call Call }

// Observe asks for the state of an entity, its forecast, and what was asked of it here since
// the last Observe of the entity, if that was within a minute.
type Observe struct {
	Call   Call
	Entity string
	// End says that nobody observes the entity any more.
	End bool
}

// List asks for entities in the order of their names.
type List struct {
	Call   Call
	Prefix string
	// After is the name after which to start; empty starts at the first.
	After string
	// Count is the most entities to return, at least 1.
	Count int
	// Contains is in the names to return, in lower case; upper case counts as lower case.
	Contains string
	// Parent is the name of the entity right above, empty for any. Top leaves out entities
	// with one.
	Parent string
	Top    bool
	// Look is the most entities to look at, 0 for all. A list ends before the next.
	Look int
	// Sum asks for the sums of the entities looked at that have no parent, and for no
	// entity.
	Sum bool
}

// ChangeKind is the kind of an administrative change.
type ChangeKind string

const (
	// CreateEntity creates an entity.
	CreateEntity ChangeKind = "create"
	// DeleteEntity deletes an entity.
	DeleteEntity ChangeKind = "delete"
	// MoveEntity gives an entity, with its subtree, another parent.
	MoveEntity ChangeKind = "move"
	// SetLimit changes an entity's limit.
	SetLimit ChangeKind = "limit"
	// Reconcile makes an entity's books say how many tokens are in use.
	Reconcile ChangeKind = "reconcile"
	// SetMode changes the protocol under which the sites begin instances.
	SetMode ChangeKind = "mode"
	// AddSite gives a site a seat in the cluster, so that the site may join.
	AddSite ChangeKind = "add_site"
	// AdmitSite makes a member of a site that has joined. Sites propose it by themselves.
	AdmitSite ChangeKind = "admit_site"
	// DrainSite has a member hand over all that it holds, and leave.
	DrainSite ChangeKind = "drain_site"
	// KeepSite makes a member again of a site that drains.
	KeepSite ChangeKind = "keep_site"
	// SettleSite notes that a site whose drain was cancelled has no bequest open any more.
	// The site proposes it by itself.
	SettleSite ChangeKind = "settle_site"
	// RetireSite ends a drain: the site holds nothing. Sites propose it by themselves.
	RetireSite ChangeKind = "retire_site"
	// RemoveSite withdraws the seat of a site that has not become a member.
	RemoveSite ChangeKind = "remove_site"
	// LoseSite writes off a site that is lost for good.
	LoseSite ChangeKind = "lose_site"
	// RescueEntity brings back all that a lost site held of an entity, by the site's data.
	RescueEntity ChangeKind = "rescue"
	// RescueSite notes that all that a lost site held is back.
	RescueSite ChangeKind = "rescue_site"
	// RaiseVersion raises the version of the cluster by one.
	RaiseVersion ChangeKind = "version"
)

// OfSites reports whether the kind changes the sites of the cluster.
func (k ChangeKind) OfSites() bool {
	switch k {
	case AddSite, AdmitSite, DrainSite, KeepSite, SettleSite, RetireSite, RemoveSite, LoseSite, RescueSite:
		return true
	}
	return false
}

// OfVoters reports whether the kind changes the voters. Such a change waits until all
// entities have adopted the voters of the one before.
func (k ChangeKind) OfVoters() bool {
	return k == AdmitSite || k == DrainSite || k == KeepSite || k == LoseSite
}

// Change asks a majority of the sites for an administrative change.
type Change struct {
	Call Call
	Kind ChangeKind
	// Name is the entity's name; empty for SetMode and RaiseVersion.
	Name string
	// Mode is a name in ProtocolNames for SetMode; else empty.
	Mode string
	// Version is the version to raise the cluster's to (RaiseVersion); else 0.
	Version versions.Version
	// Limit is the new limit: CreateEntity, SetLimit.
	Limit avantan.Tokens
	// Parent is the name of the parent (CreateEntity, MoveEntity); empty for none.
	Parent string
	// Rate has the terms of a rate quota (CreateEntity); zero for other entities.
	Rate rates.Terms
	// Subtree has a DeleteEntity delete the entity's descendants too; without it an
	// entity with children is not deleted.
	Subtree bool
	// Truth is the count of a Reconcile; else zero.
	Truth Truth
	// Rescue is what the data of a lost site holds of the entity (RescueEntity); else nil.
	Rescue *Rescue
	// Expected is the generation (DeleteEntity, MoveEntity) or version (SetLimit, Reconcile)
	// that the entity must have, or the version of the mode (SetMode) or of the members
	// (AdmitSite and later kinds of sites); 0 for any.
	Expected uint64
	// Incarnation is the incarnation of the data of the site (AdmitSite).
	Incarnation uint64
	// Heir is the member that takes over (DrainSite); empty leaves the choice to the
	// catalogue.
	Heir avantan.SiteID
	// RequestID identifies the change; not empty.
	RequestID string
	// Wait is the time in milliseconds for the decision of the change, and with Applied
	// for the knowledge that all members have applied it.
	Wait avantan.Tick
	// Applied delays the answer to a SetLimit or RescueEntity until all members are known to
	// have applied the change, or until Wait is over: the change stands then as well.
	Applied bool
	// NotAfter is the wall time after which the change must not run, in milliseconds
	// since the Unix epoch. It is the same for all repeats, at most
	// [Config.RequestHorizon] ahead. If it is 0 the site chooses: a repeat is then known
	// for [Config.Retention] only.
	NotAfter int64
}

// Truth is an operator's count of the tokens that are in use of an entity, as of a cut.
type Truth struct {
	// InUse is the count, 0 to MaxTokens.
	InUse avantan.Tokens
	// Counted is what the entity's sites had on their books at the cut, in -MaxTokens to
	// MaxTokens. Returning bounds the part of Counted that comes back without another
	// request; 0 to MaxTokens.
	Counted, Returning avantan.Tokens
	// Generation is the entity's generation at the cut.
	Generation uint64
}

// Drift is the number of tokens that the books count as in use and that are not. A
// negative number counts tokens in use that the books do not count. It is 0 if either
// depends on the tokens that may come back.
func (t *Truth) Drift() avantan.Tokens {
	return max(t.Counted-t.Returning-t.InUse, min(0, t.Counted-t.InUse))
}

// Rescue is what the data of a lost site holds of an entity.
type Rescue struct {
	// Site is the lost site.
	Site avantan.SiteID
	// Generation is the entity's generation.
	Generation uint64
	// Net are the tokens out through the site, without those of entities below: acquired
	// less released, -MaxTokens to MaxTokens. Held are the tokens left at the site and those
	// out, with those of entities below; in the same bounds.
	Net, Held avantan.Tokens
	// Leased are the tokens in Net that leases hold, at most MaxLeased parts.
	Leased []Leased
}

// Leased are tokens of leases that end at a time.
type Leased struct {
	// Tokens are 1 to MaxTokens.
	Tokens avantan.Tokens `json:"tokens"`
	// Until is the wall time of the end in milliseconds since the Unix epoch, from 1.
	Until int64 `json:"until"`
}

// MaxLeased bounds the parts of a Rescue.
const MaxLeased = 8

// Deliver hands over messages that another site sent.
type Deliver struct {
	From     avantan.SiteID
	Messages []message.Envelope
}

// Reachable names the other sites that seem to be reachable now. It is a hint: a leader
// waits for no others. Safety does not rest on it.
type Reachable struct{ Sites []avantan.SiteID }

// Speaks hands over what another site told of its versions as it was connected. A message
// from that site comes after it.
type Speaks struct {
	From    avantan.SiteID
	Speaker versions.Speaker
}

// Stop says that the site is about to stop. Waiting acquires are answered Stopping, and
// none waits any more; all else goes on.
type Stop struct{}

// Wake says that the time of [Core.WakeAt] has come.
type Wake struct{}

func (*RenewLease) input() {}

func (*CommitLease) input() {}

func (*ListLeases) input() {}

func (*Watch) input() {}

func (*Reset) input() {}

func (*Acquire) input() {}

func (*AcquireAll) input() {}

func (*Release) input() {}

func (*Cancel) input() {}

func (*Read) input() {}

func (*ReadMode) input() {}

func (*ReadMembers) input() {}

func (*Recover) input() {}

func (*SetForecast) input() {}

func (*ReadForecast) input() {}

func (*List) input()    {}
func (*Observe) input() {}

func (*Change) input() {}

func (Speaks) input() {}

func (Deliver) input() {}

func (Reachable) input() {}

func (Stop) input() {}

func (Wake) input() {}

// Number is the number of the attempt; a first attempt may have none in Tries.
func (t *Tries) Number() attempt.Number { return max(t.Attempt, attempt.First) }
