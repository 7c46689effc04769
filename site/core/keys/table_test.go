package keys

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// grant is a number of tokens granted at a time.
type grant struct{ at, tokens int64 }

// TestBucketBound: whatever sites grant of a key, and whatever shares move between them, all
// together grant no more in any interval than the limit and its part of the interval.
func TestBucketBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := rapid.SampledFrom([]int64{1, 7, 1000, 1e9, 60e9, 31_622_400e9}).Draw(t, "period")
		shares := rapid.SliceOfN(rapid.Int64Range(0, 20), 1, 3).Draw(t, "shares")
		now, limit, under := int64(1), int64(0), int64(0)
		sites := make([]*Table, len(shares))
		for i, share := range shares {
			sites[i] = NewBucket(period, now, share, true)
			limit += share
		}
		granted := map[string][]grant{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.Int64Range(0, period/2+1).Draw(t, "elapsed")
			i := rapid.IntRange(0, len(sites)-1).Draw(t, "site")
			switch s := sites[i]; rapid.IntRange(0, 9).Draw(t, "step") {
			case 0: // tokens leave the site
				n := rapid.Int64Range(0, shares[i]).Draw(t, "leave")
				shares[i], under = shares[i]-n, under+n
				s.Share(now, shares[i])
			case 1: // tokens come to the site
				n := rapid.Int64Range(0, under).Draw(t, "come")
				shares[i], under = shares[i]+n, under-n
				s.Share(now, shares[i])
			case 2:
				s.Shed(now)
			case 3:
				s.Age(now)
			case 4: // the site starts anew
				sites[i] = NewBucket(period, now, shares[i], false)
			default:
				key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
				left := s.Left(now, key)
				n := rapid.Int64Range(1, max(1, left)).Draw(t, "tokens")
				if s.Take(now, key, n) != (n <= left) {
					t.Fatalf("%d tokens of %d", n, left)
				}
				if n <= left {
					granted[key] = append(granted[key], grant{now, n})
				}
			}
		}
		for key, gs := range granted {
			boundEach(t, key, gs, limit, period)
		}
	})
}

// boundEach holds the grants of each interval against the bound.
func boundEach(t *rapid.T, key string, gs []grant, limit, period int64) {
	for i := range gs {
		sum := int64(0)
		for _, g := range gs[i:] {
			sum += g.tokens
			most := new(big.Int).Mul(big.NewInt(limit), big.NewInt(g.at-gs[i].at))
			most.Div(most, big.NewInt(period))
			if most.Add(most, big.NewInt(limit)); big.NewInt(sum).Cmp(most) > 0 {
				t.Fatalf("%s: %d tokens from %d to %d, at most %d: %v", key, sum, gs[i].at, g.at, most, gs)
			}
		}
	}
}

// TestWindowBound: no key has more than the share of a window.
func TestWindowBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, granted, most := NewWindow(rapid.Int64Range(0, 20).Draw(t, "at first")), map[string]int64{}, int64(0)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				s.Roll()
				clear(granted)
				most = s.share
			case 1:
				s.Share(1, rapid.Int64Range(0, 20).Draw(t, "share"))
				most = max(most, s.share)
			case 2:
				s.Shed(1)
			default:
				key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
				if n := rapid.Int64Range(1, 8).Draw(t, "tokens"); s.Take(1, key, n) {
					if granted[key] += n; granted[key] > s.share {
						t.Fatalf("%d tokens of a share of %d", granted[key], s.share)
					}
				}
			}
		}
	})
}

// TestBucket: a key has its share at once, regains it evenly, and is forgotten once full.
func TestBucket(t *testing.T) {
	const period = 1000
	s := NewBucket(period, 0, 10, false)
	if left := s.Left(0, "a"); left != 0 {
		t.Fatalf("a new table has %d tokens left, want 0", left)
	}
	now := int64(period)
	for _, step := range []struct{ elapsed, take, left int64 }{{0, 10, 0}, {99, 0, 0}, {1, 0, 1}, {450, 5, 0}, {50, 1, 0}, {1000, 0, 10}} {
		now += step.elapsed
		if step.take > 0 && !s.Take(now, "a", step.take) {
			t.Fatalf("%+v: refused, with %d left", step, s.Left(now, "a"))
		}
		if left := s.Left(now, "a"); left != step.left {
			t.Fatalf("%+v: %d tokens left", step, left)
		}
	}
	if s.Take(now, "a", 11) {
		t.Error("granted more than the share")
	}
	for range 2 {
		now = max(now, s.Due())
		s.Age(now)
	}
	if s.Len() != 0 || s.Dropped() != 0 || s.Left(now, "a") != 10 {
		t.Errorf("%d keys, %d dropped, %d left after they had been idle", s.Len(), s.Dropped(), s.Left(now, "a"))
	}
}

