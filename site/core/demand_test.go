package core

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// recorder is a model that keeps its inputs.
type recorder struct {
	predict.Durable
	bins []predict.Bin
}

func (m *recorder) Observe(b predict.Bin)      { m.bins = append(m.bins, b) }
func (m *recorder) Forecast() predict.Forecast { return predict.Forecast{} }

func TestBins(t *testing.T) {
	const bin, most = 100, 50
	type move struct {
		at     Tick
		tokens Tokens
	}
	for name, tc := range map[string]struct {
		moves []move
		until Tick
		want  []predict.Bin
	}{
		"nothing closed yet":   {[]move{{10, 5}, {99, 3}}, 99, nil},
		"net and peak":         {[]move{{10, 5}, {20, -4}, {30, 2}, {40, -9}}, 100, []predict.Bin{{Net: -6, Peak: 5}}},
		"releases only":        {[]move{{10, -5}}, 100, []predict.Bin{{Net: -5}}},
		"more than the limit":  {[]move{{10, 30}, {20, 30}, {30, input.MaxTokens}, {40, input.MaxTokens}}, 100, []predict.Bin{{Net: most, Peak: most}}},
		"less than the limit":  {[]move{{10, 5}, {20, -input.MaxTokens}, {30, -input.MaxTokens}}, 100, []predict.Bin{{Net: -most, Peak: 5}}},
		"starts anew each bin": {[]move{{10, 5}, {110, 2}}, 200, []predict.Bin{{Net: 5, Peak: 5}, {Net: 2, Peak: 2}}},
		"empty bins between":   {[]move{{10, 5}, {310, 2}}, 400, []predict.Bin{{Net: 5, Peak: 5}, {}, {}, {Net: 2, Peak: 2}}},
		"a long pause":         {[]move{{10, 5}}, 1_000_000, append([]predict.Bin{{Net: 5, Peak: 5}}, make([]predict.Bin, gapBins)...)},
	} {
		t.Run(name, func(t *testing.T) {
			m := &recorder{}
			d := demand{model: &model{Durable: m}}
			for _, v := range tc.moves {
				d.roll(v.at/bin, most)
				if v.tokens > 0 {
					d.acquired(v.at, v.tokens)
				} else {
					d.released(-v.tokens)
				}
			}
			d.roll(tc.until/bin, most)
			if n := len(tc.want); len(m.bins) < n || !slices.Equal(m.bins[:n], tc.want) {
				t.Errorf("got %v, want %v", m.bins, tc.want)
			} else if all := int(tc.until / bin); all > 20 && len(m.bins) != all || all <= 20 && len(m.bins) != n {
				t.Errorf("%d bins, of %d that have passed", len(m.bins), all)
			} else {
				for i, b := range m.bins[n:] {
					if !math.IsNaN(b.Net) {
						t.Fatalf("bin %d of a long pause is %v, want it missing", n+i, b)
					}
				}
			}
		})
	}
}

func TestRate(t *testing.T) {
	var d demand
	d.model = &model{Durable: &recorder{}}
	for at := Tick(0); at < 5000; at += 10 {
		d.roll(at/1000, 100_000)
		d.acquired(at, 2)
	}
	// 2 tokens every 10 ms are 200 a second.
	if got := d.rateAt(4990); math.Abs(got-200) > 10 {
		t.Errorf("rate %v, want 200", got)
	}
	if got := d.rateAt(4990 + 250); math.Abs(got-200/math.E) > 5 {
		t.Errorf("rate %v after a quarter of a second, want %v", got, 200/math.E)
	}
	// The pace is the same, and counts moments.
	if got := d.paceAt(4990); math.Abs(got-200) > 40 {
		t.Errorf("pace %v, want 200", got)
	}
	if got := d.paceAt(4990+50) / d.paceAt(4990); math.Abs(got-1/math.E) > .01 {
		t.Errorf("a twentieth of a second leaves %v of the pace, want %v", got, 1/math.E)
	}
	if got := d.rateAt(10); got < 190 {
		t.Errorf("rate %v at an earlier time", got)
	}
}

func TestBodyHash(t *testing.T) {
	type body struct {
		kind   stored.RequestKind
		entity string
		tokens Tokens
	}
	seen := make(map[uint64]body)
	for _, kind := range []stored.RequestKind{stored.AcquireRequest, stored.ReleaseRequest} {
		for _, entity := range []string{"", "a", "b", "a/b", "ab"} {
			for _, tokens := range []Tokens{0, 1, 2, 255, 256, 1 << 40, input.MaxTokens} {
				b := body{kind, entity, tokens}
				h := bodyHash(kind, entity, tokens)
				if other, ok := seen[h]; ok {
					t.Errorf("%+v and %+v have one hash", b, other)
				}
				seen[h] = b
			}
		}
	}
}

// TestCalendar compares a calendar with a list that is searched.
func TestCalendar(t *testing.T) {
	c := new(common)
	entities := make([]*entity, 20)
	want := make(map[*entity]Tick)
	for i := range entities {
		entities[i] = &entity{heapAt: -1}
	}
	x := uint64(1)
	for range 5000 {
		x = x*6364136223846793005 + 1442695040888963407
		e := entities[x>>33%20]
		wake := Tick(x >> 40 % 50)
		c.sleepUntil(e, wake)
		if delete(want, e); wake != 0 {
			want[e] = wake
		}
		first := Tick(0)
		for _, w := range want {
			first = earlier(first, w)
		}
		if len(c.timers) != len(want) || len(c.timers) > 0 && c.timers[0].wake != first {
			t.Fatalf("%d in the heap, want %d; the first at %d", len(c.timers), len(want), first)
		}
	}
}

// BenchmarkDemand measures the cost of forecasting for an acquire that begins nothing:
// ten acquires a millisecond, with a bin that closes every five seconds.
func BenchmarkDemand(b *testing.B) {
	m, err := predict.ByName(predict.Auto, predict.Options{Horizon: 6, Day: 17280})
	if err != nil {
		b.Fatal(err)
	}
	d := demand{model: &model{Durable: m}}
	for i := range b.N {
		d.roll(Tick(i/10/5000), 1<<40)
		d.acquired(Tick(i/10), 1)
	}
}

// BenchmarkSituation measures a look at an entity with an open bin.
func BenchmarkSituation(b *testing.B) {
	c, err := New(Config{Self: "a", Members: []SiteID{"a"}, Rand: rand.New(rand.NewPCG(1, 1))}, stored.Restored{})
	if err != nil {
		b.Fatal(err)
	}
	c.addEntity("e", 1, 1000, 1, rates.Terms{})
	e := c.space.find("e")
	c.now.Tick = 1
	for range 100 {
		c.demanded(e, 3)
		c.now.Tick += 1000
	}
	for range b.N {
		c.demanded(e, 1)
		_ = c.situation(e)
	}
}
