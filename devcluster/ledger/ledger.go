// Package ledger keeps the load generators' own account of what they acquired
// and released, against which the books of a cluster are checked; it never
// asks the cluster anything, and it keeps no history: its memory grows with
// the operations under way, not with those that ended.
//
// # What is proved
//
// At every instant, Σ(acquires returned so far) − Σ(releases invoked so far)
// is a lower bound of the tokens that are out: a returned acquire was executed
// before, and a release cannot have been executed before it was invoked. If
// that sum ever exceeds the limit, the cluster granted more than the limit.
// The ledger carries the sum along, event by event, and remembers its maximum.
//
// The caller must keep one rule: call Invoke before the request can leave, and
// Return or Resolve after the answer has arrived. Being early with the one or
// late with the other only lowers the sum, so a report of too many tokens is
// never a false one.
//
// # Unknown outcomes
//
// An acquire whose outcome is unknown counts once it is resolved as executed.
// A release counts from its invocation on, unless it turns out not to have
// been executed; from then on its tokens are out again (they always were, so
// the sum stays a lower bound).
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

// Outcome is what became of an operation.
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

// account is one entity's part of a ledger. Its invariant: held is Σ(acquires
// known to be executed) − Σ(releases invoked and not known to be refused).
type account struct {
	held    int64
	max     Peak
	pending Pending
}

// Peak is the highest sum seen of one entity, and when it was first reached.
type Peak struct {
	// Tokens is the highest value of Σ(acquires returned) − Σ(releases invoked).
	Tokens int64
	// At is the time since the ledger was made, monotonic.
	At time.Duration
}

// Pending counts the operations of one entity whose outcome is not known.
type Pending struct {
	// Acquires and AcquireTokens count acquires without an outcome.
	Acquires, AcquireTokens int64
	// Releases and ReleaseTokens count releases without an outcome.
	Releases, ReleaseTokens int64
	// Unknown counts those, of either kind, that ended without an answer and
	// were not resolved since.
	Unknown int64
}

// Op is one operation from its invocation to its outcome. It belongs to the
// ledger that made it; its methods may be called from any goroutine.
type Op struct {
	ledger  *Ledger
	account *account
	kind    Kind
	tokens  int64
	invoked time.Duration

	// The fields below are guarded by the ledger's lock.
	unknown bool
	done    bool
}

// New makes an empty ledger that reads the time from now; nil means
// [time.Now]. The readings must carry a monotonic clock to be comparable over
// a change of the wall clock, as those of time.Now do.
func New(now func() time.Time) *Ledger {
	if now == nil {
		now = time.Now
	}
	return &Ledger{now: now, start: now(), accounts: make(map[string]*account)}
}

// Invoke records that an operation is about to be sent. It panics if tokens
// is not positive: such a request cannot be executed and has no place here.
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

// Tokens returns how many tokens the operation asked to move.
func (o *Op) Tokens() int64 { return o.tokens }

// Invoked returns when the operation was invoked, since the ledger was made.
func (o *Op) Invoked() time.Duration { return o.invoked }

// Return records the answer to the operation. It panics if the operation
// already has an outcome or was given up as unknown: the caller has counted
// something twice.
func (o *Op) Return(outcome Outcome) {
	o.ledger.mu.Lock()
	defer o.ledger.mu.Unlock()
	if o.done || o.unknown {
		panic("ledger: Return of an operation that ended before")
	}
	o.finish(outcome)
}

// Unknown records that the operation ended without an answer: it may have been
// executed, may be later, or never. Resolve ends it.
func (o *Op) Unknown() {
	o.ledger.mu.Lock()
	defer o.ledger.mu.Unlock()
	if o.done || o.unknown {
		panic("ledger: Unknown of an operation that ended before")
	}
	o.unknown = true
	o.account.pending.Unknown++
}

// Resolve records the outcome of an operation that had been Unknown.
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

// Held returns Σ(acquires executed) − Σ(releases invoked and not refused) of
// an entity. Once nothing is pending it is exactly what the books must show.
func (l *Ledger) Held(entity string) int64 {
	low, _ := l.Bounds(entity)
	return low
}

// Bounds returns between which values the entity's tokens that are out must
// lie, whatever became of the operations that are pending.
func (l *Ledger) Bounds(entity string) (low, high int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[entity]
	if a == nil {
		return 0, 0
	}
	return a.held, a.held + a.pending.AcquireTokens + a.pending.ReleaseTokens
}

// Pending returns what of an entity has no outcome yet.
func (l *Ledger) Pending(entity string) Pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[entity]; a != nil {
		return a.pending
	}
	return Pending{}
}

// MaxAcquired returns the highest value that Σ(acquires returned) − Σ(releases
// invoked) of an entity ever had; at least zero.
func (l *Ledger) MaxAcquired(entity string) Peak {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[entity]; a != nil {
		return a.max
	}
	return Peak{}
}
