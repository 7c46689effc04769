package failuretest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/site/core/attempt"
)

// retriers are clients who speak to app managers alone. They repeat every request at
// another app manager until it has a recorded answer.
type retriers struct {
	t      *testing.T
	seed   uint64
	limit  int64
	prefix string
	doors  []*door
	ledger *ledger.Ledger
	// ttl bounds the leases' times to live.
	ttlMin, ttlMax time.Duration

	mu sync.Mutex
	// open are the requests without an answer, done the answered requests.
	open map[attempt.Key]*retried
	done []*retried
	// failed is closed once a request goes without an answer for good.
	failed     chan struct{}
	failedOnce sync.Once
	// answered holds a site and a request if an answer of the site to the request
	// arrived.
	answered map[siteRequest]bool
	retryCounts
}

// siteRequest is a request at a site.
type siteRequest struct {
	site string
	key  attempt.Key
}

// retryCounts counts the outcomes of the clients' requests.
type retryCounts struct {
	granted, partly, released, parked, refused            int
	leased, renewed, committed, returned, expired, missed int
	repeated, attempts, most                              int
}

// owner is a client with its holdings, as the client knows them.
type owner struct {
	w        *retriers
	rng      *rand.Rand
	name     string
	overHTTP bool
	next     int
	held     int64
	leases   []heldLease
}

// heldLease is a lease that may not have ended.
type heldLease struct {
	name   string
	tokens int64
	// ttl is the lease's time to live; the lease has not expired before until.
	ttl   time.Duration
	until time.Time
	// left marks a lease that the client leaves to expire.
	left bool
}

func keyOfRequest(id string) attempt.Key {
	sum := sha256.Sum256([]byte(id))
	return attempt.Key(sum[:16])
}

func newRetriers(t *testing.T, seed uint64, limit int64, doors []*door) *retriers {
	t.Helper()
	return &retriers{
		t: t, seed: seed, limit: limit, prefix: "retry", doors: doors, ledger: ledger.New(nil),
		open: make(map[attempt.Key]*retried), answered: make(map[siteRequest]bool), failed: make(chan struct{}),
	}
}

// unanswered are the requests that have no answer at this moment.
func (w *retriers) unanswered() map[attempt.Key]*retried {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.open)
}

// hasAnswered reports whether an answer of a site has come for a request.
func (w *retriers) hasAnswered(site string, key attempt.Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answered[siteRequest{site, key}]
}

// settleTime bounds how long a request may go without an answer.
const settleTime = 2 * patience

// do makes a request until it has a recorded answer, and reports whether it has.
func (o *owner) do(r *retried) bool {
	w := o.w
	o.next++
	r.id = fmt.Sprintf("%s-%s-%d", w.prefix, o.name, o.next)
	r.began, r.attempt = time.Now(), 1
	r.notAfter = r.began.Add(4 * time.Minute).Truncate(time.Millisecond)
	key := keyOfRequest(r.id)
	w.mu.Lock()
	w.open[key] = r
	w.mu.Unlock()
	at := o.rng.IntN(len(w.doors))
	var last reply
	for time.Since(r.began) < settleTime && w.t.Context().Err() == nil && !w.hasFailed() {
		ctx, cancel := context.WithTimeout(w.t.Context(), r.wait+between(o.rng, 300*time.Millisecond, 3*time.Second))
		last = w.doors[at].send(ctx, r, o.overHTTP)
		cancel()
		if w.note(r, key, last) {
			return true
		}
		if hopeless(last.reason()) {
			break
		}
		r.again(last)
		at = (at + 1 + o.rng.IntN(len(w.doors)-1)) % len(w.doors)
		if wan.Wait(w.t.Context(), between(o.rng, 10*time.Millisecond, 150*time.Millisecond)) != nil {
			break
		}
	}
	w.failedOnce.Do(func() {
		close(w.failed)
		w.t.Errorf("%s (verb %d) has no answer after %d attempts, at last %v", r.id, r.verb, r.attempt, last.err)
	})
	return false
}

func (w *retriers) hasFailed() bool {
	select {
	case <-w.failed:
		return true
	default:
		return false
	}
}

// hopeless reports whether no repeat of a request can have an answer.
func hopeless(r apierr.Reason) bool {
	switch r {
	case apierr.RequestIDReused, apierr.InvalidField, apierr.RequestExpired, apierr.MalformedJSON,
		apierr.RouteNotFound, apierr.EntityNotFound, apierr.OutOfRange:
		return true
	}
	return false
}

