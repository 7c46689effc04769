package multipaxsys_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/lab/rivals/multipaxsys"
	"github.com/samya-db/samya/lab/rivals/rivaltest"
	"github.com/samya-db/samya/lab/virtual"
)

// TestLeaderCrash: another replica leads within seconds, nothing is lost, and the
// preferred replica leads again when it is back.
func TestLeaderCrash(t *testing.T) {
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			s, o := build(t, multipaxsys.Options{Mode: mode})
			l := steady(10, 2*time.Minute, 5*time.Second, 5000)
			l.Faults = []rivaltest.Fault{
				{At: 29 * time.Second, Do: func(*rivaltest.Run) {
					if s.Leader() != us {
						t.Errorf("place %d leads, want us", s.Leader())
					}
				}},
				{At: 30 * time.Second, Do: crash(us)},
				{At: 40 * time.Second, Do: func(*rivaltest.Run) {
					if got := s.Places()[s.Leader()]; got != multipaxsys.Central {
						t.Errorf("%s leads, want the next one in the US", got)
					}
				}},
				{At: 80 * time.Second, Do: restart(us)},
			}
			r := drive(t, s, o, l)
			if s.Leader() != us {
				t.Errorf("place %d leads in the end, want us", s.Leader())
			}
			if n := between(r, 34*time.Second, 40*time.Second); n == 0 {
				t.Error("nothing is granted 4 to 10 s after the leader's crash")
			}
			if n := between(r, 90*time.Second, 2*time.Minute); mode == multipaxsys.Batched && n < 290 {
				t.Errorf("%d grants in the last half minute, want 300", n)
			}
		})
	}
}

// TestMajorityGone: with three of five regions down nothing is done (Samya, Figure 10).
// The system goes on when a region is back.
func TestMajorityGone(t *testing.T) {
	for _, down := range [][]virtual.Place{{us, as, eu}, {sa, au, eu}, {us, au, sa}} {
		t.Run(fmt.Sprint(down), func(t *testing.T) {
			s, o := build(t, multipaxsys.Options{Mode: multipaxsys.Batched})
			l := steady(20, 90*time.Second, 5*time.Second, 5000)
			l.Faults = []rivaltest.Fault{
				{At: 20 * time.Second, Do: crash(down[0])},
				{At: 25 * time.Second, Do: crash(down[1])},
				{At: 30 * time.Second, Do: crash(down[2])},
				{At: 60 * time.Second, Do: restart(down[1])},
			}
			r := drive(t, s, o, l)
			if n := between(r, 31*time.Second, 60*time.Second); n != 0 {
				t.Errorf("%d grants while three of five are down", n)
			}
			if n := between(r, 28*time.Second, 30*time.Second); n == 0 {
				t.Error("no grants while two of five are down")
			}
			if n := between(r, 65*time.Second, 90*time.Second); n < 200 {
				t.Errorf("%d grants after one is back", n)
			}
		})
	}
	s, o := build(t, multipaxsys.Options{Mode: multipaxsys.Batched, Apart: true})
	l := steady(20, 40*time.Second, 5*time.Second, 5000)
	l.Faults = []rivaltest.Fault{{At: 20 * time.Second, Do: crash(sa, au, eu)}}
	if r := drive(t, s, o, l); between(r, 25*time.Second, 40*time.Second) == 0 {
		t.Error("nothing is done while four replicas are up")
	}
}

// TestCutOff: requests away from the leader time out in turn. Their place keeps only
// releases and acquires that the leader may have got.
func TestCutOff(t *testing.T) {
	s, o := build(t, multipaxsys.Options{Mode: multipaxsys.Batched})
	l := steady(200, 10*time.Minute, 5*time.Second, 50000)
	const from, to = time.Minute, 9 * time.Minute
	most := 0
	l.Faults = []rivaltest.Fault{{At: from, Do: cut(s, 0, 0, 0, 1, 1)}, {At: to, Do: heal}}
	for at := from; at < to; at += time.Second {
		l.Faults = append(l.Faults, rivaltest.Fault{At: at, Do: func(*rivaltest.Run) { most = max(most, s.Waiting(au)) }})
	}
	r := drive(t, s, o, l)
	// Acquires of five seconds wait, and releases of earlier grants.
	if most < 150 || most > 550 {
		t.Errorf("%d requests kept at a place that is cut off", most)
	}
	if want := 2 * int((to - from).Seconds()) * 40; r.TimedOut < want-500 || r.TimedOut > want+500 {
		t.Errorf("%d timed out, want those of the places that are cut off, %d", r.TimedOut, want)
	}
	if s.Out() != 0 {
		t.Errorf("%d tokens out in the end", s.Out())
	}
}

