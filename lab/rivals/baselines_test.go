package rivals_test

import (
	"testing"
	"time"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/lab/replay"
	"github.com/samya-db/samya/lab/rivals"
	"github.com/samya-db/samya/lab/rivals/rivaltest"
	"github.com/samya-db/samya/lab/virtual"
)

// TestAheadAsksBeforeItIsInNeed: a site below its low-water mark is lent tokens while
// nobody waits, by all others at once.
func TestAheadAsksBeforeItIsInNeed(t *testing.T) {
	// us has 200 and asks at 24; the others have 200 each, and lend (200-24)/5.
	s := rivals.NewAhead()
	drive(t, s, rivaltest.Load{Limit: 1000, Leases: at(0, 0, 175)})
	if c := s.Counters(); c["waited"] != 0 || c["asks"] != 0 {
		t.Errorf("counters %v, want no question at the mark of 25", c)
	}
	s = rivals.NewAhead()
	r := drive(t, s, rivaltest.Load{Limit: 1000, Leases: at(0, 0, 176)})
	if c := s.Counters(); r.Granted != 176 || c["waited"] != 0 || c["asks"] != 4 || c["loans"] != 4 || c["moved"] != 4*35 {
		t.Errorf("%d granted, counters %v, want 4 questions and 140 tokens", r.Granted, c)
	}
}

// TestAheadServesWhoWaits: an acquire without a token gets a token in a round trip to
// whoever has any. It is refused once all others have answered that they have none.
func TestAheadServesWhoWaits(t *testing.T) {
	s := rivals.NewAhead()
	r := drive(t, s, rivaltest.Load{Limit: 5, Leases: at(0, 0, 9)})
	if r.Granted != 5 || r.Refused != 4 {
		t.Errorf("%d granted and %d refused of 9, the limit is 5", r.Granted, r.Refused)
	}
	for i, took := range r.Latency {
		if took > 2*400*time.Millisecond {
			t.Errorf("answer %d takes %v, want two rounds at most", i, took)
		}
	}
}

// TestAheadAsksAnew: a site that loses its questions in a cut asks again, and is served
// once the cut has healed.
func TestAheadAsksAnew(t *testing.T) {
	s := rivals.NewAhead()
	l := rivaltest.Load{Limit: 5, Leases: at(0, 0, 2)}
	l.Faults = []rivaltest.Fault{
		{Do: func(r *rivaltest.Run) { r.World.Cut([]int{0, 1, 1, 1, 1}) }},
		{At: 1500 * time.Millisecond, Do: func(r *rivaltest.Run) { r.World.Heal() }},
	}
	if r := drive(t, s, l); r.Granted != 2 {
		t.Errorf("%d granted, %d refused, %d timed out", r.Granted, r.Refused, r.TimedOut)
	}
}

// TestPoolLeases: the server leases all wanted tokens as long as the limit suffices, and
// proportional shares beyond.
func TestPoolLeases(t *testing.T) {
	s := rivals.NewPool()
	r := drive(t, s, rivaltest.Load{Limit: 100, Leases: at(4, 0, 100)})
	if r.Granted != 100 {
		t.Errorf("%d granted, %d refused, %d timed out: one site has to get all that nobody else wants", r.Granted, r.Refused, r.TimedOut)
	}
	// Two sites want more than the limit: all of it goes to them, about a half to each.
	s = rivals.NewPool()
	l := rivaltest.Load{Limit: 500}
	for i := range 1000 {
		l.Leases = append(l.Leases, rivaltest.Lease{Due: time.Duration(i) * 10 * time.Millisecond, Place: virtual.Place(1 + i%2)})
	}
	r = drive(t, s, l)
	if r.Granted != 500 || r.Refused+r.TimedOut != 500 {
		t.Errorf("%d granted, %d refused, %d timed out, the limit is 500", r.Granted, r.Refused, r.TimedOut)
	}
	if one := s.OutAt(1); one < 200 || one > 300 {
		t.Errorf("one of two sites that want all has %d of 500", one)
	}
}