// TestUntil: a key has the tokens at the time told, and not before.
func TestUntil(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period, share := rapid.Int64Range(1, 5000).Draw(t, "period"), rapid.Int64Range(1, 50).Draw(t, "share")
		s := NewBucket(period, 0, share, rapid.Bool().Draw(t, "full"))
		now := rapid.Int64Range(0, 2*period).Draw(t, "now")
		if n := rapid.Int64Range(0, share).Draw(t, "taken"); n > 0 {
			s.Take(now, "a", n)
		}
		n := rapid.Int64Range(1, share).Draw(t, "tokens")
		in, ok := s.Until(now, "a", n)
		if !ok || s.Left(now+in, "a") < n || in > 0 && s.Left(now+in-1, "a") >= n {
			t.Fatalf("%d of %d tokens in %d: %d then, %d before", n, share, in, s.Left(now+in, "a"), s.Left(now+in-1, "a"))
		}
	})
}

// TestShed: where memory is short a key that was dropped has no more than the fewest of the
// keys dropped, and keys regain their tokens as ever.
func TestShed(t *testing.T) {
	for _, s := range []*Table{NewBucket(1000, 0, 10, true), NewWindow(10)} {
		for i := range 100 {
			s.Take(1000, fmt.Sprint(i), 1+int64(i%3))
		}
		for range 2 {
			s.Shed(1000)
		}
		if s.Len() != 0 || s.Dropped() != 100 {
			t.Fatalf("%d keys, %d dropped", s.Len(), s.Dropped())
		}
		if left := s.Left(1000, "new"); left != 7 {
			t.Errorf("a key not known has %d tokens, want 7", left)
		}
		s.Roll()
		if left := s.Left(1300, "new"); left != 10 {
			t.Errorf("a key not known has %d tokens later, want 10", left)
		}
	}
}

// TestShare: a key keeps its tokens as the share grows, fills by the new share from then on,
// and loses tokens beyond a share that falls.
func TestShare(t *testing.T) {
	s := NewBucket(1000, 0, 10, true)
	s.Take(1000, "used", 5)
	want := func(now, used, other int64) {
		t.Helper()
		if a, b := s.Left(now, "used"), s.Left(now, "other"); a != used || b != other {
			t.Errorf("at %d %d tokens are left of a key used before, %d of another; want %d and %d", now, a, b, used, other)
		}
	}
	s.Share(1000, 20)
	want(1000, 5, 10)
	want(1100, 7, 12)
	s.Share(1100, 8)
	want(1100, 7, 7)
	s.Share(1100, 20)
	want(1100, 7, 7)
	s.Share(1100, 0)
	want(9000, 0, 0)
	s.Share(9000, 10)
	want(9000, 0, 0)
	want(9500, 5, 5)
}

// TestHome: small limits have a home, the same whoever asks, and homes are spread.
func TestHome(t *testing.T) {
	sites := []string{"us", "eu", "asia"}
	homes := map[string]int{}
	for i := range 300 {
		homes[Home(fmt.Sprint("template", i), 23, sites)]++
	}
	for _, s := range sites {
		if homes[s] < 60 {
			t.Errorf("%v", homes)
		}
	}
	if home := Home("template", 24, sites); home != "" {
		t.Errorf("24 tokens for three sites have a home, %q", home)
	}
}

// TestBar: a key that is barred, and all below it, have no tokens, and regain them as any key
// does. Keys beside stay as they are, whatever was known of them.
func TestBar(t *testing.T) {
	for _, s := range []*Table{NewBucket(1000, 1, 10, true), NewWindow(10)} {
		s.Take(1, "a/used", 1)
		s.Take(1, "ab", 4)
		s.Bar(1, "a", true)
		s.Bar(1, "c", false)
		for key, want := range map[string]int64{"a": 0, "a/used": 0, "a/b/c": 0, "ab": 6, "c": 0, "c/d": 10, "": 10} {
			if left := s.Left(1, key); left != want {
				t.Errorf("%d tokens are left of %q, want %d", left, key, want)
			}
		}
		s.Reset(1, "a/used")
		if left := s.Left(1, "a/used"); left != 10 {
			t.Errorf("a key that is reset has %d tokens left", left)
		}
		// A share that grows meanwhile brings none at once.
		s.Share(1, 20)
		if left := s.Left(1, "a/new"); left != 0 {
			t.Errorf("with a larger share %d tokens are left", left)
		}
		if s.period > 0 {
			if left := s.Left(501, "a/new"); left != 10 {
				t.Errorf("after half a period %d tokens are left", left)
			}
			s.Age(2000)
			if len(s.bars) != 0 {
				t.Errorf("%+v", s.bars)
			}
		}
		s.Roll()
		if left := s.Left(2001, "a/new"); left != 20 {
			t.Errorf("later %d tokens are left", left)
		}
	}
}

// TestManyBars: bars are bounded. Where there are too many, keys that are not known have no
// tokens.
func TestManyBars(t *testing.T) {
	s := NewWindow(10)
	s.Take(1, "known", 1)
	for i := range maxBars + 1 {
		s.Bar(1, fmt.Sprint(i), false)
	}
	if a, b, c := s.Left(1, "new"), s.Left(1, "7"), s.Left(1, "known"); len(s.bars) != 0 || a != 0 || b != 0 || c != 9 {
		t.Errorf("%d, %d and %d tokens are left, with %d bars", a, b, c, len(s.bars))
	}
}
