package replay

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/site/core"
)

// play runs a demand under a setting.
func play(t *testing.T, d *Demand, setting string, limit core.Tokens) *Result {
	t.Helper()
	s, err := SettingByName(setting)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(Options{Demand: d, Configure: s.Configure, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestShortReplays: every setting plays five minutes soundly, the same way each
// time, and loses nothing of the demand.
func TestShortReplays(t *testing.T) {
	d := draw(t, "fit", 60)
	// Scarce enough for redistributions within minutes.
	const limit = 3000
	for _, s := range Settings() {
		r := play(t, d, s.Name, limit)
		if r.Requests != len(d.Leases) || r.Granted+r.Refused != r.Requests || r.Releases == 0 {
			t.Errorf("%s: %+v", s.Name, r)
		}
		if again := play(t, d, s.Name, limit); !reflect.DeepEqual(r, again) {
			t.Errorf("%s: the same run gives\n%+v, then\n%+v", s.Name, r, again)
		}
		moves := r.Redistributions() > 0 && r.Applied > 0 && r.Messages > 0 && r.TokensMoved > 0
		if still := s.Name == "refuse"; moves == still {
			t.Errorf("%s: %+v", s.Name, r)
		}
	}
}

// TestTraining: sites whose models have seen the days before know what is coming.
func TestTraining(t *testing.T) {
	d := draw(t, "batch", 120)
	untrained := play(t, d, "reactive", 0)
	if err := d.Recall(); err != nil {
		t.Fatal(err)
	}
	trained := play(t, d, "reactive", 0)
	if trained.Waited == 0 || float64(trained.Waited) > .8*float64(untrained.Waited) {
		t.Errorf("%d of %d acquires waited for trained sites, %d for untrained ones", trained.Waited, trained.Requests, untrained.Waited)
	}
	if again := play(t, d, "reactive", 0); !reflect.DeepEqual(trained, again) {
		t.Errorf("the same run gives\n%+v, then\n%+v", trained, again)
	}
}

// TestLatency: an answer takes the way to the site and back and a commit, and
// what comes during a commit shares the next.
func TestLatency(t *testing.T) {
	d := &Demand{Span: time.Second}
	for _, us := range []int64{0, 100, 200, 5000} {
		d.Leases = append(d.Leases, Lease{Due: time.Duration(us * 1000), Hold: time.Minute})
	}
	r := play(t, d, "refuse", 15)
	// 1.3 ms for the first and the last but one; the others wait for the commit
	// of the first, and the last for tokens.
	if want := (Latency{P50: 1.3, P99: 1.5, P999: 1.5, Max: 1.5}); !near(r.Latency, want) || r.Refused != 1 || r.Granted != 3 {
		t.Errorf("%+v", r)
	}
	if r.Waited != 0 || r.Releases != 0 || r.TPS() != 3 || r.Peaks["us"] != 3 {
		t.Errorf("%+v", r)
	}
}

func near(a, b Latency) bool {
	same := func(x, y float64) bool { return math.Abs(x-y) < 1e-9 }
	return same(a.P50, b.P50) && same(a.P99, b.P99) && same(a.P999, b.P999) && same(a.Max, b.Max)
}

// TestWaiting: an acquire that the escrow cannot serve waits for a round of the
// protocol, counts as waiting, and its token is released once it has come.
func TestWaiting(t *testing.T) {
	d := &Demand{Span: 3 * time.Second, Leases: []Lease{{Hold: time.Second}, {Hold: time.Second}, {Hold: time.Millisecond}}}
	r := play(t, d, "paper-reactive", 10)
	// The nearest others are a round trip of 131 ms away.
	if r.Granted != 3 || r.Waited != 1 || r.Latency.Max < 131 || r.Latency.Max > 450 || r.Latency.P50 > 2 {
		t.Errorf("%+v", r)
	}
	if r.Begun["majority reactive"] != 1 || r.Redistributions() != 1 || r.Applied != 5 || r.Failed+r.GaveUp != 0 {
		t.Errorf("%+v", r)
	}
	if r.Releases != 3 || r.TokensMoved < 1 || r.Messages < 12 {
		t.Errorf("%+v", r)
	}
	// Nobody has tokens for three of these: they wait, and are refused. (The
	// paper's policy would refuse more: it does not grant a part of what is wanted.)
	for range 8 {
		d.Leases = append(d.Leases, Lease{Due: 2 * time.Second, Hold: time.Minute})
	}
	if r := play(t, d, "reactive", 5); r.Refused != 3 || r.Waited < 4 || r.GaveUp == 0 || r.BeyondOracle != 0 {
		t.Errorf("%+v", r)
	}
}

// TestUnsound: a run that hands out too much, or forgets a token, fails.
func TestUnsound(t *testing.T) {
	for what, spoil := range map[string]func(r *run){
		"limit":     func(r *run) { r.o.Limit = 1 },
		"by its":    func(r *run) { r.sites[2].out++ },
		"no answer": func(r *run) { r.pending++ },
		"10 tokens": func(r *run) { r.o.Limit = 11 },
		"0 granted": func(r *run) { r.result.Granted = 0 },
		"not_found": func(r *run) {
			r.sites[0].replied(&core.Reply{Call: &r.calls[0], Answer: core.Answer{Code: core.NotFound}})
		},
	} {
		d := &Demand{Span: time.Second, Leases: []Lease{{Hold: time.Minute}, {Hold: time.Minute}}}
		r, err := newRun(Options{Demand: d, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		r.create()
		if what == "limit" {
			spoil(r)
		}
		r.play()
		if what != "limit" {
			spoil(r)
		}
		r.balance()
		if !errors.Is(r.err, ErrUnsound) || !strings.Contains(r.err.Error(), what) {
			t.Errorf("%s: %v", what, r.err)
		}
	}
	if _, err := Run(Options{Demand: draw(t, "fit", 1), Configure: func(c *core.Config) { c.Offer = "none" }}); !errors.Is(err, core.ErrUnknownName) {
		t.Errorf("an unknown module: %v", err)
	}
}

func TestSummarize(t *testing.T) {
	of := func(workload, setting string, refused, waited int, begun map[string]int) *Result {
		return &Result{
			Workload: workload, Setting: setting, Requests: 100, Refused: refused, Waited: waited, Span: time.Second, Begun: begun,
		}
	}
	list := Summarize([]*Result{
		of("a", "x", 2, 0, map[string]int{"majority reactive": 3}), of("a", "x", 4, 0, nil), of("a", "y", 9, 7, nil), of("a", "y", 1, 7, nil),
		of("b", "y", 5, 1, nil),
	})
	if len(list) != 3 {
		t.Fatalf("%+v", list)
	}
	x, y, b := list[0], list[1], list[2]
	if x.Seeds != 2 || x.Median["refused"] != 3 || x.Ratio["refused"] != 1 || x.Begun["majority reactive"] != 1.5 {
		t.Errorf("%+v", x)
	}
	if _, ok := y.Ratio["waited_percent"]; ok || math.Abs(y.Median["waited_percent"]-7) > 1e-12 || y.Median["refused"] != 5 || math.Abs(y.Ratio["refused"]-5./3) > 1e-12 {
		t.Errorf("%+v", y)
	}
	if b.Workload != "b" || b.Setting != "y" || b.Ratio["refused"] != 1 {
		t.Errorf("%+v", b)
	}
}