// TestPoolLapses: a site that cannot renew its lease grants for a minute, then no more
// until it reaches the server. The server never leases the site's tokens to others.
func TestPoolLapses(t *testing.T) {
	s := rivals.NewPool()
	l := rivaltest.Load{Limit: 50}
	for i := range 100 {
		l.Leases = append(l.Leases, rivaltest.Lease{Due: time.Duration(i) * time.Second, Hold: 100 * time.Millisecond, Place: 3})
	}
	l.Faults = []rivaltest.Fault{
		{At: 5500 * time.Millisecond, Do: func(r *rivaltest.Run) { r.World.Cut([]int{0, 0, 0, 1, 0}) }},
		{At: 85500 * time.Millisecond, Do: func(r *rivaltest.Run) { r.World.Heal() }},
	}
	r := drive(t, s, l)
	// Its last lease begins between 4.5 and 5.5 s, and the waits of acquires from 81 s on
	// outlast the cut.
	if r.TimedOut < 15 || r.TimedOut > 17 || r.Granted != 100-r.TimedOut {
		t.Errorf("%d granted, %d timed out", r.Granted, r.TimedOut)
	}
	if got := r.World.Now(); s.Free(3) != 50 {
		t.Errorf("%d free after %v, want all 50", s.Free(3), got)
	}
}

// TestApproximateExceeds: an approximate limiter grants beyond the limit, but only
// requests within the ways to the owner and back.
func TestApproximateExceeds(t *testing.T) {
	s := rivals.NewApproximate()
	l := rivaltest.Load{Limit: 100, Unbounded: true}
	for i := range 2000 {
		l.Leases = append(l.Leases, rivaltest.Lease{Due: time.Duration(i) * time.Millisecond, Place: virtual.Place(i % 5)})
	}
	r := drive(t, s, l)
	beyond := s.Counters()["beyond"]
	// The farthest server is 300 ms away at most, there and back; clients ask for 1,000
	// tokens a second.
	if beyond < 20 || beyond > 300 || float64(r.Granted) != 100+beyond || r.Refused != 2000-r.Granted {
		t.Errorf("%d granted, %v beyond the limit of 100", r.Granted, beyond)
	}
	if p := rivaltest.Quantile(r.Latency, .99); p > 2*way+3*service {
		t.Errorf("an answer takes %v, want the way and the service", p)
	}
}

// TestApproximateIsExactAtRest: where the owner hears of hits in time, the limit holds,
// and released tokens are free again everywhere.
func TestApproximateIsExactAtRest(t *testing.T) {
	s := rivals.NewApproximate()
	l := rivaltest.Load{Limit: 10}
	for i := range 100 {
		l.Leases = append(l.Leases, rivaltest.Lease{
			Due: time.Duration(i) * time.Second, Hold: 10500 * time.Millisecond, Place: virtual.Place(i % 5),
		})
	}
	if r := drive(t, s, l); r.Granted < 90 || r.Refused == 0 || s.Counters()["beyond"] != 0 {
		t.Errorf("%d granted, %d refused, %v beyond", r.Granted, r.Refused, s.Counters())
	}
}

// TestBaselinesOnTheHour: on the workload that mostly fits, the escrow that asks ahead
// lets at most 1 in 1,000 acquires wait, the pool 1 in 100. Neither refuses any. On the
// workload that exceeds the limit now and then, both conserve.
func TestBaselinesOnTheHour(t *testing.T) {
	race.OneGoroutine(t)
	for _, tc := range []struct {
		workload string
		s        virtual.System
		most     float64
		refused  bool
	}{
		{"fit", rivals.NewAhead(), .001, false},
		{"fit", rivals.NewPool(), .01, false},
		{"tight", rivals.NewAhead(), 1, true},
		{"tight", rivals.NewPool(), 1, true},
	} {
		l := load(t, tc.workload, replay.MaxBins)
		r := drive(t, tc.s, l)
		waited := tc.s.Counters()["waited"] / float64(len(l.Leases))
		if waited > tc.most || (r.Refused+r.TimedOut > 0) != tc.refused {
			t.Errorf("%s, %T: %.3f %% wait, %d refused, %d timed out", tc.workload, tc.s, 100*waited, r.Refused, r.TimedOut)
		}
	}
}
