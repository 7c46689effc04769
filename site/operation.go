package site

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/engine"
)

// operation is an acquire or a release of a batch or a stream, from its request to its
// answer. The engine takes many at once, and no operation has a goroutine.
type operation struct {
	engine.Call
	asked
	// acquire or release is the call's input, as isRelease says.
	isRelease bool
	acquire   input.Acquire
	release   input.Release
	// to is told of the answer, or err.
	to     answeree
	answer answer.Answer
	err    error
	// traced is nil unless the operation came on a stream and its trace is recorded.
	*traced

	// Entry is set in a stream alone, but for Kept.
	mux.Entry
}

// answeree is told by the engine of every operation that has an answer; see
// engine.Receiver.
type answeree interface {
	told(o *operation) engine.Flusher
}

// Receive implements engine.Receiver.
func (o *operation) Receive(_ *engine.Call, a answer.Answer, err error) engine.Flusher {
	o.answer, o.err = a, err
	if errors.Is(err, engine.ErrGivenUp) {
		o.Keep()
	}
	return o.to.told(o)
}

// read checks the operation of r and makes it ready to be started.
func (s *Site) read(o *operation, r *samyav1.Operation, left time.Duration) error {
	o.To = o
	var err error
	switch r := r.GetOperation().(type) {
	case *samyav1.Operation_Acquire:
		o.isRelease = false
		o.asked, err = s.readAcquire(&o.acquire, r.Acquire, left)
		o.acquire.Call, o.Input = &o.Call, &o.acquire
	case *samyav1.Operation_Release:
		o.isRelease = true
		o.asked, err = s.readRelease(&o.release, r.Release)
		o.release.Call, o.Input = &o.Call, &o.release
	default:
		err = apierr.Invalid("operation", "missing: an acquire or a release")
	}
	return err
}

// readAcquire checks the fields of an acquire, gives it an id if it has none, and fills
// in the core's input. The caller waits for at most left.
func (s *Site) readAcquire(in *input.Acquire, r *samyav1.AcquireRequest, left time.Duration) (asked, error) {
	tries, triesErr := s.tries(r)
	q, err := s.admit(r, s.boundary().Acquire(r), triesErr)
	if err != nil {
		return q, err
	}
	wait, terms := checks.WaitOf(r.GetWait(), defaultWait), leaseTerms(r.GetLease(), q.requestID)
	*in = input.Acquire{
		Entity: q.entity, Tokens: core.Tokens(q.tokens), Request: keyOf(q.requestID),
		Wait: ticks(within(left, wait)), Least: core.Tokens(r.GetMinTokens()), DryRun: r.GetDryRun(), Once: r.GetOnce(), Lease: terms, Tries: tries,
	}
	return q, nil
}

// readRelease does the same for a release.
func (s *Site) readRelease(in *input.Release, r *samyav1.ReleaseRequest) (asked, error) {
	tries, triesErr := s.tries(r)
	checked := s.boundary().Release(r)
	var lease *input.LeaseRef
	var leaseErr error
	if checked == nil {
		lease, leaseErr = s.leaseRef(r.GetLease())
	}
	q, err := s.admit(r, checked, triesErr, leaseErr)
	if err != nil {
		return q, err
	}
	*in = input.Release{
		Entity: q.entity, Tokens: core.Tokens(q.tokens), Request: keyOf(q.requestID), Lease: lease, Tries: tries,
	}
	return q, nil
}

// acquired fills in the response to a successful acquire.
func (s *Site) acquired(resp *samyav1.AcquireResponse, in *input.Acquire, a *answer.Answer, q *asked) {
	resp.Tokens, resp.RequestId, resp.Site, resp.Left = int64(a.Tokens), q.requestID, s.cfg.Name, int64(a.Left)
	if in.Lease != nil && !in.DryRun {
		// If the lease has ended, a repeat gets the lease's name, and no tokens left.
		resp.Lease = s.lease(&answer.Lease{
			ID: q.requestID, Entity: q.entity, Tokens: a.Lease().Tokens, Remaining: a.Lease().Remaining, Holder: in.Lease.Holder,
			Share: in.Lease.Share,
		})
	}
}

// released fills in the response to a successful release.
func (s *Site) released(resp *samyav1.ReleaseResponse, a *answer.Answer, q *asked) {
	resp.Tokens, resp.RequestId, resp.Site, resp.Left = int64(a.Tokens), q.requestID, s.cfg.Name, int64(a.Left)
	resp.Parked = a.Parked
}