// note keeps the reply to an attempt, and reports whether it settles the request.
func (w *retriers) note(r *retried, key attempt.Key, o reply) bool {
	site := o.site
	if o.err != nil && o.err.Reason == apierr.OutOfTokens {
		site = o.err.Site
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if site != "" {
		w.answered[siteRequest{site, key}] = true
	}
	w.attempts++
	if !r.settles(o) {
		return false
	}
	o.site = site
	r.answer, r.by = o, time.Now()
	delete(w.open, key)
	w.done = append(w.done, r)
	if r.attempt > 1 {
		w.repeated++
	}
	w.most = max(w.most, int(r.attempt))
	return true
}

// count increments a counter.
func (w *retriers) count(what *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*what++
}

// run makes requests until ctx ends, then brings the leases that would live long
// to their ends.
func (o *owner) run(ctx context.Context) {
	for wan.Wait(ctx, between(o.rng, 20*time.Millisecond, 120*time.Millisecond)) == nil && !o.w.hasFailed() {
		o.step()
	}
	soon := time.Now().Add(8 * time.Second)
	for i := len(o.leases) - 1; i >= 0; i-- {
		if l := &o.leases[i]; !l.left && l.until.After(soon) {
			o.endLease(i)
		}
	}
}

// step makes a request.
func (o *owner) step() {
	o.expire()
	share := o.w.limit / int64(clientsOfRetries)
	switch n := o.rng.IntN(10); {
	case len(o.leases) > 0 && n < 3:
		if i := o.rng.IntN(len(o.leases)); !o.leases[i].left {
			o.endLease(i)
		} else if n == 0 {
			o.renew(&o.leases[i])
		}
	case o.held > 0 && (n < 6 || o.held > 2*share):
		o.giveBack()
	case n < 8:
		o.take()
	case len(o.leases) < 4:
		o.lease()
	}
}

// take acquires tokens for good.
func (o *owner) take() {
	r := &retried{verb: acquireVerb, tokens: 1 + o.rng.Int64N(8)}
	switch o.rng.IntN(4) {
	case 0:
		r.wait = between(o.rng, 100*time.Millisecond, 2*time.Second)
	case 1:
		r.least = 1
	}
	if !o.do(r) {
		return
	}
	if r.answer.err != nil {
		o.w.count(&o.w.refused)
		return
	}
	if r.answer.tokens < r.tokens {
		o.w.count(&o.w.partly)
	}
	if n := r.answer.tokens; n < max(1, r.least) || n > r.tokens || r.least == 0 && n != r.tokens {
		o.w.t.Errorf("%s asks for %d tokens, at least %d, and gets %d", r.id, r.tokens, r.least, n)
	}
	o.w.count(&o.w.granted)
	o.gain(r.answer.tokens)
	o.held += r.answer.tokens
}

// gain books tokens that are out from now on, as far as is known.
func (o *owner) gain(tokens int64) {
	if tokens > 0 {
		o.w.ledger.Invoke(entity, ledger.Acquire, tokens).Return(ledger.Executed)
	}
}

// lose books tokens that may not be out any more.
func (o *owner) lose(tokens int64) {
	if tokens > 0 {
		o.w.ledger.Invoke(entity, ledger.Release, tokens).Return(ledger.Executed)
	}
}

// giveBack releases some of the tokens that the client holds for good.
func (o *owner) giveBack() {
	r := &retried{verb: releaseVerb, tokens: 1 + o.rng.Int64N(o.held)}
	o.held -= r.tokens
	o.lose(r.tokens)
	if !o.do(r) {
		return
	}
	o.w.count(&o.w.released)
	if r.answer.parked {
		o.w.count(&o.w.parked)
	}
}

// lease acquires a lease.
func (o *owner) lease() {
	left, most := o.rng.IntN(3) == 0, o.w.ttlMax
	if left {
		most = 2 * o.w.ttlMin
	}
	r := &retried{verb: acquireVerb, tokens: 1 + o.rng.Int64N(8), ttl: between(o.rng, o.w.ttlMin, most).Truncate(time.Millisecond)}
	if !o.do(r) {
		return
	}
	if r.answer.err != nil {
		o.w.count(&o.w.refused)
		return
	}
	if r.answer.lease == "" {
		o.w.t.Errorf("%s asks for a lease and gets %d tokens without one", r.id, r.answer.tokens)
	}
	o.w.count(&o.w.leased)
	// No attempt can have granted the lease before the first attempt began.
	l := heldLease{name: r.answer.lease, tokens: r.answer.tokens, ttl: r.ttl, until: r.began.Add(r.ttl), left: left}
	o.gain(l.tokens)
	o.leases = append(o.leases, l)
	o.expire()
}

// renew renews a lease, and leaves it at that if there is no answer.
func (o *owner) renew(l *heldLease) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(o.w.t.Context(), time.Second)
	defer cancel()
	if o.w.doors[o.rng.IntN(len(o.w.doors))].renew(ctx, l.name, o.overHTTP) == nil {
		o.w.count(&o.w.renewed)
		l.until = began.Add(l.ttl)
	}
}

// expire forgets the leases that may have expired: the site gives their tokens back.
func (o *owner) expire() {
	live := o.leases[:0]
	for _, l := range o.leases {
		if time.Now().Before(l.until) {
			live = append(live, l)
			continue
		}
		o.lose(l.tokens)
		o.w.count(&o.w.expired)
	}
	o.leases = live
}

// endLease commits a part of a lease, or gives back all or some of it.
func (o *owner) endLease(i int) {
	l := o.leases[i]
	o.leases = append(o.leases[:i], o.leases[i+1:]...)
	o.lose(l.tokens)
	switch n := o.rng.IntN(3); {
	case n > 0:
		r := &retried{verb: commitVerb, lease: l.name, tokens: 1 + o.rng.Int64N(l.tokens)}
		if !o.do(r) {
			return
		}
		if r.answer.err != nil {
			o.w.count(&o.w.missed)
			return
		}
		if r.answer.tokens != r.tokens {
			o.w.t.Errorf("%s keeps %d tokens of a lease and gets %d", r.id, r.tokens, r.answer.tokens)
		}
		o.w.count(&o.w.committed)
		o.gain(r.answer.tokens)
		o.held += r.answer.tokens
	default:
		// More than the lease holds: only its own tokens come back.
		r := &retried{verb: releaseVerb, lease: l.name, tokens: l.tokens + o.rng.Int64N(3)}
		if o.do(r) {
			o.w.count(&o.w.returned)
			if r.answer.parked {
				o.w.count(&o.w.parked)
			}
		}
	}
}
