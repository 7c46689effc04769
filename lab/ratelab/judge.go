package ratelab

import (
	"math"
	"slices"
	"time"
)

// Span is the time between the request of a grant and its answer, in nanoseconds. The grant
// was made within.
type Span struct{ Sent, Answered int64 }

// None is the excess without grants.
const None = math.MinInt64

// Excess is by how many tokens more than the bound were granted in the worst interval, of a
// quota of limit tokens a period; negative: the tokens that the bound had left there. A grant
// counts only in intervals that hold its whole span, so an excess is proven.
//
// The bound of a bucket is limit + limit * W / period in any interval W, from docs/rates.md.
func Excess(grants []Span, limit int64, period time.Duration) int64 {
	p := int64(period)
	most := worst(grants, p, limit, limit*p)
	if most == None {
		return None
	}
	// Whole tokens, rounded up: an excess of a part of a token is one token.
	return ceil(most, p)
}

// WindowExcess is Excess for windows: the limit in each window, and in several windows the
// limit of each. Spans are by the clock that draws the windows, from the epoch on.
func WindowExcess(grants []Span, limit int64, period time.Duration) int64 {
	p := int64(period)
	numbered := make([]Span, len(grants))
	for i, g := range grants {
		numbered[i] = Span{g.Sent / p, g.Answered / p}
	}
	return worst(numbered, 1, limit, limit)
}

func ceil(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// worst is the most that n * gain exceeds rate * (y - x) + burst in any interval from x to
// y, where n is the number of the spans within the interval. Only intervals from some x at
// which a span begins to some y at which a span ends matter.
func worst(spans []Span, gain, rate, burst int64) int64 {
	byEnd := slices.Clone(spans)
	slices.SortFunc(byEnd, func(a, b Span) int { return int(min(1, max(-1, a.Answered-b.Answered))) })
	starts := make([]int64, len(spans))
	for i, s := range spans {
		starts[i] = s.Sent
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	// over is, for each x, the gain of the spans from x on that have ended, less the
	// allowance up to x.
	over := newRising(starts, rate)
	most := int64(None)
	for _, s := range byEnd {
		at, _ := slices.BinarySearch(starts, s.Sent)
		over.raise(at, gain)
		// Intervals do not begin after y.
		last, _ := slices.BinarySearch(starts, s.Answered+1)
		most = max(most, over.highest(last-1)-rate*s.Answered-burst)
	}
	return most
}

// rising is numbers that are raised from the first on up to some place: a tree of
// maxima.
type rising struct {
	size int
	// most of a node is the maximum below it, without the raises of the nodes above;
	// raised is the raise of all below it.
	most, raised []int64
}

// newRising begins with rate * x for each x.
func newRising(xs []int64, rate int64) *rising {
	size := 1
	for size < len(xs) {
		size *= 2
	}
	r := &rising{size: size, most: make([]int64, 2*size), raised: make([]int64, 2*size)}
	for i := range size {
		r.most[size+i] = None / 4
		if i < len(xs) {
			r.most[size+i] = rate * xs[i]
		}
	}
	for i := size - 1; i > 0; i-- {
		r.most[i] = max(r.most[2*i], r.most[2*i+1])
	}
	return r
}

// raise raises the numbers at 0 to last.
func (r *rising) raise(last int, by int64) {
	node, low, high := 1, 0, r.size-1
	var path []int
	for {
		if last >= high {
			r.most[node] += by
			r.raised[node] += by
			break
		}
		path = append(path, node)
		middle := (low + high) / 2
		if last <= middle {
			node, high = 2*node, middle
			continue
		}
		r.most[2*node] += by
		r.raised[2*node] += by
		node, low = 2*node+1, middle+1
	}
	for _, n := range slices.Backward(path) {
		r.most[n] = max(r.most[2*n], r.most[2*n+1]) + r.raised[n]
	}
}

// highest is the maximum of the numbers at 0 to last.
func (r *rising) highest(last int) int64 {
	node, low, high, above := 1, 0, r.size-1, int64(0)
	most := int64(None)
	for last < high {
		above += r.raised[node]
		middle := (low + high) / 2
		if last <= middle {
			node, high = 2*node, middle
			continue
		}
		most = max(most, r.most[2*node]+above)
		node, low = 2*node+1, middle+1
	}
	return max(most, r.most[node]+above)
}