// results makes results of operations. The responses of successful operations lie in slabs.
type results struct {
	acquires slabs[acquireResult]
	releases slabs[releaseResult]
}

// again has the memory of all results be used again.
func (m *results) again() {
	m.acquires.again()
	m.releases.again()
}

// slabs gives out memory. The zero slabs have none.
type slabs[T any] struct {
	all [][]T
	// used counts the elements given out.
	used int
}

const (
	// perSlab is the number of elements in a slab.
	perSlab = 64
	// keptSlabs bounds the slabs that are used again.
	keptSlabs = 8
)

// next gives out an element, which may be of an earlier use.
func (s *slabs[T]) next() *T {
	slab, at := s.used/perSlab, s.used%perSlab
	if slab == len(s.all) {
		s.all = append(s.all, make([]T, perSlab))
	}
	s.used++
	return &s.all[slab][at]
}

// again takes back all elements.
func (s *slabs[T]) again() {
	if s.used = 0; len(s.all) > keptSlabs {
		s.all = s.all[:keptSlabs:keptSlabs]
	}
}

type acquireResult struct {
	is       samyav1.Result_Acquire
	response samyav1.AcquireResponse
}

type releaseResult struct {
	is       samyav1.Result_Release
	response samyav1.ReleaseResponse
}

// of fills in the result of an operation, and returns its error, or nil.
func (m *results) of(s *Site, result *samyav1.Result, o *operation) error {
	err := o.err
	switch {
	case err == nil:
		err = s.failure(o.answer, o.asked)
	case errors.Is(err, engine.ErrStopped), errors.Is(err, engine.ErrGivenUp):
		// Told by the engine, with the operation under way.
		err = s.broken(err, o.asked)
	}
	switch {
	case err != nil:
		result.Result = &samyav1.Result_Failure{Failure: apierr.From(err).Failure()}
	case o.isRelease:
		r := m.releases.next()
		s.released(&r.response, &o.answer, &o.asked)
		r.is.Release = &r.response
		result.Result = &r.is
	default:
		r := m.acquires.next()
		r.response.Lease = nil
		s.acquired(&r.response, &o.acquire, &o.answer, &o.asked)
		r.is.Acquire = &r.response
		result.Result = &r.is
	}
	return err
}

// movement is the common part of acquires and releases.
type movement interface {
	GetEntity() string
	GetTokens() int64
	GetRequestId() string
	GetSite() string
}

// admit refuses a request with errors in its fields before anything is begun, and gives
// the request an id if it has none.
func (s *Site) admit(r movement, faults ...error) (asked, error) {
	q := asked{entity: r.GetEntity(), requestID: r.GetRequestId(), tokens: r.GetTokens()}
	if q.requestID == "" {
		q.requestID = ulid.Make().String()
	}
	if err := errors.Join(errors.Join(faults...), s.addressed(r.GetSite())); err != nil {
		return q, apierr.FromName(err)
	}
	return q, nil
}

// boundary is the check of requests from app managers and clients.
func (s *Site) boundary() checks.Boundary {
	return checks.Boundary{MaxSites: s.maxSites(), MaxRelays: attempt.MaxRelays}
}

// maxSites is how many sites a request may name.
func (s *Site) maxSites() int {
	if !s.seated() {
		return avantan.MaxMembers
	}
	return len(s.members())
}

// addressed refuses a request for another site; empty stands for any site.
func (s *Site) addressed(at string) error {
	if at == "" || at == s.cfg.Name {
		return nil
	}
	return &name.Error{Field: "site", Problem: "this is site " + s.cfg.Name}
}

// expired refuses a request that nobody waits for any more, before it is begun.
func expired(ctx context.Context) error {
	if ctx.Err() != nil {
		return apierr.Wrap(apierr.DeadlineExceeded, context.Cause(ctx))
	}
	return nil
}

// forEver is the time left for a caller without a deadline.
const forEver = time.Duration(math.MaxInt64)

// timeLeft returns how long a caller waits.
func timeLeft(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return forEver
	}
	return time.Until(deadline)
}

// within shortens a wait so that the answer reaches a caller who waits for left.
func within(left, wait time.Duration) time.Duration {
	return max(0, min(wait, left-min(left/10, 50*time.Millisecond)))
}

func ticks(d time.Duration) core.Tick { return core.Tick(d.Milliseconds()) }

// keyOf returns the remembered part of a request id: enough of a collision-resistant
// hash that no two ids meet.
func keyOf(requestID string) attempt.Key { return attempt.KeyOf(requestID) }
