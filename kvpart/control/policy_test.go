package control

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPolicyOptions(t *testing.T) {
	for name, p := range map[string]Policy{
		"kind":                    {Kind: Base + 1},
		"base without operations": {Kind: Base},
		"every":                   {Every: -1},
		"window":                  {Window: -1},
		"gain":                    {Gain: 1},
		"gain not a number":       {Gain: math.NaN()},
		"share":                   {Share: -.1},
		"sample":                  {Sample: 1.1},
		"imbalance":               {Imbalance: -1},
		"stretch not a number":    {Stretch: math.NaN()},
		"vertices":                {Vertices: 1},
		"edges":                   {Edges: 1},
	} {
		_, err := New(Options[*key]{Scheduler: newKeys(2, 2), Policy: p, Now: func() time.Duration { return 0 }})
		if !errors.Is(err, errOptions) {
			t.Errorf("%s: %v, want ErrOptions", name, err)
		}
	}
}

// TestShare spends processor time as tracking and cutting do, under any load and with any
// share. By any time no more was spent than the share, a cut and 20 steps of tracking.
func TestShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			Share: rapid.SampledFrom([]float64{.01, .05, .1, .5}).Draw(t, "share"),
			Gain:  rapid.SampledFrom([]float64{-1, .02}).Draw(t, "gain"),
			Every: time.Duration(rapid.IntRange(0, 3000).Draw(t, "every")) * time.Millisecond,
		}
		if err := p.check(); err != nil {
			t.Fatal(err)
		}
		var (
			now, spent, most, step time.Duration
			tracked, cuts          int64
			done                   time.Duration // when the cut under way ends; 0 for none
			cost                   time.Duration
			s                      = newSignal(2, 1)
			q                      = newPolicy(p, 0)
			rate                   = rapid.IntRange(100, 1_000_000).Draw(t, "rate")
		)
		const tick = 10 * time.Millisecond
		for range rapid.IntRange(100, 2000).Draw(t, "ticks") {
			now += tick
			if rapid.IntRange(0, 199).Draw(t, "change") == 0 {
				rate = rapid.IntRange(100, 1_000_000).Draw(t, "rate")
			}
			// Tracking, at 150 ns a request.
			n := int64(float64(rate) * tick.Seconds() * q.sample())
			d := time.Duration(n) * 150
			q.track(now, d, int(n), false)
			spent += d
			step = max(step, d)
			tracked += n
			s.requests += n
			s.multi += n / 2
			s.loads[0][0] += float64(n)
			s.loads[1][0] += float64(n)
			s.squares[0] += float64(2 * n)
			if done > 0 && now >= done {
				done = 0
				q.cut(now, cost)
				q.done(now, rapid.Bool().Draw(t, "applied"), &s)
			}
			if q.start(now, &s, tracked) {
				tracked = 0
				cuts++
				cost = time.Duration(rapid.IntRange(1, 500).Draw(t, "cost")) * time.Millisecond
				most = max(most, cost)
				spent += cost
				done = now + cost
			}
			// Until the sampling has adapted, once, it tracks more than it may.
			if may := time.Duration(p.Share*float64(now)) + most + 20*step; spent > may {
				t.Fatalf("by %v %v were spent, with a share of %v and cuts of up to %v that is at most %v", now, spent, p.Share, most, may)
			}
		}
	})
}

// TestSamplingFitsTheShare tracks as much as half of the share allows, at each load, and
// all requests where they cost less.
func TestSamplingFitsTheShare(t *testing.T) {
	p := Policy{Share: .1, Gain: -1}
	if err := p.check(); err != nil {
		t.Fatal(err)
	}
	q := newPolicy(p, 0)
	now := time.Duration(0)
	for _, load := range []struct {
		rate float64 // requests a second, at 200 ns each
		want float64
	}{{1e6, .25}, {1e5, 1}, {5e6, .05}, {5e5, .5}} {
		sum, n := 0., 0
		for i := range 1000 {
			now += 10 * time.Millisecond
			tracked := load.rate * .01 * q.sample()
			q.track(now, time.Duration(tracked)*200, int(tracked), false)
			if i > 500 {
				sum += q.sample()
				n++
			}
		}
		if got := sum / float64(n); got < load.want*.8 || got > load.want*1.01 {
			t.Errorf("at %v requests a second %.3f are tracked, want %v", load.rate, got, load.want)
		}
	}
	before := q.sample()
	for range 10 {
		now += 10 * time.Millisecond
		q.track(now, 0, 0, true)
	}
	if q.sample() >= before {
		t.Error("requests are dropped, and sampling is as before")
	}
}

