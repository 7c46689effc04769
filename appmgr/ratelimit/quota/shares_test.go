package quota

import (
	"testing"
	"time"

	"github.com/samya-db/samya/internal/rates"
)

// check fails if the proxies may use more than is leased, or the site has leased more than the
// limit.
func (s *sim) check() {
	held, used := s.site.held(), int64(0)
	for _, p := range s.proxies {
		if p.until > s.now {
			used += scale(p.bucket.Fill, int64(s.site.period), int64(p.bucket.Interval))
		}
	}
	if used > held || held > s.site.limit {
		s.t.Fatalf("seed %d: at %v proxies use %d tokens a period, %d are leased, the limit is %d", s.seed, s.now, used, held, s.site.limit)
	}
}

// bound fails if more was granted than the limit allows.
func (s *sim) bound() {
	p, limit := int64(s.site.period), s.site.limit
	windows := map[int64]int64{}
	for i, first := range s.granted {
		if s.site.kind == rates.Window {
			w := int64(first.at / s.site.period)
			if windows[w] += first.tokens; windows[w] > limit {
				s.t.Fatalf("seed %d: %d granted in window %d, the limit is %d", s.seed, windows[w], w, limit)
			}
			continue
		}
		sum := int64(0)
		for _, g := range s.granted[i:] {
			sum += g.tokens
			if length := int64(g.at - first.at + simStep); sum > limit+scale(limit, length, p) {
				s.t.Fatalf("seed %d: %d granted within %v from %v on, the limit is %d in %v", s.seed, sum, g.at-first.at, first.at, limit, s.site.period)
			}
		}
	}
}

// TestSharesOfProxies: whatever is killed, late or lost, proxies use no more than is leased,
// and all together grant no more than the limit.
func TestSharesOfProxies(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 12
	}
	for _, kind := range []rates.Kind{rates.Bucket, rates.Window} {
		t.Run(string(kind), func(t *testing.T) {
			for seed := range seeds {
				s := newSim(t, seed, kind, 1+int(seed%4), []int64{3, 40, 1000}[seed%3], true)
				for range 8000 {
					if s.rng.IntN(400) == 0 {
						for _, p := range s.proxies {
							p.demand = s.rng.Int64N(1 + 3*s.site.limit*1000*int64(simStep)/int64(s.site.period))
						}
					}
					others := int64(0)
					if s.rng.IntN(10) == 0 {
						others = s.rng.Int64N(s.site.limit/4 + 2)
					}
					s.step(others)
				}
				s.bound()
				if s.core.Buckets() > len(s.proxies) {
					t.Errorf("seed %d: %d buckets of %d proxies", seed, s.core.Buckets(), len(s.proxies))
				}
			}
		})
	}
}

// TestSharesFollowDemand: proxies get about what they ask for, and the limit is used if they
// ask for more.
func TestSharesFollowDemand(t *testing.T) {
	for _, kind := range []rates.Kind{rates.Bucket, rates.Window} {
		for name, c := range map[string]struct {
			// demand is in tokens of each proxy in a period, as parts of the limit in hundred.
			demand []int64
			// least is what is to be granted, in hundredths of the limit or of the demand.
			least int64
		}{
			"little":           {[]int64{10}, 95},
			"half":             {[]int64{50}, 90},
			"two, unequal":     {[]int64{40, 10}, 90},
			"more than all":    {[]int64{300}, 60},
			"three, too much":  {[]int64{100, 100, 100}, 60},
			"a second is late": {[]int64{100, 0}, 50},
		} {
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				s := newSim(t, 2, kind, len(c.demand), 600, false)
				perStep := s.site.limit * 1000 * int64(simStep) / int64(s.site.period)
				for i, p := range s.proxies {
					p.demand = perStep * c.demand[i] / 100
				}
				steps := int(10 * time.Minute / simStep)
				sum, wanted := int64(0), int64(0)
				for i := range steps {
					if name == "a second is late" && i == steps/4 {
						s.proxies[1].demand = perStep
					}
					s.step(0)
				}
				for _, p := range s.proxies {
					sum += p.allowed
					wanted += p.demand * int64(steps) / 1000
				}
				all := s.site.limit * int64(steps) * int64(simStep) / int64(s.site.period)
				if got := 100 * sum / min(wanted, all); got < c.least {
					t.Errorf("%d of 100 were let pass", got)
				}
				if n := len(s.proxies); n > 1 && c.demand[0] == 100 {
					for _, p := range s.proxies {
						if p.allowed < sum/int64(3*n) {
							t.Errorf("a proxy got %d of %d", p.allowed, sum)
						}
					}
				}
				s.bound()
			})
		}
	}
}
