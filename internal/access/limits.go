package access

import (
	"sync"
	"time"

	"github.com/samya-db/samya/internal/apierr"
)

// Limits bound what callers may ask of a listener. Zeros stand for none.
type Limits struct {
	// Rate is how many operations a second one caller may ask for; those of a batch
	// or a stream count each. What it did not use within a second is gone.
	Rate float64
	// InFlight is how many calls may be under way; streams and watches do not count.
	InFlight int
}

// maxBuckets bounds the callers that are kept account of.
const maxBuckets = 100_000

// buckets keep account of what callers ask for.
type buckets struct {
	rate float64
	now  func() time.Time

	mu  sync.Mutex
	all map[string]*bucket
}

// bucket is what a caller may still ask for, as of a time.
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

// take takes n operations of a caller. Whoever has one left may take more than that
// and waits the longer: a batch is let in as a whole. The error says when to come
// again.
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

// forget drops the callers that have all they may have, and all if none has: new ones
// must not be kept out by those that are gone.
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