// TestWellDistributedLoadIsNotCut reads single keys evenly: there is nothing to gain, so
// nothing is cut and hardly anything tracked. Then keys are used two by two: within two
// seconds the map follows.
func TestWellDistributedLoadIsNotCut(t *testing.T) {
	w := newWorld(t, 4, 1000, Policy{Window: 10_000, Every: time.Second})
	offered := 0
	w.pass(30*time.Second, 10*time.Millisecond, func() {
		for range 1000 {
			offered++
			w.use(int(w.rand()>>8) % 1000)
		}
	})
	s := w.accounted()
	if s.Computed != 0 {
		t.Errorf("%d cuts that bring nothing", s.Computed)
	}
	if s.Sample > .05 || s.Tracked > int64(offered)/16 {
		t.Errorf("%d of %d requests were tracked, at present a share of %v", s.Tracked, offered, s.Sample)
	}
	w.pass(2*time.Second, 10*time.Millisecond, w.pairs(1000))
	s = w.accounted()
	if s.Applied == 0 || w.apart() > 5 {
		t.Errorf("%d pairs apart two seconds after the load changed; %+v", w.apart(), s)
	}
}

// TestCutsThatDoNotPayGetRare uses keys two by two at random: no map is good. Then fixed
// pairs are used, and a good map is found.
func TestCutsThatDoNotPayGetRare(t *testing.T) {
	w := newWorld(t, 4, 1000, Policy{Window: 4000, Every: 100 * time.Millisecond, Share: 1})
	w.cutTime = time.Millisecond
	w.pass(60*time.Second, 10*time.Millisecond, func() {
		for range 100 {
			w.use(int(w.rand()>>8)%1000, int(w.rand()>>8)%1000)
		}
	})
	s := w.accounted()
	if s.Interval != 100*time.Millisecond<<mostBacking {
		t.Errorf("after a minute of cuts in vain there is one each %v", s.Interval)
	}
	if s.Computed > 60 {
		t.Errorf("%d cuts in a minute", s.Computed)
	}
	// The share of requests on several partitions does not get worse: the next cut that
	// is due must find the map.
	w.pass(15*time.Second, 10*time.Millisecond, w.pairs(1000))
	if s := w.accounted(); w.apart() > 5 {
		t.Errorf("%d pairs apart; %+v", w.apart(), s)
	}
}

// TestMovingLoad changes again and again which keys are used together: the map follows.
func TestMovingLoad(t *testing.T) {
	w := newWorld(t, 4, 1000, Policy{Window: 10_000, Every: 100 * time.Millisecond})
	for distance := 1; distance <= 64; distance *= 2 {
		use := func() {
			for range 1000 {
				i := int(w.rand()>>8) % 1000
				i -= i / distance % 2 * distance
				w.use(i, min(i+distance, 999))
			}
		}
		w.pass(3*time.Second, 10*time.Millisecond, use)
		if m := w.c.policy.last.multi; m > .02 {
			t.Errorf("with a distance of %d %v of the requests are on several partitions; %+v", distance, m, w.accounted())
		}
	}
}

// TestBetter is the gain test by example: the present map, the next, and whether
// it is worth it.
func TestBetter(t *testing.T) {
	q := func(cut int64, balance float64) quality {
		return quality{cut: cut, total: 100_000, balance: balance, weight: 1_000_000}
	}
	for _, c := range []struct {
		name          string
		present, next quality
		gain          float64
		want          bool
	}{
		{"the same", q(1000, 1), q(1000, 1), .02, false},
		{"a better cut", q(1000, 1), q(900, 1), .02, true},
		{"a cut not better by the gain", q(10_000, 1), q(9_900, 1), .02, false},
		{"a cut better by a trifle", q(100, 1), q(10, 1), .02, false},
		{"a better cut within the imbalance", q(1000, 1), q(500, 1.03), .02, true},
		{"a better cut at a worse balance", q(1000, 1), q(500, 1.2), .02, false},
		{"a better cut at a balance no worse", q(1000, 1.3), q(500, 1.3), .02, true},
		{"a better balance", q(0, 2), q(0, 1.1), .02, true},
		{"a balance better by chance", q(0, 1.035), q(0, 1), .02, false},
		{"a better balance for a small cut", q(0, 4), q(5_000, 1.03), .02, true},
		{"a better balance for a cut that costs more", q(0, 1.2), q(50_000, 1.03), .02, false},
		{"a worse map that is to be applied", q(0, 1), q(50_000, 2), -1, true},
		{"no edges, a better balance", quality{balance: 2, weight: 1e6}, quality{balance: 1, weight: 1e6}, .02, true},
		{"no edges, the same balance", quality{balance: 1, weight: 1e6}, quality{balance: 1, weight: 1e6}, .02, false},
		{"an imbalance of few requests", quality{balance: 1.3, weight: 50}, quality{balance: 1, weight: 50}, .02, false},
	} {
		if got := better(c.present, c.next, c.gain, .03, balanceNoise(4, c.present.weight)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
