package multipaxsys_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/lab/rivals/multipaxsys"
	"github.com/samya-db/samya/lab/rivals/rivaltest"
	"github.com/samya-db/samya/lab/virtual"
)

const (
	us, as, eu, au, sa = 0, 1, 2, 3, 4
	service            = 5 * time.Microsecond
	commit             = 300 * time.Microsecond
)

var modes = []multipaxsys.Mode{multipaxsys.One, multipaxsys.Batched}

func build(t *testing.T, o multipaxsys.Options) (*multipaxsys.System, virtual.Options) {
	t.Helper()
	s, err := multipaxsys.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, virtual.Options{Places: s.Places(), Network: s.Network(), Seed: 7, Service: service, Commit: commit}
}

func drive(t *testing.T, s *multipaxsys.System, o virtual.Options, l rivaltest.Load) *rivaltest.Run {
	t.Helper()
	r, err := rivaltest.Drive(s, o, l)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// steady asks for rate tokens a second, at all clients' places in turn, and holds each
// token for hold.
func steady(rate int, span, hold time.Duration, limit int) rivaltest.Load {
	l := rivaltest.Load{Limit: limit}
	for i := range int(span.Seconds() * float64(rate)) {
		l.Leases = append(l.Leases, rivaltest.Lease{
			Due: time.Duration(i) * time.Second / time.Duration(rate), Hold: hold, Place: virtual.Place(i % 5),
		})
	}
	return l
}

// cut parts the clients' places, and puts every other place on the side of its home.
func cut(s *multipaxsys.System, sides ...int) func(*rivaltest.Run) {
	return func(r *rivaltest.Run) {
		all := make([]int, r.World.Places())
		for i, home := range s.Homes() {
			all[i] = sides[home]
		}
		r.World.Cut(all)
	}
}

func heal(r *rivaltest.Run) { r.World.Heal() }

func crash(places ...virtual.Place) func(*rivaltest.Run) {
	return func(r *rivaltest.Run) {
		for _, p := range places {
			r.World.Crash(p)
			r.System.Crashed(p)
		}
	}
}

func restart(places ...virtual.Place) func(*rivaltest.Run) {
	return func(r *rivaltest.Run) {
		for _, p := range places {
			r.World.Restart(p)
			r.System.Restarted(p)
		}
	}
}

// between counts grants.
func between(r *rivaltest.Run, from, to time.Duration) int {
	n := 0
	for _, at := range r.At {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

func TestNewRefuses(t *testing.T) {
	for _, tc := range []struct {
		o    multipaxsys.Options
		want error
	}{
		{multipaxsys.Options{Mode: "two"}, multipaxsys.ErrMode},
		{multipaxsys.Options{Mode: multipaxsys.One, Leader: "eu"}, multipaxsys.ErrPlaces},
		{multipaxsys.Options{Mode: multipaxsys.One, Clients: []string{"moon"}}, multipaxsys.ErrPlaces},
		{multipaxsys.Options{Mode: multipaxsys.One, Network: &wan.Matrix{}}, multipaxsys.ErrPlaces},
	} {
		if _, err := multipaxsys.New(tc.o); !errors.Is(err, tc.want) {
			t.Errorf("New(%+v): %v, want %v", tc.o, err, tc.want)
		}
	}
	s, o := build(t, multipaxsys.Options{Mode: multipaxsys.One})
	o.Places = o.Places[:5]
	if err := s.Start(virtual.New(o), 1, nil); !errors.Is(err, multipaxsys.ErrPlaces) {
		t.Errorf("Start in a world of five places: %v", err)
	}
}

// TestOne: the lock of the single record lets a transaction through a round, however many
// wait.
func TestOne(t *testing.T) {
	for _, tc := range []struct {
		leader      string
		least, most float64
	}{{multipaxsys.West, 58, 63}, {multipaxsys.Central, 36, 40}, {multipaxsys.East, 58, 63}} {
		t.Run(tc.leader, func(t *testing.T) {
			s, o := build(t, multipaxsys.Options{Mode: multipaxsys.One, Leader: tc.leader})
			const span = 2 * time.Minute
			r := drive(t, s, o, steady(100, span, 10*time.Second, 5000))
			round := s.Counters()["round-ms"]
			if round < tc.least || round > tc.most {
				t.Errorf("a round takes %.1f ms, want %.0f to %.0f", round, tc.least, tc.most)
			}
			// All rounds are of grants and releases, in sequence.
			end := r.World.Now() - virtual.Lead
			busy := float64(s.Counters()["entries"]) * round / 1000
			if busy < .97*span.Seconds() || busy > end.Seconds() {
				t.Errorf("%.1f s of rounds in %v, want one after the other", busy, end)
			}
			rate := float64(between(r, 20*time.Second, span)) / (span - 20*time.Second).Seconds()
			if want := 1000 / round / 2; rate < .9*want || rate > 1.1*want {
				t.Errorf("%.2f grants a second, want one each other round, %.2f", rate, want)
			}
			if s.Counters()["undone"] > .02*float64(r.Granted) {
				t.Errorf("%v rounds were for grants that came too late, of %d", s.Counters()["undone"], r.Granted)
			}
		})
	}
}

// TestBatched: all requests are done, in the time of the way to the leader and back and a
// round.
func TestBatched(t *testing.T) {
	s, o := build(t, multipaxsys.Options{Mode: multipaxsys.Batched})
	l := steady(115, time.Minute, 10*time.Second, 5000)
	r := drive(t, s, o, l)
	if r.Granted != len(l.Leases) || r.Released != len(l.Leases) {
		t.Fatalf("%d of %d granted, %d released", r.Granted, len(l.Leases), r.Released)
	}
	ways := []time.Duration{0, 131e6, 132e6, 161e6, 180e6}
	took := make([][]time.Duration, len(ways))
	for _, d := range r.Latency {
		// The latency of an answer shows its place.
		for p := len(ways) - 1; p >= 0; p-- {
			if d >= ways[p]+58e6 {
				took[p] = append(took[p], d)
				break
			}
		}
	}
	for _, p := range []int{us, au, sa} {
		got := rivaltest.Quantile(took[p], .5)
		if least, most := ways[p]+58e6, ways[p]+ways[p]/20+66e6; got < least || got > most {
			t.Errorf("place %d: median %v, want %v to %v", p, got, least, most)
		}
	}
}

// TestTight: at a tight limit the system refuses, and no more than the limit is out.
func TestTight(t *testing.T) {
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			s, o := build(t, multipaxsys.Options{Mode: mode})
			r := drive(t, s, o, steady(30, time.Minute, 5*time.Second, 20))
			if r.Granted < 20 || r.Refused == 0 {
				t.Errorf("%d granted, %d refused", r.Granted, r.Refused)
			}
			if s.Out() != 0 {
				t.Errorf("%d tokens out in the end", s.Out())
			}
		})
	}
}

