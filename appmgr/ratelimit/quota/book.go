package quota

import (
	"math/bits"
	"time"

	"github.com/samya-db/samya/internal/rates"
)

// A book has the leases of share that cover the assignments of a bucket of a proxy. A proxy
// uses one assignment at a time: a token bucket with max tokens at most, full at first, and
// fill tokens more in each period. It begins a full bucket whenever it is told another.
//
// The leases allow the proxy, S being their tokens:
//
//   - of a bucket: levels of S in all, and S more in each period. So the tokens of all
//     buckets that the proxy began add up to S, and fill is S at most.
//   - of a window: S within any time as long as a window. So the tokens of all buckets that
//     the proxy began, and fill, add up to S.
//
// spare has the rest of S: tokens for buckets that are yet to begin. A new lease adds its own
// tokens. To take tokens back, a book has the proxy begin a small bucket with spare tokens and
// a lower fill, and returns the difference once no earlier assignment is in force any more.

// lease is a lease of share.
type lease struct {
	name   string
	tokens int64
	// ends is a time at which the lease has not ended.
	ends time.Duration
}

type book struct {
	kind rates.Kind
	// period is the longest period of the quota.
	period time.Duration
	leases []*lease
	// spare are tokens for further buckets, max and fill the present assignment.
	spare, max, fill int64
	// unsent says that the proxy has not been told of the present assignment.
	unsent bool
	// sent is when the proxy was last told, and until the time until which it may go by any
	// assignment of the book; 0 for never.
	sent, until time.Duration
	// back are tokens to return at a time; 0 for none.
	back   int64
	backAt time.Duration
	// changed is when the assignment changed.
	changed time.Duration
}

// tokens are the tokens of all leases.
func (b *book) tokens() (sum int64) {
	for _, l := range b.leases {
		sum += l.tokens
	}
	return sum
}

// ends is the time at which no lease of the book has ended.
func (b *book) ends() time.Duration {
	at := b.leases[0].ends
	for _, l := range b.leases {
		at = min(at, l.ends)
	}
	return at
}

// add takes up a lease, and has the proxy begin a bucket with its tokens.
func (b *book) add(l *lease, now time.Duration) {
	b.leases = append(b.leases, l)
	n, reserve := l.tokens, int64(0)
	if b.kind == rates.Bucket {
		if n > 1 {
			reserve = max(1, n/8)
		}
		b.max, b.fill = n-reserve, b.fill+n
	} else {
		if n >= 4 {
			reserve = max(1, n/8)
		}
		b.max = (n + 3) / 4
		b.fill += n - b.max - reserve
	}
	b.spare += reserve
	b.unsent, b.changed = true, now
}

// shrink has the proxy begin a smaller bucket, so that only so many tokens are needed from
// then on. It reports whether it does.
func (b *book) shrink(tokens int64, now time.Duration) bool {
	all := b.tokens()
	fill := scale(b.fill, tokens, all)
	if b.spare == 0 || b.back > 0 || b.unsent || tokens >= all || tokens < 1 || fill < 1 {
		return false
	}
	b.max = min(b.spare, max(1, tokens/8))
	b.fill = fill
	b.spare = min(b.spare-b.max, tokens/8)
	b.back, b.backAt = all-tokens, b.until
	b.unsent, b.changed = true, now
	return true
}

// returned takes tokens off the leases that are to be returned, and returns them by lease; a
// lease with no tokens left is gone.
func (b *book) returned() (back []Return) {
	for i := 0; i < len(b.leases) && b.back > 0; {
		l := b.leases[i]
		n := min(b.back, l.tokens)
		b.back -= n
		if l.tokens -= n; l.tokens == 0 {
			b.leases = append(b.leases[:i], b.leases[i+1:]...)
			back = append(back, Return{Lease: l.name})
			continue
		}
		back = append(back, Return{Lease: l.name, Tokens: n})
		i++
	}
	b.backAt = 0
	return back
}

// tokenBucket is the assignment in whole seconds: proxies drop parts of a second. A token
// bucket that never fills is filled with a token in two periods: with none within a
// period, beside its first.
func (b *book) tokenBucket() tokenBucket {
	fill, period := b.fill, b.period
	if fill == 0 {
		fill, period = 1, 2*period
	}
	interval := (period + time.Second - 1).Truncate(time.Second)
	const most = 1<<32 - 1
	return tokenBucket{Max: min(b.max, most), Fill: max(1, min(scale(fill, int64(interval), int64(period)), most)), Interval: interval}
}

// scale is n * by / of, rounded down; all are at least 0, and the result fits.
func scale(n, by, of int64) int64 {
	high, low := bits.Mul64(uint64(n), uint64(by)) //nolint:gosec // not below 0
	if high >= uint64(of) {                        //nolint:gosec // above 0
		return 1<<62 - 1
	}
	q, _ := bits.Div64(high, low, uint64(of)) //nolint:gosec // above 0
	return int64(min(q, 1<<62-1))             //nolint:gosec // bounded
}

// longest is the longest period of a rate quota.
func longest(t *rates.Terms) time.Duration {
	const day = 24 * time.Hour
	units := map[rates.Unit]time.Duration{
		rates.Microsecond: time.Microsecond, rates.Millisecond: time.Millisecond, rates.Second: time.Second,
		rates.Minute: time.Minute, rates.Hour: time.Hour, rates.Day: day, rates.Month: 32 * day,
	}
	period := time.Duration(int64(t.Count) * int64(units[t.Unit]))
	if t.Unit == rates.Day && t.Zone != "" {
		period += day // a clock that is set back, or a zone that changes sides
	}
	return period
}
