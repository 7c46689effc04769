package replay

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/lab/replay/sites"
	"github.com/samya-db/samya/lab/virtual"
)

// faulty runs a demand under faults.
func faulty(t *testing.T, d *Demand, setting string, faults ...Fault) *Result {
	t.Helper()
	s, err := SettingByName(setting)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(Options{Demand: d, Faults: faults, Limit: 3000}, sites.New(s.Configure))
	if err != nil {
		t.Fatalf("%s: %v", setting, err)
	}
	return r
}

// TestCrash: a crashed place commits nothing, and has its books again when it restarts;
// the other places go on; no token is lost in the end.
func TestCrash(t *testing.T) {
	d := draw(t, "fit", 60)
	for _, setting := range []string{"default", "paper", "star", "transfer", "instance"} {
		r := faulty(t, d, setting, Crash(60*time.Second, 1), Restart(150*time.Second, 1), Crash(200*time.Second, 3))
		if again := faulty(t, d, setting, Crash(60*time.Second, 1), Restart(150*time.Second, 1), Crash(200*time.Second, 3)); !reflect.DeepEqual(r, again) {
			t.Errorf("%s: the same run gives another result", setting)
		}
		if r.Unasked == 0 || r.Requests+r.Unasked != len(d.Leases) {
			t.Errorf("%s: %d acquires are made, %d not, of %d", setting, r.Requests, r.Unasked, len(d.Leases))
		}
		for i, w := range r.Windows {
			at := time.Duration(i) * WindowSpan
			down := map[int]bool{1: at >= 60*time.Second && at < 150*time.Second, 3: at >= 200*time.Second}
			for p, committed := range w.Places {
				if (committed == 0) != down[p] {
					t.Errorf("%s: at %v place %d commits %d", setting, at, p, committed)
				}
			}
		}
	}
}

// TestHeldForGood: tokens that clients held as they crashed stay out.
func TestHeldForGood(t *testing.T) {
	d := &Demand{Span: 20 * time.Second, Leases: []Lease{
		{Hold: 5 * time.Second},
		{Hold: 5 * time.Second},
		{Due: time.Second, Hold: time.Second},
		{Due: 10 * time.Second, Hold: time.Second},
		{Due: 10 * time.Second, Hold: time.Second},
	}}
	for _, setting := range []string{"refuse", "default"} {
		s, err := SettingByName(setting)
		if err != nil {
			t.Fatal(err)
		}
		// Three tokens are at the site at first; two were held in the crash.
		r, err := Run(Options{Demand: d, Limit: 15, Faults: []Fault{Crash(4*time.Second, 0), Restart(6*time.Second, 0)}}, sites.New(s.Configure))
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{"refuse": 1, "default": 0}[setting]; r.Refused != want || r.Granted != 5-want || r.Releases != 3-want {
			t.Errorf("%s: %+v", setting, r)
		}
	}
}

// TestLost: a request without an answer because of a crash is lost; its token may be out
// or not.
func TestLost(t *testing.T) {
	// The crash comes while the site makes the acquire durable, and after that: in
	// both cases nobody is told.
	for _, at := range []time.Duration{600 * time.Microsecond, 750 * time.Microsecond} {
		d := &Demand{Span: time.Second, Leases: []Lease{{Hold: time.Minute}, {Due: 100 * time.Millisecond, Place: 2, Hold: time.Minute}}}
		r := faulty(t, d, "default", Crash(at, 0))
		if r.Requests != 2 || r.Lost != 1 || r.Granted != 1 {
			t.Errorf("%+v", r)
		}
	}
}

// TestCut: both sides of a cut go on with their own tokens, and requests under way are
// settled when the cut heals.
func TestCut(t *testing.T) {
	d := draw(t, "tight", 60)
	for _, setting := range []string{"default", "paper", "star", "transfer"} {
		r := faulty(t, d, setting, Cut(60*time.Second, 0, 0, 0, 1, 1), Heal(200*time.Second))
		if r.Requests != len(d.Leases) || r.Unasked+r.Lost != 0 {
			t.Errorf("%s: %+v", setting, r)
		}
		for i, w := range r.Windows {
			for p, committed := range w.Places {
				if committed == 0 {
					t.Errorf("%s: in window %d place %d commits nothing", setting, i, p)
				}
			}
		}
	}
}

// TestOneAlive: the last site goes on serving its region.
func TestOneAlive(t *testing.T) {
	d := draw(t, "fit", 60)
	var faults []Fault
	for p := range 4 {
		faults = append(faults, Crash(time.Duration(p+1)*30*time.Second, virtual.Place(p)))
	}
	r := faulty(t, d, "star", faults...)
	for i, w := range r.Windows {
		if w.Places[4] == 0 || w.Committed < w.Places[4] {
			t.Errorf("window %d: %+v", i, w.Places)
		}
	}
}

// TestFaultsAreChecked: Run refuses invalid faults, and fails a system that forgets
// grants from before a crash.
func TestFaultsAreChecked(t *testing.T) {
	d := &Demand{Span: 10 * time.Second, Leases: []Lease{{Hold: time.Minute}}}
	for _, f := range []Fault{{}, Crash(0, 5), Crash(0, -1), Cut(0, 1, 1), Cut(0, 0, 0, 0, 1, 1, 1)} {
		if _, err := Run(Options{Demand: d, Faults: []Fault{f}}, &counter{}); err == nil || errors.Is(err, ErrUnsound) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	_, err := Run(Options{Demand: d, Faults: []Fault{Crash(time.Second, 0)}}, &counter{forgets: true})
	if !errors.Is(err, ErrUnsound) || !strings.Contains(err.Error(), "0 tokens are out by the books, clients hold 1") {
		t.Errorf("a system that forgets: %v", err)
	}
}
