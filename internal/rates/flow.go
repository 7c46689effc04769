package rates

import (
	"math"
	"math/bits"
)

// Flow says when the tokens of a bucket or a sliding window come back, one by one, by a
// clock that never goes back. It knows the books of its caller by Pass alone.
type Flow interface {
	// Pass notes the time, in milliseconds from 1 on, and the present books: share is the
	// number of tokens that the site may grant or has out, out the number that it has out.
	// The share given before counts for the time that has passed. The caller calls Pass
	// after each change of the books, before further time passes.
	Pass(now uint64, share, out int64)
	// Due is the number of tokens that have come back and were not taken.
	Due() int64
	// Take takes the tokens due. The caller moves them in its books, and calls Pass.
	Take() int64
	// Until is the time in milliseconds until so many tokens more than the tokens due will
	// have come back; false if they are not out, or do not come back.
	Until(tokens int64) (uint64, bool)
	// Mark stands for tokens that are handed out now, after a Pass with them.
	Mark() int64
	// Unused is the number of tokens, of some that were handed out at a mark and not used,
	// that have not come back by the clock: they may be granted again. The caller moves them
	// in its books, and calls Pass.
	Unused(mark, tokens int64) int64
	// Fill says that all tokens are left, but for tokens that come back singly: a full bucket
	// holds no part of a token. The caller moves the tokens in its books, and calls Pass.
	Fill()
}

// Void is the mark of tokens from an earlier life or from another site: none are unused.
const Void = math.MinInt64 / 2

// NewFlow returns the flow of valid terms; nil if all tokens come back at the end of a
// window, or for an entity that is no rate quota.
func NewFlow(t *Terms) Flow {
	switch t.Kind {
	case Bucket:
		return &refill{period: uint64(t.micros())} //nolint:gosec // a valid period is above 0
	case Sliding:
		return &slide{part: (uint64(t.micros())/1000 + parts - 1) / parts} //nolint:gosec // as above
	}
	return nil
}

// refill fills a bucket: a share of n tokens comes back evenly within a period, unless it is
// left. In any time t all sites together grant at most the limit and the part of it that
// comes back within t, if their shares add up to the limit.
type refill struct {
	period uint64 // in microseconds
	at     uint64
	share  int64
	// due are whole tokens due, part is the rest in tokens times microseconds, below period.
	due  int64
	part uint64
	out  int64
	// total counts all tokens that ever came due.
	total int64
}

// Pass implements Flow.
func (f *refill) Pass(now uint64, share, out int64) {
	if now > f.at {
		if f.at != 0 {
			f.accrue(now - f.at)
		}
		f.at = now
	}
	f.share, f.out = max(0, share), max(0, out)
	if f.due >= f.out {
		// The bucket is full.
		f.due, f.part = f.out, 0
	}
}

// accrue adds the tokens that came back within so many milliseconds.
func (f *refill) accrue(elapsed uint64) {
	came := f.out - f.due
	if elapsed < f.period/1000+1 {
		high, low := bits.Mul64(uint64(f.share), elapsed*1000) //nolint:gosec // a share is at least 0
		low, carry := bits.Add64(low, f.part, 0)
		if high += carry; high < f.period {
			var whole uint64
			whole, f.part = bits.Div64(high, low, f.period)
			came = min(came, int64(min(whole, math.MaxInt64))) //nolint:gosec // bounded
		}
	}
	f.due += came
	f.total += came
}

// Due implements Flow.
func (f *refill) Due() int64 { return f.due }

// Take implements Flow.
func (f *refill) Take() int64 {
	due := f.due
	f.due, f.out = 0, f.out-due
	return due
}

// Until implements Flow.
func (f *refill) Until(tokens int64) (uint64, bool) {
	switch {
	case tokens > f.out-f.due || f.share == 0:
		return 0, false
	case tokens <= 0:
		return 0, true
	}
	high, low := bits.Mul64(uint64(tokens), f.period)
	low, borrow := bits.Sub64(low, f.part, 0)
	high -= borrow
	share := uint64(f.share) //nolint:gosec // above 0
	if high >= share {
		return 0, false
	}
	micros, rest := bits.Div64(high, low, share)
	if rest > 0 {
		micros++
	}
	return micros/1000 + 1, true
}

// Mark implements Flow.
func (f *refill) Mark() int64 { return f.total }

// Unused implements Flow. The first tokens that came back since the mark stand for these: so
// the bucket was never full while they were out, and holds no more than if they had never
// been handed out.
func (f *refill) Unused(mark, tokens int64) int64 {
	return max(0, min(tokens-(f.total-mark), f.out-f.due))
}

// Fill implements Flow.
func (f *refill) Fill() { f.part = 0 }

// parts is the number of parts of a sliding window. Tokens granted within a part come back
// together, a period after its end.
const parts = 64

// slide counts tokens granted within the last period, in parts of it. A token comes back a
// period after it was granted, or up to a part of the period later.
type slide struct {
	part uint64 // length of a part, in milliseconds
	// now is the number of the present part, at the time of the last Pass.
	now, at uint64
	// granted are the tokens out by the parts in which they were granted, oldest first.
	granted []grants
	sum     int64
}

type grants struct {
	part   uint64
	tokens int64
}

// Pass implements Flow. Tokens out that were not out before count as granted now, wherever
// they came from. If tokens out have gone, the oldest have.
func (f *slide) Pass(now uint64, _, out int64) {
	f.at = max(f.at, now)
	f.now = f.at / f.part
	out = max(0, out)
	for f.sum > out {
		gone := min(f.granted[0].tokens, f.sum-out)
		f.remove(0, gone)
	}
	if more := out - f.sum; more > 0 {
		if n := len(f.granted); n == 0 || f.granted[n-1].part != f.now {
			f.granted = append(f.granted, grants{part: f.now})
		}
		f.granted[len(f.granted)-1].tokens += more
		f.sum = out
	}
}

// remove removes tokens of a part.
func (f *slide) remove(i int, tokens int64) {
	f.sum -= tokens
	if f.granted[i].tokens -= tokens; f.granted[i].tokens == 0 {
		f.granted = append(f.granted[:i], f.granted[i+1:]...)
	}
}

// Due implements Flow.
func (f *slide) Due() int64 {
	due := int64(0)
	for i := range f.granted {
		if f.granted[i].part+parts >= f.now {
			break
		}
		due += f.granted[i].tokens
	}
	return due
}

// Take implements Flow.
func (f *slide) Take() int64 {
	due := f.Due()
	for left := due; left > 0; {
		tokens := f.granted[0].tokens
		f.remove(0, tokens)
		left -= tokens
	}
	return due
}

// Until implements Flow.
func (f *slide) Until(tokens int64) (uint64, bool) {
	if tokens <= 0 {
		return 0, true
	}
	tokens += f.Due()
	for i := range f.granted {
		if tokens -= f.granted[i].tokens; tokens <= 0 {
			return (f.granted[i].part+parts+1)*f.part - f.at, true
		}
	}
	return 0, false
}

// Mark implements Flow.
func (f *slide) Mark() int64 { return int64(f.now) } //nolint:gosec // a time in milliseconds

// Unused implements Flow.
func (f *slide) Unused(mark, tokens int64) int64 {
	for i := range f.granted {
		if int64(f.granted[i].part) == mark { //nolint:gosec // as above
			unused := min(tokens, f.granted[i].tokens)
			f.remove(i, unused)
			return unused
		}
	}
	return 0
}

// Fill implements Flow: tokens come back whole.
func (f *slide) Fill() {}
