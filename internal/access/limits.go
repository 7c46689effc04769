package access

import (
	"sync"
	"time"

	"github.com/samya-db/samya/internal/apierr"
)

// Limits bound the calls that callers may make of a listener. Zero: no bound.
type Limits struct {
	// Rate is how many operations a second each caller may make. Each operation of a
	// batch or a stream counts. Operations not made within a second are lost.
	Rate float64
	// InFlight is how many calls may be under way; streams and watches do not count.
	InFlight int
}

// maxBuckets bounds the callers with buckets.
const maxBuckets = 100_000

// buckets hold, for each caller, the operations it may still make.
type buckets struct {
	rate float64
	now  func() time.Time

	mu  sync.Mutex
	all map[string]*bucket
}

// bucket is how many operations a caller may still make, as of a time.
type bucket struct {
	left float64
	at   time.Time
}

func newBuckets(rate float64, now func() time.Time) *buckets {
	if rate <= 0 {
		return nil
	}
	return &buckets{rate: rate, now: now, all: make(map[string]*bucket)}
}

// take takes n operations of a caller. A caller with an operation left may take more, and
// waits the longer: a batch is let in as a whole. The error says when to try again.
func (b *buckets) take(caller string, n int) error {
	if b == nil || n == 0 {
		return nil
	}
	most := max(1, b.rate)
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.all[caller]
	if k == nil {
		if len(b.all) >= maxBuckets {
			b.forget(now, most)
		}
		k = &bucket{left: most, at: now}
		b.all[caller] = k
	}
	k.left, k.at = min(most, k.left+b.rate*now.Sub(k.at).Seconds()), now
	if k.left < 1 {
		e := apierr.New(apierr.RateLimited, "more than %g operations a second of one caller", b.rate)
		e.RetryAfter = time.Duration((1 - k.left) / b.rate * float64(time.Second))
		return e
	}
	k.left -= float64(n)
	return nil
}

// forget drops all full buckets, and all buckets if none is full: callers that are gone
// must not keep new callers out.
func (b *buckets) forget(now time.Time, most float64) {
	for name, k := range b.all {
		if k.left+b.rate*now.Sub(k.at).Seconds() >= most {
			delete(b.all, name)
		}
	}
	if len(b.all) >= maxBuckets {
		clear(b.all)
	}
}
