// Package ledger keeps the load generators' own account of the tokens they acquired and
// released, to check the books of a cluster against it; it never asks the cluster
// anything and keeps no history. Its memory grows with the operations under way, not
// with ended operations.
//
// # The bound
//
// At every instant, Σ(acquires returned so far) − Σ(releases invoked so far) is a lower
// bound of the tokens out: a returned acquire was executed before, and a release cannot
// be executed before its invocation. If the sum ever exceeds the limit, the cluster
// granted more than the limit. The ledger updates the sum with each event and remembers
// the maximum.
//
// The caller must keep a single rule: call Invoke before the request can leave, and
// Return or Resolve after the answer has arrived. An early Invoke or a late Return only
// lowers the sum, so a report of too many tokens is never false.
//
// # Unknown outcomes
//
// An acquire with an unknown outcome counts once it is resolved as executed. A release
// counts from its invocation on, unless it is resolved as refused. From then on its
// tokens are out again. They always were, so the sum stays a lower bound.
package ledger

import (
	"fmt"
	"sync"
	"time"
)

// Kind tells an acquire from a release.
type Kind uint8

// The kinds of operations.
const (
	// Acquire takes tokens.
	Acquire Kind = iota
	// Release gives tokens back.
	Release
)

// String names the kind as the API does.
func (k Kind) String() string {
	switch k {
	case Acquire:
		return "acquire"
	case Release:
		return "release"
	default:
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
}

// Outcome says whether an operation was executed.
type Outcome uint8

// The outcomes of an operation.
const (
	// Executed: the tokens moved.
	Executed Outcome = iota
	// Refused: the tokens did not move and never will for this operation.
	Refused
)

// Ledger is the account of all entities. The zero value is not usable; use
// [New]. All methods may be called from several goroutines at once.
type Ledger struct {
	now func() time.Time

	mu       sync.Mutex
	start    time.Time
	accounts map[string]*account
}

// account is an entity's part of a ledger. Its invariant: held is Σ(acquires known to be
// executed) − Σ(releases invoked and not known to be refused).
type account struct {
	held    int64
	max     Peak
	pending Pending
}

// Peak is the highest sum seen of an entity, and the time at which it was first reached.
type Peak struct {
	// Tokens is the highest value of Σ(acquires returned) − Σ(releases invoked), in
	// tokens.
	Tokens int64
	// At is the time since the ledger was made, monotonic.
	At time.Duration
}

// Pending counts the operations of an entity without a known outcome.
type Pending struct {
	// Acquires and AcquireTokens count acquires without an outcome.
	Acquires, AcquireTokens int64
	// Releases and ReleaseTokens count releases without an outcome.
	Releases, ReleaseTokens int64
	// Unknown counts the acquires and releases that ended without an answer and are not
	// resolved.
	Unknown int64
}

// Op is an operation from its invocation to its outcome. It belongs to the ledger that
// made it. Its methods may be called from any goroutine.
type Op struct {
	ledger  *Ledger
	account *account
	kind    Kind
	tokens  int64
	invoked time.Duration

	// The ledger's lock guards the fields below.
	unknown bool
	done    bool
}

// New makes an empty ledger that reads the time from now; nil means [time.Now]. The
// readings must carry a monotonic clock, as time.Now's do, to stay comparable when the
// wall clock changes.
func New(now func() time.Time) *Ledger {
	if now == nil {
		now = time.Now
	}
	return &Ledger{now: now, start: now(), accounts: make(map[string]*account)}
}

// Invoke records that an operation is about to be sent. It panics if tokens is not
// positive: such a request cannot be executed.
func (l *Ledger) Invoke(entity string, kind Kind, tokens int64) *Op {
	if tokens <= 0 {
		panic(fmt.Sprintf("ledger: invoke %s of %d tokens", kind, tokens))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[entity]
	if a == nil {
		a = &account{}
		l.accounts[entity] = a
	}
	switch kind {
	case Acquire:
		a.pending.Acquires++
		a.pending.AcquireTokens += tokens
	case Release:
		a.pending.Releases++
		a.pending.ReleaseTokens += tokens
		a.held -= tokens
	}
	return &Op{ledger: l, account: a, kind: kind, tokens: tokens, invoked: l.now().Sub(l.start)}
}

// Kind returns the operation's kind.
func (o *Op) Kind() Kind { return o.kind }

// Tokens returns the tokens that the operation asked to move.
func (o *Op) Tokens() int64 { return o.tokens }

// Invoked returns the time of the invocation, since the ledger was made.
func (o *Op) Invoked() time.Duration { return o.invoked }

// Return records the answer to the operation. It panics if the operation already has an
// outcome or was given up as unknown: the caller has counted an event twice.
func (o *Op) Return(outcome Outcome) {
	o.ledger.mu.Lock()
	defer o.ledger.mu.Unlock()
	if o.done || o.unknown {
		panic("ledger: Return of an operation that ended before")
	}
	o.finish(outcome)
}

// Unknown records that the operation ended without an answer: the cluster executed it,
// will execute it, or never will. Resolve ends it. Unknown panics if the operation ended
// before.
func (o *Op) Unknown() {
	o.ledger.mu.Lock()
	defer o.ledger.mu.Unlock()
	if o.done || o.unknown {
		panic("ledger: Unknown of an operation that ended before")
	}
	o.unknown = true
	o.account.pending.Unknown++
}

// Resolve records the outcome of an unknown operation. It panics if the operation is not
// unknown.
func (o *Op) Resolve(outcome Outcome) {
	o.ledger.mu.Lock()
	defer o.ledger.mu.Unlock()
	if o.done || !o.unknown {
		panic("ledger: Resolve of an operation that is not unknown")
	}
	o.account.pending.Unknown--
	o.finish(outcome)
}

// finish books the outcome. The caller holds the ledger's lock.
func (o *Op) finish(outcome Outcome) {
	o.done = true
	a := o.account
	switch o.kind {
	case Acquire:
		a.pending.Acquires--
		a.pending.AcquireTokens -= o.tokens
		if outcome == Executed {
			a.held += o.tokens
		}
	case Release:
		a.pending.Releases--
		a.pending.ReleaseTokens -= o.tokens
		if outcome == Refused {
			a.held += o.tokens
		}
	}
	if a.held > a.max.Tokens {
		a.max = Peak{Tokens: a.held, At: o.ledger.now().Sub(o.ledger.start)}
	}
}

// Held returns Σ(acquires executed) − Σ(releases invoked and not refused) of an entity.
// Once no operation is pending, the books must show exactly this sum.
func (l *Ledger) Held(entity string) int64 {
	low, _ := l.Bounds(entity)
	return low
}

// Bounds returns the bounds of the entity's tokens out, for any outcome of the pending
// operations.
func (l *Ledger) Bounds(entity string) (low, high int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[entity]
	if a == nil {
		return 0, 0
	}
	return a.held, a.held + a.pending.AcquireTokens + a.pending.ReleaseTokens
}

// Pending returns the operations of an entity without an outcome.
func (l *Ledger) Pending(entity string) Pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[entity]; a != nil {
		return a.pending
	}
	return Pending{}
}

// MaxAcquired returns the highest value that Σ(acquires returned) − Σ(releases invoked)
// of an entity ever had; at least zero.
func (l *Ledger) MaxAcquired(entity string) Peak {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[entity]; a != nil {
		return a.max
	}
	return Peak{}
}
