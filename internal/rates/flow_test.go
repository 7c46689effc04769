package rates_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/internal/testfuzz"
)

// site is a site that grants tokens of a flow from books of its own.
type site struct {
	flow      rates.Flow
	left, out int64
}

func newSite(t *rates.Terms, left int64) *site { return &site{flow: rates.NewFlow(t), left: left} }

// look has the tokens due come back.
func (s *site) look(now uint64) {
	s.flow.Pass(now, s.left+s.out, s.out)
	due := s.flow.Take()
	s.left, s.out = s.left+due, s.out-due
	s.flow.Pass(now, s.left+s.out, s.out)
}

// move moves tokens from left to out, or back if negative.
func (s *site) move(now uint64, tokens int64) {
	s.left, s.out = s.left-tokens, s.out+tokens
	s.flow.Pass(now, s.left+s.out, s.out)
}

// flowTerms are terms of a kind.
func flowTerms(kind rates.Kind, per string) *rates.Terms {
	t, err := rates.Parse(string(kind), per, "", nil)
	if err != nil {
		panic(err)
	}
	return &t
}

// TestBucket: tokens come back evenly, and a full bucket gains nothing.
func TestBucket(t *testing.T) {
	s := newSite(flowTerms(rates.Bucket, "10s"), 100)
	s.look(1)
	s.move(1, 100)
	for _, c := range []struct {
		at   uint64
		left int64
	}{{50, 0}, {101, 1}, {150, 1}, {201, 2}, {5001, 50}, {10_001, 100}, {99_000, 100}} {
		if s.look(c.at); s.left != c.left {
			t.Errorf("at %d: %d left, want %d", c.at, s.left, c.left)
		}
	}
	s.move(99_000, 3)
	if wait, ok := s.flow.Until(2); wait != 201 || !ok {
		t.Errorf("2 tokens come back in %d, %v", wait, ok)
	}
	if _, ok := s.flow.Until(4); ok {
		t.Error("more tokens come back than are out")
	}
}

// TestFullBucket: what a full bucket does not hold is lost.
func TestFullBucket(t *testing.T) {
	s := newSite(flowTerms(rates.Bucket, "10s"), 100)
	s.look(1)
	s.move(1, 1)
	s.look(199) // full since 101
	s.move(199, 1)
	if s.look(298); s.left != 99 {
		t.Errorf("%d left after 99 ms", s.left)
	}
	if s.look(299); s.left != 100 {
		t.Errorf("%d left after 100 ms", s.left)
	}
}

// TestShareCountsFromItsArrival: a share fills the bucket from when it came.
func TestShareCountsFromItsArrival(t *testing.T) {
	flow := rates.NewFlow(flowTerms(rates.Bucket, "10s"))
	flow.Pass(1, 10, 10)
	flow.Pass(5001, 100, 10)
	if flow.Due() != 5 {
		t.Errorf("%d are due after half a period", flow.Due())
	}
	flow.Pass(5301, 20, 10)
	if flow.Due() != 8 {
		t.Errorf("%d are due after 300 ms at a larger share", flow.Due())
	}
}

// TestSliding: a token comes back a period after its grant, or up to a part of it later.
func TestSliding(t *testing.T) {
	s := newSite(flowTerms(rates.Sliding, "64s"), 100)
	s.look(500)
	s.move(500, 60)
	s.look(30_000)
	s.move(30_000, 40)
	for _, c := range []struct {
		at   uint64
		left int64
	}{{64_499, 0}, {64_999, 0}, {65_000, 60}, {94_999, 60}, {95_000, 100}} {
		if s.look(c.at); s.left != c.left {
			t.Errorf("at %d: %d left, want %d", c.at, s.left, c.left)
		}
	}
	s.move(100_000, 10)
	if wait, ok := s.flow.Until(10); wait != 65_000 || !ok {
		t.Errorf("the tokens come back in %d, %v", wait, ok)
	}
}

