package core

import "github.com/samya-db/samya/avantan"

// Tokens counts tokens.
type Tokens = avantan.Tokens

// SiteID is the name of a site.
type SiteID = avantan.SiteID

// Tick is logical time in milliseconds.
type Tick = avantan.Tick

// MaxTokens bounds limits and the tokens of one request: every such number is
// exact in JSON, and sums of many stay far from overflow.
const MaxTokens Tokens = 1<<53 - 1

// Now is the time at which an input is handled.
type Now struct {
	// Tick is monotonic within one life of the core. Time-outs rest on it.
	Tick Tick
	// Wall is milliseconds since the Unix epoch. Only the retention of request
	// records rests on it.
	Wall int64
}

// Call stands for whoever waits for a reply; it is opaque to the core.
type Call any

// RequestKey identifies a request: a collision-resistant hash of its id.
type RequestKey [16]byte

// Input is one thing that happens to a site.
type Input interface{ input() }

// Acquire asks for tokens.
type Acquire struct {
	Call    Call
	Entity  string
	Tokens  Tokens
	Request RequestKey
	// Wait is how long the request may wait for tokens from other sites.
	Wait Tick
}

// Release gives tokens back.
type Release struct {
	Call    Call
	Entity  string
	Tokens  Tokens
	Request RequestKey
}

// Cancel says that nobody waits for a call any more. If it is an acquire that
// waits for tokens it is dropped without a reply, nothing moved and nothing
// recorded.
type Cancel struct{ Call Call }

// Read asks for this site's view of one entity.
type Read struct {
	Call   Call
	Entity string
}

// ReadMode asks what this site goes by.
type ReadMode struct{ Call Call }

// SetForecast asks for another forecasting model, until this site ends. Entities
// change over when their next bin closes, with what can be kept of what they have
// learnt.
type SetForecast struct {
	Call Call
	// Model is one of predict.Names.
	Model string
}

// ReadForecast asks by which model this site forecasts.
type ReadForecast struct{ Call Call }

// List asks for entities in the order of their names.
type List struct {
	Call   Call
	Prefix string
	// After is the name behind which to start; empty starts at the first.
	After string
	// Count is the most entities to return, at least 1.
	Count int
}

// ChangeKind says what an administrative change does.
type ChangeKind string

const (
	// CreateEntity creates an entity.
	CreateEntity ChangeKind = "create"
	// DeleteEntity deletes an entity.
	DeleteEntity ChangeKind = "delete"
	// SetLimit changes an entity's limit.
	SetLimit ChangeKind = "limit"
	// SetMode changes the protocol under which the sites begin instances.
	SetMode ChangeKind = "mode"
)

// Change asks a majority of the sites for an administrative change.
type Change struct {
	Call Call
	Kind ChangeKind
	// Name is the entity's; empty for SetMode.
	Name string
	// Mode is one of ProtocolNames: SetMode; else empty.
	Mode string
	// Limit is the new limit: CreateEntity, SetLimit.
	Limit Tokens
	// Expected is the generation (DeleteEntity) or version (SetLimit) that the
	// entity must have, or the version of the mode (SetMode); 0 for any.
	Expected uint64
	// RequestID identifies the change; not empty.
	RequestID string
	// Wait is how long the change may take to be decided.
	Wait Tick
}

// Deliver hands over messages that another site sent.
type Deliver struct {
	From     SiteID
	Messages []Envelope
}

// Reachable says which other sites seem to be reachable now. It is a hint: a
// leader waits for no others. Safety does not rest on it.
type Reachable struct{ Sites []SiteID }

// Stop says that the site is about to stop. Acquires that wait for tokens are
// answered Stopping, and none waits any more; all else goes on.
type Stop struct{}

// Wake says that the time of [Core.WakeAt] has come.
type Wake struct{}

func (*Acquire) input()      {}
func (*Release) input()      {}
func (*Cancel) input()       {}
func (*Read) input()         {}
func (*ReadMode) input()     {}
func (*SetForecast) input()  {}
func (*ReadForecast) input() {}
func (*List) input()         {}
func (*Change) input()       {}
func (Deliver) input()       {}
func (Reachable) input()     {}
func (Stop) input()          {}
func (Wake) input()          {}

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
)

var codeNames = [...]string{
	"ok", "out_of_tokens", "not_found", "exists", "reused", "mismatch",
	"overloaded", "no_quorum", "unknown", "overflow", "stopping", "invalid", "unvouched",
}

// String returns the code's name.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return "?"
}

// Answer is the answer to one call.
type Answer struct {
	Code Code
	// Tokens are those granted or given back.
	Tokens Tokens
	// Left is what this site had left just after (OutOfTokens: just then).
	Left Tokens
	// RetryAfter is when another try may fare better; 0 for no idea.
	RetryAfter Tick
	// Missing is how many members must vouch for the site's data before it serves
	// (Unvouched).
	Missing int
	// View is the entity read or changed.
	View View
	// Mode is the one decided by a SetMode, with a repeat the one decided then; of
	// a Mismatch it has the version alone. Of a ReadMode it is the one in force.
	Mode Mode
	// Forecast is by which model the site forecasts (SetForecast, ReadForecast).
	Forecast ForecastChoice
	// Views is the page listed.
	Views []View
	// More says that entities follow behind the page.
	More bool
}

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
}
