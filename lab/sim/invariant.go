package sim

import (
	"fmt"
	"strings"

	"github.com/samya-db/samya/site/core/answer"
)

// Invariant names a condition that must hold. The names are stable: reports and seeded
// bugs go by them.
type Invariant string

const (
	// Conservation: the tokens that all sites hold, have set aside and have out, with
	// decided values not yet applied, are the limit; and so at every single site.
	Conservation Invariant = "conservation"
	// Books: no operation on the books of a site is beyond its bound.
	Books Invariant = "books"
	// OverGrant: acquires returned less releases invoked are within the decided limit and
	// the debt, as the clients see it, of an entity with its subtree. A site that grants in
	// debt has as much left as is owed. A site in a decided instance that makes a debt grants
	// nothing before it applies the instance. No grant takes the tokens out above the limit by
	// more than a site told.
	OverGrant Invariant = "over-grant"
	// Bounds: a site has less than no tokens only where an entity was moved, and grants
	// no more than it has. No request makes a negative balance or lowers it, and no stripe is
	// negative. So no more is out of an entity, at all sites, than the limit and such debts.
	Bounds Invariant = "bounds"
	// Agreement: an instance has a single value, applied only once it is decided; no
	// member aborts a star instance that any has committed.
	Agreement Invariant = "agreement"
	// Integrity: a decided value holds exactly the tokens that its members have set
	// aside. They stay aside until the members have applied the value. A debit stays unchanged
	// until it is credited, then makes way for the next.
	Integrity Invariant = "integrity"
	// Monotonic: promises, ballots, counters, votes, and numbers of asks, debits and credits
	// never go back, restarts included. No ask number is used twice.
	Monotonic Invariant = "monotonic"
	// Durability: nothing leaves a site before the records it rests on are durable, and
	// no acknowledged request is lost: no transfer before its debit, no acknowledgement before
	// its credit, no ask before its number, no answer to a later attempt before its claims.
	// After each transaction the books match the recorded requests and leases.
	Durability Invariant = "durability"
	// AppliedOnce: a site applies a decision once. A credit is for the next transfer of its
	// pair.
	AppliedOnce Invariant = "applied-once"
	// Reallocation: grants add up to the offers and the change of the limit, in
	// whatever order they are computed.
	Reallocation Invariant = "reallocation"
	// ExactlyOnce: a repeated request gets the first answer and moves nothing, with another
	// body a refusal. No change takes effect twice, even after sites forgot the result; no
	// record is forgotten within the retention; an ask is given to once. Over all sites: no
	// acquire is undone after its client took the answer. No release is credited twice, or
	// deferred and credited before each site asked has durably said that it never runs there.
	// In the end a request has run only at the site of its client's answer.
	ExactlyOnce Invariant = "exactly-once"
	// Leases: a lease gives back its tokens, once: to a release no more than it holds, at a
	// commit the rest, all when undone or expired. It expires neither early nor late, also
	// after a restart.
	Leases Invariant = "leases"
	// Answers: an answer fits its request, and is not contradicted later: a denied change
	// is never decided. A refusal names an entity charged, the same in repeats. An acquire of
	// several entities is recorded as sent.
	Answers Invariant = "answers"
	// Reads: a site's view of an entity lies between the durable states when the read was
	// handed over and when it was answered. An exact read called consistent counts every token
	// once; its tokens out lie between the sums of each site's least and most meanwhile. A
	// watch gets durable states, in the order of revisions.
	Reads Invariant = "reads"
	// Refusal: without failures, and after healing, a request is refused only if the tokens,
	// of the entity named as lacking, are nowhere. Under all faults that entity has fewer left
	// than the least needed. An acquire above a known limit of any entity charged is refused
	// at once, and moves nothing; nothing else is refused for a limit, and no acquire waits
	// once a limit is below it. A site is overloaded only once seven eighths of the request
	// table may be taken, to a tenant below its equal share once all may be.
	Refusal Invariant = "refusal"
	// Serving: no acquire waits at a site that keeps the tokens for it, of all entities
	// charged, for longer than the hold of another. Of two that wait for an entity and fit its
	// tokens left, the first goes first; of buckets and sliding windows, whose tokens are saved
	// for one acquire after the other, an acquire of more may go first.
	Serving Invariant = "serving"
	// Catalogue: entities, limits and versions are as the applied instances say.
	Catalogue Invariant = "catalogue"
	// Surplus: no more is set aside as surplus than clients have released without having
	// acquired it, by the answers they had. In the end all of it is set aside.
	Surplus Invariant = "surplus"
	// Reconciled: no more comes back to an entity by reconciliations than clients had that
	// died, as long as an operator counts all others.
	Reconciled Invariant = "reconciled"
	// Leaving: a site that knows of its drain grants nothing. It hands over what it holds
	// only to an heir that knows of the drain. It leaves with nothing held, nothing under way
	// and no request to answer for, and stays out.
	Leaving Invariant = "leaving"
	// Lost: nothing that waits for a lost site counts as a word of it. A slice ends with the
	// lower of offer and grant only if a lost vote is unknown and all members left have voted,
	// and then alike at all members left. No transfer comes from a lost
	// site, and none to it is taken back. A release that may have run there is not counted.
	// In the end exactly the tokens that nobody else holds are written off.
	Lost Invariant = "lost"
	// ModeKept: a site begins instances under the variant that the mode in force there says,
	// and asks others on its own only under the strategy transfer.
	ModeKept Invariant = "mode"
	// Deadline: every request is answered in time, and all due work is done.
	Deadline Invariant = "deadline"
	// Liveness: after healing nothing stays set aside, nothing waits, all sites
	// agree, and further changes are decided.
	Liveness Invariant = "liveness"
	// Bounded: queues, slices and retained decisions stay within their bounds.
	Bounded Invariant = "bounded"
	// Rates: in each window, as each site's calendar draws it, all sites together grant no
	// more than the limit of a rate quota, less what resets have given back. All tokens of a
	// lease of share count as granted in each window of its life, and in the next. Of buckets
	// and sliding windows the same holds in any interval, with the grants of holders of
	// shares. Tokens of shares are out by the books of their sites, and those of windows for
	// two windows after their end. A reset brings back none of them, and no late tokens.
	// Windows never go back, and none begins before the site's calendar has shown it.
	Rates Invariant = "rates"
	// StaleData: a site started on data that is not its latest changes, serves and sends
	// nothing. No site is refused on its latest data. Data that a site vouches for is
	// durably remembered.
	StaleData Invariant = "stale-data"
	// Recovery: after a crash a site finds all data that it was told to be durable, and
	// the first part of the data under way, even if opening is cut off or done twice. A log
	// with a flipped bit is refused, and found whole once the bit is flipped back.
	Recovery Invariant = "recovery"
	// Versions: until the version of the cluster is raised, nothing is sent or stored that
	// only the next version knows.
	Versions Invariant = "versions"
	// Sound: correct sites accept everything that correct sites send and store.
	Sound Invariant = "sound"
	// Determinism: the same seed gives the same events.
	Determinism Invariant = "determinism"
)