// TestUnusedBucket: tokens of a lease that were not used come back as far as the bucket has not
// filled since: after half a period none of 5 of 10 have not come back by the clock.
func TestUnusedBucket(t *testing.T) {
	f := rates.NewFlow(flowTerms(rates.Bucket, "1s"))
	f.Pass(1, 10, 5)
	mark := f.Mark()
	f.Pass(1, 10, 10) // others take the rest
	f.Pass(501, 10, 10)
	if due := f.Due(); due != 5 {
		t.Fatalf("%d tokens are due", due)
	}
	if unused := f.Unused(mark, 5); unused != 0 {
		t.Errorf("%d tokens come back twice", unused)
	}
	if unused := f.Unused(mark, 7); unused != 2 {
		t.Errorf("%d tokens of 7 come back, want 2", unused)
	}
}

// TestSlidingIsNeverShort: the period holds also where it is no multiple of its parts.
func TestSlidingIsNeverShort(t *testing.T) {
	for at := range uint64(40) {
		s := newSite(flowTerms(rates.Sliding, "1s"), 10)
		s.look(100 + at)
		s.move(100+at, 10)
		if s.look(1099 + at); s.left != 0 {
			t.Errorf("granted at %d, %d are back after 999 ms", 100+at, s.left)
		}
	}
}

// event is a grant of a site at a time, or a reset that brings tokens back, but for tokens of
// grants with open leases.
type event struct {
	at     uint64
	tokens int64
	by     int
	reset  bool
	open   map[int]bool
}

// TestFlowBound moves tokens between three sites, which grant what they can, and counts:
// no interval has more grants than its bound. Leases that come back unused never count, nor do
// grants that a reset within the interval brings back.
func TestFlowBound(t *testing.T) {
	for _, kind := range []rates.Kind{rates.Bucket, rates.Sliding} {
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { flowBound(t, kind) })
		})
	}
}

func flowBound(t *rapid.T, kind rates.Kind) {
	const limit, period = 40, 1000
	terms := flowTerms(kind, "1s")
	sites := []*site{newSite(terms, 20), newSite(terms, 15), newSite(terms, 5)}
	type lease struct {
		of     *site
		mark   int64
		tokens int64
		grant  int
	}
	var leases []lease
	var granted []event
	underWay := int64(0)
	now := uint64(1)
	for range rapid.IntRange(1, 120).Draw(t, "steps") {
		now += rapid.SampledFrom([]uint64{0, 1, 3, 10, 40, 200, 900, 965, 990, 1100}).Draw(t, "pause")
		by := rapid.IntRange(0, 2).Draw(t, "site")
		s := sites[by]
		what := rapid.IntRange(0, 7).Draw(t, "what")
		if what > 1 || rapid.Bool().Draw(t, "looks") {
			s.look(now)
		}
		switch what {
		case 0: // sends tokens
			n := min(s.left, rapid.Int64Range(0, 20).Draw(t, "sent"))
			s.left -= n
			s.flow.Pass(now, s.left+s.out, s.out)
			underWay += n
		case 1:
			s.left += underWay
			s.flow.Pass(now, s.left+s.out, s.out)
			underWay = 0
		case 2: // starts anew: all its tokens are taken for granted
			s.out += s.left
			s.left, s.flow = 0, rates.NewFlow(terms)
			s.flow.Pass(now, s.out, s.out)
			for i := range leases {
				if leases[i].of == s {
					leases[i].mark = rates.Void
				}
			}
		case 3: // settles a lease
			if len(leases) == 0 {
				continue
			}
			l := leases[0]
			leases = leases[1:]
			l.of.look(now)
			unused := rapid.Int64Range(0, l.tokens).Draw(t, "unused")
			back := l.of.flow.Unused(l.mark, unused)
			l.of.move(now, -back)
			granted[l.grant].tokens -= unused
		case 4: // is reset
			back, open := s.out, make(map[int]bool)
			for _, l := range leases {
				if open[l.grant] = true; l.of == s {
					back -= l.tokens
				}
			}
			back = max(0, back)
			s.flow.Fill()
			s.move(now, -back)
			granted = append(granted, event{at: now, tokens: back, by: by, reset: true, open: open})
		default:
			n := min(s.left, rapid.Int64Range(1, 50).Draw(t, "granted"))
			if n == 0 {
				continue
			}
			s.move(now, n)
			granted = append(granted, event{at: now, tokens: n, by: by})
			if rapid.Bool().Draw(t, "leased") {
				leases = append(leases, lease{s, s.flow.Mark(), n, len(granted) - 1})
			}
		}
		if s.left < 0 || s.out < 0 {
			t.Fatalf("%d left, %d out", s.left, s.out)
		}
	}
	sum := underWay
	for _, s := range sites {
		sum += s.left + s.out
	}
	if sum != limit {
		t.Fatalf("the shares add up to %d", sum)
	}
	for i := range granted {
		in := int64(0)
		for j, g := range granted[i:] {
			if in += g.tokens; g.reset {
				in -= g.tokens + broughtBack(granted[i:], i, j)
				continue
			}
			length := int64(g.at - granted[i].at)
			bound := int64(limit) + limit*length/period
			if kind == rates.Sliding {
				bound = limit * (length/period + 1)
			}
			if in > bound {
				t.Fatalf("%d granted within %d ms from %d on, the bound is %d: %v", in, length, granted[i].at, bound, granted)
			}
		}
	}
}

