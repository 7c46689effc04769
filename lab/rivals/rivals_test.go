package rivals_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/lab/rivals"
	"github.com/samya-db/samya/lab/rivals/rivaltest"
	"github.com/samya-db/samya/lab/virtual"
)

const (
	way     = 500 * time.Microsecond
	service = 5 * time.Microsecond
	commit  = 300 * time.Microsecond
)

func options() virtual.Options {
	return virtual.Options{
		Places: []string{"us", "as", "eu", "au", "sa"}, Network: wan.Samya(), Seed: 3, Service: service, Commit: commit,
	}
}

func drive(t *testing.T, s virtual.System, l rivaltest.Load) *rivaltest.Run {
	t.Helper()
	r, err := rivaltest.Drive(s, options(), l)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func escrow(t *testing.T, lend rivals.Lend) *rivals.Escrow {
	t.Helper()
	s, err := rivals.NewEscrow(lend)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// at asks for n tokens at a place, a token each millisecond, and never releases them.
func at(place virtual.Place, from time.Duration, n int) []rivaltest.Lease {
	var all []rivaltest.Lease
	for i := range n {
		all = append(all, rivaltest.Lease{Due: from + time.Duration(i)*time.Millisecond, Place: place})
	}
	return all
}

func TestEscrowRefusesToBeBuilt(t *testing.T) {
	if _, err := rivals.NewEscrow("all"); !errors.Is(err, rivals.ErrLend) {
		t.Errorf("NewEscrow: %v, want ErrLend", err)
	}
	if err := rivals.NoRedistribution().Start(virtual.New(virtual.Options{Network: wan.Samya()}), 5, nil); err == nil {
		t.Error("a world of no places is taken")
	}
}

// TestParts: a site that does not redistribute serves its part and no more.
func TestParts(t *testing.T) {
	r := drive(t, rivals.NoRedistribution(), rivaltest.Load{Limit: 52, Leases: at(1, 0, 20)})
	if r.Granted != 11 || r.Refused != 9 {
		t.Errorf("%d granted, %d refused, want the part of 11", r.Granted, r.Refused)
	}
}

// TestBorrow: an escrow asks the nearest site first, then the next, and refuses when
// all have nothing.
func TestBorrow(t *testing.T) {
	// us has 10, and asks as at 131 ms, then eu at 132 ms, and so on.
	s := escrow(t, rivals.Exact)
	l := rivaltest.Load{Limit: 50, Leases: at(0, 0, 11)}
	r := drive(t, s, l)
	if last := r.Latency[10]; r.Granted != 11 || last < 131*time.Millisecond || last > 145*time.Millisecond {
		t.Errorf("%d granted, the one that waits after %v, want a way to the nearest and back", r.Granted, last)
	}
	if c := s.Counters(); c["asks"] != 1 || c["moved"] != 1 || c["waited"] != 1 {
		t.Errorf("counters %v, want one question and one token", c)
	}
	s = escrow(t, rivals.Half)
	drive(t, s, l)
	if c := s.Counters(); c["asks"] != 1 || c["moved"] != 5 {
		t.Errorf("counters %v, want half of what the nearest has", c)
	}
	for _, lend := range []rivals.Lend{rivals.Exact, rivals.Half} {
		s = escrow(t, lend)
		r = drive(t, s, rivaltest.Load{Limit: 50, Leases: at(0, 0, 60)})
		if r.Granted != 50 && lend == rivals.Exact || r.Granted < 40 || r.Granted+r.Refused != 60 {
			t.Errorf("%s: %d granted and %d refused of 60, the limit is 50", lend, r.Granted, r.Refused)
		}
		if c := s.Counters(); c["asks"] < 4 || c["asks"] > 24 {
			t.Errorf("%s: %v questions", lend, c["asks"])
		}
	}
}

// TestReleaseServes: a token released at home serves a waiting acquire.
func TestReleaseServes(t *testing.T) {
	s := escrow(t, rivals.Exact)
	l := rivaltest.Load{Limit: 5}
	for p := range virtual.Place(5) {
		l.Leases = append(l.Leases, rivaltest.Lease{Place: p})
	}
	l.Leases[0].Hold = 60 * time.Millisecond
	l.Leases = append(l.Leases, rivaltest.Lease{Due: 40 * time.Millisecond, Place: 0})
	r := drive(t, s, l)
	if got := r.Latency[5]; r.Granted != 6 || got > 25*time.Millisecond {
		t.Errorf("%d granted, the last after %v, want it with the release", r.Granted, got)
	}
}

// TestReads: all systems answer both kinds. Exact reads take the way to the farthest
// place, except at the oracle and the approximate limiter.
func TestReads(t *testing.T) {
	for name, s := range map[string]virtual.System{
		"local": rivals.NoRedistribution(), "exact": escrow(t, rivals.Exact), "half": escrow(t, rivals.Half), "oracle": rivals.NewOracle(),
		"ahead": rivals.NewAhead(), "pool": rivals.NewPool(), "approximate": rivals.NewApproximate(),
	} {
		l := rivaltest.Load{Limit: 50, Leases: []rivaltest.Lease{
			{Read: virtual.ReadStale}, {Due: time.Second, Read: virtual.ReadExact}, {Due: 2 * time.Second},
		}}
		r := drive(t, s, l)
		if r.Read != 2 || r.Granted != 1 {
			t.Errorf("%s: %d reads, %d granted", name, r.Read, r.Granted)
		}
		far := r.Latency[1] > 180*time.Millisecond
		if r.Latency[0] > 2*time.Millisecond || far != (name != "oracle" && name != "approximate") {
			t.Errorf("%s: reads take %v", name, r.Latency[:2])
		}
	}
	// A site that cannot ask all others gives up at the deadline.
	l := rivaltest.Load{Limit: 50, Leases: []rivaltest.Lease{{Due: time.Second, Read: virtual.ReadExact}}}
	l.Faults = []rivaltest.Fault{{Do: func(r *rivaltest.Run) { r.World.Cut([]int{0, 0, 0, 0, 1}) }}}
	if r := drive(t, escrow(t, rivals.Half), l); r.TimedOut != 1 {
		t.Errorf("a read across a cut: %d timed out", r.TimedOut)
	}
}

// TestConserve: whatever is asked and crashes, no more than the limit is out, except at
// the approximate limiter, and the books add up.
func TestConserve(t *testing.T) {
	for seed := range uint64(20) {
		for name, s := range map[string]virtual.System{
			"none": rivals.NoRedistribution(), "exact": escrow(t, rivals.Exact), "half": escrow(t, rivals.Half),
			"ahead": rivals.NewAhead(), "pool": rivals.NewPool(), "approximate": rivals.NewApproximate(), "oracle": rivals.NewOracle(),
		} {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 2))
				l := rivaltest.Load{Limit: 100, Unbounded: name == "approximate"}
				for i := range 6000 {
					// The places' demand comes in turns.
					p := virtual.Place((i/700 + random.IntN(2)) % 5)
					l.Leases = append(l.Leases, rivaltest.Lease{
						Due: time.Duration(i) * 10 * time.Millisecond, Hold: time.Duration(random.IntN(2000)) * time.Millisecond, Place: p,
					})
				}
				if name != "oracle" && seed%2 == 1 {
					for at := 5 * time.Second; at < 50*time.Second; at += 5 * time.Second {
						p := virtual.Place(random.IntN(5))
						l.Faults = append(l.Faults,
							rivaltest.Fault{At: at, Do: func(r *rivaltest.Run) { r.World.Crash(p); s.Crashed(p) }},
							rivaltest.Fault{At: at + 2*time.Second, Do: func(r *rivaltest.Run) { r.World.Restart(p); s.Restarted(p) }})
					}
				}
				r := drive(t, s, l)
				if r.Granted < 1000 {
					t.Errorf("%d granted: little was tried", r.Granted)
				}
			})
		}
	}
}

// TestCrash: a grant that was not durable at a crash never happened.
func TestCrash(t *testing.T) {
	for name, s := range map[string]virtual.System{
		"local": rivals.NoRedistribution(), "exact": escrow(t, rivals.Exact), "half": escrow(t, rivals.Half), "ahead": rivals.NewAhead(),
	} {
		// The place crashes while it writes an acquire and another waits for the disk.
		l := rivaltest.Load{Limit: 50, Leases: []rivaltest.Lease{{}, {Due: 50 * time.Microsecond}, {Due: time.Second}}}
		l.Faults = []rivaltest.Fault{
			{At: way + 150*time.Microsecond, Do: func(r *rivaltest.Run) { r.World.Crash(0); s.Crashed(0) }},
			{At: 500 * time.Millisecond, Do: func(r *rivaltest.Run) { r.World.Restart(0); s.Restarted(0) }},
		}
		if r := drive(t, s, l); r.Granted != 1 || r.Lost != 2 || s.Out() != 1 {
			t.Errorf("%s: %d granted, %d lost, %d out", name, r.Granted, r.Lost, s.Out())
		}
	}
}