// Invariants lists all, in the order of docs/testing.md.
func Invariants() []Invariant {
	return []Invariant{
		Conservation, OverGrant, Books, Bounds, Agreement, Integrity, Monotonic, Durability, AppliedOnce, Reallocation,
		ExactlyOnce, Leases, Answers, Reads, Refusal, Serving, Catalogue, Surplus, Reconciled, Leaving, Lost, ModeKept, Deadline, Liveness, Bounded, Rates, StaleData, Recovery, Versions, Sound,
		Determinism,
	}
}

// Violation is the error of a run in which an invariant does not hold. A panic of the
// code under test is no Violation.
type Violation struct { //nolint:errname // It is a finding, told and counted; only Run hands it over as an error.
	Seed      uint64
	Sites     int
	Invariant Invariant
	// Event counts the events of the run up to the violation. Millis is the simulated
	// time of the violation, in milliseconds.
	Event  uint64
	Millis int64
	// Err describes the violation.
	Err error
	// Trace tells the events before the violation, each in a line.
	Trace string
}

// Error tells all but the trace.
func (v *Violation) Error() string {
	return fmt.Sprintf("seed %d, %d sites: %s does not hold at %d ms, event %d: %v",
		v.Seed, v.Sites, v.Invariant, v.Millis, v.Event, v.Err)
}

// Unwrap returns Err.
func (v *Violation) Unwrap() error { return v.Err }

// fail keeps the first violation.
func (s *sim) fail(i Invariant, format string, args ...any) {
	if s.violation == nil {
		s.violation = &Violation{
			Seed: s.o.Seed, Sites: len(s.nodes), Invariant: i, Event: s.events, Millis: s.now / millisecond,
			Err: fmt.Errorf(format, args...),
		}
	}
}

// DefaultHistory is how many of the last events a violation tells.
const DefaultHistory = 120

// history is how many of the last events this run keeps.
func (s *sim) history() int {
	if s.o.History > 0 {
		return s.o.History
	}
	return DefaultHistory
}

type traced struct {
	at     micros
	format string
	args   []any
}

// note keeps an event for the case that the run fails. Callers ask for s.tracing first:
// making the arguments costs more than all else.
func (s *sim) note(format string, args ...any) {
	if most := s.history(); len(s.trace) >= 2*most {
		s.trace = append(s.trace[:0], s.trace[most:]...)
	}
	s.trace = append(s.trace, traced{s.now, format, args})
}

func (s *sim) tail() string {
	var b strings.Builder
	for _, t := range s.trace[max(0, len(s.trace)-s.history()):] {
		fmt.Fprintf(&b, "%10.3f  ", float64(t.at)/float64(millisecond))
		fmt.Fprintf(&b, t.format, t.args...)
		b.WriteByte('\n')
	}
	return b.String()
}

// mix adds to the hash of the run.
func (s *sim) mix(v uint64) {
	s.hash = (s.hash ^ v) * 0x9e3779b97f4a7c15
	s.hash ^= s.hash >> 29
}

// mixAnswer adds an answer to the hash of the run.
func (s *sim) mixAnswer(n *node, a *answer.Answer) {
	s.mix(uint64(n.i)<<32 | uint64(a.Code))
	s.mix(uint64(a.Tokens)<<32 ^ uint64(a.Left))
}