// broughtBack is the number of tokens of grants in an interval that a reset in it brings back.
// The interval begins with the event first of all.
func broughtBack(in []event, first, reset int) int64 {
	r, sum := in[reset], int64(0)
	for j := range in[:reset] {
		switch g := &in[j]; {
		case g.by != r.by:
		case g.reset:
			sum -= broughtBack(in, first, j)
		case !r.open[first+j]:
			sum += g.tokens
		}
	}
	return max(0, min(sum, r.tokens))
}

// TestFill: a bucket that is reset keeps no part of a token, though a lease is out: it would
// hold more than its size once the lease comes back unused.
func TestFill(t *testing.T) {
	s := newSite(flowTerms(rates.Bucket, "1s"), 10)
	s.look(1)
	s.move(1, 10)
	mark := s.flow.Mark()
	s.look(100)
	s.flow.Fill()
	s.move(100, -9)
	s.move(100, 9)
	s.move(100, -s.flow.Unused(mark, 1))
	if s.left != 1 {
		t.Fatalf("%d left after the end of the lease", s.left)
	}
	s.move(100, 1)
	if s.look(199); s.left != 0 {
		t.Errorf("%d are back after 99 ms", s.left)
	}
	if s.look(200); s.left != 1 {
		t.Errorf("%d are back after 100 ms", s.left)
	}
}

// TestFlowLoses: tokens come back in time: a site that always grants what it has uses its
// share.
func TestFlowLoses(t *testing.T) {
	for _, c := range []struct {
		kind rates.Kind
		per  string
		most int64
	}{{rates.Bucket, "1s", 100 * 101}, {rates.Bucket, "333us", 100 * 1001}, {rates.Sliding, "1s", 100 * 100}} {
		s, granted := newSite(flowTerms(c.kind, c.per), 100), int64(0)
		for now := uint64(1); now <= 100_001; now++ {
			s.look(now)
			granted += s.left
			s.move(now, s.left)
		}
		if granted < c.most*97/100 || c.kind == rates.Bucket && c.per == "1s" && granted < c.most-100 {
			t.Errorf("%+v: %d were granted", c, granted)
		}
	}
}

// FuzzFlow: whatever the shares and times, no more comes back than is out, and nothing
// overflows.
func FuzzFlow(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add(int64(1<<40), int64(1<<40), uint64(1<<62), uint32(1), true)
	f.Add(int64(3), int64(2), uint64(100), uint32(7), false)
	f.Fuzz(func(t *testing.T, share, out int64, later uint64, count uint32, bucket bool) {
		kind, unit := rates.Sliding, rates.Second
		if bucket {
			kind, unit = rates.Bucket, rates.Microsecond
		}
		terms := rates.Terms{Kind: kind, Count: count, Unit: unit}
		if terms.Validate() != nil || out < 0 || share < out || share > 1<<57 {
			return
		}
		flow := rates.NewFlow(&terms)
		flow.Pass(1, share, out)
		flow.Pass(max(1, later), share, out)
		if wait, ok := flow.Until(out - flow.Due()); ok && later < 1<<60 {
			flow.Pass(max(1, later)+wait, share, out)
			if flow.Due() != out {
				t.Fatalf("%d of %d are due after %d ms", flow.Due(), out, wait)
			}
		}
		if due := flow.Take(); due < 0 || due > out {
			t.Fatalf("%d of %d come back", due, out)
		}
	})
}