// TestDeposed: a leader that is cut off answers reads only while nobody else can lead; on
// the other side another replica leads.
func TestDeposed(t *testing.T) {
	s, o := build(t, multipaxsys.Options{Mode: multipaxsys.Batched})
	l := rivaltest.Load{Limit: 100, Wait: time.Second}
	for i := range 600 {
		l.Leases = append(l.Leases, rivaltest.Lease{Due: time.Duration(i) * 100 * time.Millisecond, Place: us, Read: virtual.ReadExact})
	}
	var before int
	l.Faults = []rivaltest.Fault{
		{At: 20 * time.Second, Do: func(r *rivaltest.Run) {
			sides := make([]int, r.World.Places())
			sides[us] = 1
			r.World.Cut(sides)
		}},
		{At: 20*time.Second + 800*time.Millisecond, Do: func(r *rivaltest.Run) { before = r.Read }},
		{At: 30 * time.Second, Do: func(r *rivaltest.Run) {
			if r.Read != before {
				t.Errorf("%d reads are answered by a leader that is cut off", r.Read-before)
			}
			if l := s.Leader(); l == us || l < 0 {
				t.Errorf("place %d leads on the other side", l)
			}
		}},
		{At: 30 * time.Second, Do: heal},
	}
	r := drive(t, s, o, l)
	if r.Read < 450 || r.TimedOut < 80 {
		t.Errorf("%d reads answered, %d given up", r.Read, r.TimedOut)
	}
}

// TestFaults: whatever crashes and is cut, no token is lost or granted twice.
func TestFaults(t *testing.T) {
	for seed := range uint64(12) {
		for _, mode := range modes {
			t.Run(fmt.Sprint(mode, seed), func(t *testing.T) {
				s, o := build(t, multipaxsys.Options{Mode: mode})
				o.Seed = seed
				random := rand.New(rand.NewPCG(seed, 1))
				rate := map[multipaxsys.Mode]int{multipaxsys.One: 12, multipaxsys.Batched: 60}[mode]
				l := steady(rate, 100*time.Second, 3*time.Second, 40)
				for at := 5 * time.Second; at < 90*time.Second; at += time.Duration(random.IntN(8000)) * time.Millisecond {
					end := at + time.Duration(random.IntN(6000))*time.Millisecond
					if p := virtual.Place(random.IntN(5)); random.IntN(2) == 0 {
						l.Faults = append(l.Faults,
							rivaltest.Fault{At: at, Do: func(r *rivaltest.Run) {
								if r.World.Up(p) {
									crash(p)(r)
								}
							}},
							rivaltest.Fault{At: end, Do: func(r *rivaltest.Run) {
								if !r.World.Up(p) {
									restart(p)(r)
								}
							}})
						continue
					}
					sides := make([]int, len(s.Places()))
					for i := range sides {
						sides[i] = random.IntN(2)
					}
					l.Faults = append(l.Faults,
						rivaltest.Fault{At: at, Do: func(r *rivaltest.Run) { r.World.Cut(sides) }}, rivaltest.Fault{At: end, Do: heal})
				}
				l.Faults = append(l.Faults, rivaltest.Fault{At: 99 * time.Second, Do: func(r *rivaltest.Run) {
					for p := range virtual.Place(5) {
						if !r.World.Up(p) {
							restart(p)(r)
						}
					}
					heal(r)
				}})
				r := drive(t, s, o, l)
				if r.Granted < 200 || s.Counters()["leaders"] < 2 {
					t.Errorf("%d granted, %v leaders: little was tried", r.Granted, s.Counters()["leaders"])
				}
			})
		}
	}
}

// TestLateGrant: a grant is taken back if its client has given up before.
func TestLateGrant(t *testing.T) {
	s, o := build(t, multipaxsys.Options{Mode: multipaxsys.Batched})
	l := rivaltest.Load{Limit: 5000, Wait: 100 * time.Millisecond}
	for i := range 300 {
		l.Leases = append(l.Leases, rivaltest.Lease{Due: 9*time.Second + time.Duration(i)*10*time.Millisecond, Place: us})
	}
	// Without the two others in the US a round takes more than twice as long.
	l.Faults = []rivaltest.Fault{{At: 10 * time.Second, Do: crash(au, sa)}, {At: 13 * time.Second, Do: restart(au, sa)}}
	r := drive(t, s, o, l)
	if r.Granted < 80 || r.TimedOut < 80 || s.Counters()["undone"] == 0 {
		t.Errorf("%d granted, %d timed out, %v taken back", r.Granted, r.TimedOut, s.Counters()["undone"])
	}
	if s.Out() != r.Held {
		t.Errorf("%d tokens are out, clients have %d", s.Out(), r.Held)
	}
}

// TestShortCut: a lost answer comes again, also without other messages.
func TestShortCut(t *testing.T) {
	s, o := build(t, multipaxsys.Options{Mode: multipaxsys.Batched})
	l := rivaltest.Load{Limit: 5, Leases: []rivaltest.Lease{{Due: time.Second, Place: au}}}
	l.Faults = []rivaltest.Fault{
		{At: 1170 * time.Millisecond, Do: cut(s, 0, 0, 0, 1, 0)}, {At: 1320 * time.Millisecond, Do: heal},
	}
	r := drive(t, s, o, l)
	if r.Granted != 1 || r.Latency[0] < 300*time.Millisecond || r.Latency[0] > time.Second {
		t.Errorf("%d granted after %v, want it within a second and not with the first answer", r.Granted, r.Latency)
	}
}