// TestReads: exact reads go to the leader and back without a round. Stale reads go to the
// nearest replica, or to the next if it is down.
func TestReads(t *testing.T) {
	for _, tc := range []struct {
		kind        virtual.Kind
		place       virtual.Place
		down        []virtual.Place
		least, most time.Duration
	}{
		{virtual.ReadExact, us, nil, 1e6, 2e6},
		{virtual.ReadExact, sa, nil, 180e6, 195e6},
		{virtual.ReadStale, eu, nil, 1e6, 2e6},
		{virtual.ReadStale, au, nil, 125e6, 138e6},
		{virtual.ReadStale, au, []virtual.Place{as}, 125e6 * 2, 1e9},
	} {
		s, o := build(t, multipaxsys.Options{Mode: multipaxsys.One})
		l := rivaltest.Load{Limit: 100}
		for i := range 100 {
			l.Leases = append(l.Leases, rivaltest.Lease{Due: time.Duration(i+10) * time.Second / 10, Place: tc.place, Read: tc.kind})
		}
		l.Faults = []rivaltest.Fault{{Do: crash(tc.down...)}}
		r := drive(t, s, o, l)
		if got := rivaltest.Quantile(r.Latency, .5); r.Read != 100 || got < tc.least || got > tc.most {
			t.Errorf("kind %d at place %d: %d answers, median %v, want %v to %v", tc.kind, tc.place, r.Read, got, tc.least, tc.most)
		}
	}
}

// TestSnapshot: a replica that was away for longer than the log reaches catches up.
func TestSnapshot(t *testing.T) {
	s, o := build(t, multipaxsys.Options{Mode: multipaxsys.Batched})
	l := steady(400, 90*time.Second, time.Second, 5000)
	l.Faults = []rivaltest.Fault{{At: 5 * time.Second, Do: crash(eu)}, {At: 80 * time.Second, Do: restart(eu)}}
	drive(t, s, o, l)
	if s.Counters()["snapshots"] == 0 {
		t.Error("no snapshot was sent")
	}
	if at := s.Behind(); at > 0 {
		t.Errorf("a replica is %d entries behind in the end", at)
	}
}

// TestSame: the same seed gives the same run.
func TestSame(t *testing.T) {
	run := func() string {
		s, o := build(t, multipaxsys.Options{Mode: multipaxsys.Batched})
		l := steady(50, 40*time.Second, 3*time.Second, 100)
		l.Faults = []rivaltest.Fault{{At: 10 * time.Second, Do: crash(us)}, {At: 20 * time.Second, Do: restart(us)}}
		r := drive(t, s, o, l)
		return fmt.Sprint(s.Counters(), r.Latency)
	}
	if a, b := run(), run(); a != b {
		t.Error("two runs of a seed differ")
	}
}
