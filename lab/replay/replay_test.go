package replay

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/race"
	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/lab/replay/sites"
	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/policy"
)

// play runs a demand under a setting.
func play(t *testing.T, d *Demand, setting string, limit core.Tokens) *Result {
	t.Helper()
	s, err := SettingByName(setting)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(Options{Demand: d, Limit: limit}, sites.New(s.Configure))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestShortReplays: every setting plays five minutes soundly, the same way each
// time, and loses nothing of the demand.
func TestShortReplays(t *testing.T) {
	race.OneGoroutine(t)
	d := draw(t, "fit", 60)
	// Scarce enough for redistributions within minutes.
	const limit = 3000
	for _, s := range Settings() {
		r := play(t, d, s.Name, limit)
		if r.Requests != len(d.Leases) || r.Granted+r.Refused+r.TimedOut != r.Requests || r.Releases == 0 {
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

// TestTraining: sites with models trained on the days before know the coming demand.
func TestTraining(t *testing.T) {
	race.OneGoroutine(t)
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

// TestLatency: an answer takes the way to the site and back and a commit. Requests that
// come during a commit share the next.
func TestLatency(t *testing.T) {
	d := &Demand{Span: time.Second}
	for _, us := range []int64{0, 100, 200, 5000} {
		d.Leases = append(d.Leases, Lease{Due: time.Duration(us * 1000), Hold: time.Minute})
	}
	r := play(t, d, "refuse", 15)
	// 1.302 ms for the first and the last; the others wait for the commit of the
	// first. The last finds no token.
	want := Latency{Mean: 1.377, P50: 1.302, P90: 1.502, P95: 1.502, P99: 1.502, P999: 1.502, Max: 1.502}
	if !near(r.Latency, want) || r.Refused != 1 || r.Granted != 3 {
		t.Errorf("%+v", r)
	}
	if r.Waited != 0 || r.Releases != 0 || r.TPS() != 3 || r.Peaks["us"] != 3 {
		t.Errorf("%+v", r)
	}
}

// TestPlenty: requests that come while nearly all tokens are out do not count against a
// system. Of all other requests, refusals and latencies count.
func TestPlenty(t *testing.T) {
	d := &Demand{Span: 10 * time.Second}
	for range 5 {
		d.Leases = append(d.Leases, Lease{Hold: time.Minute})
	}
	if r := play(t, d, "refuse", 20); r.Refused != 1 || r.Plenty.Requests != 5 || r.Plenty.Refused != 1 || !near(r.Plenty.Latency, r.Latency) {
		t.Errorf("one site's part is out: %+v", r)
	}
	for i := range regions {
		d.Leases = append(d.Leases, slices.Repeat([]Lease{{Due: time.Second, Place: virtual.Place(i), Hold: time.Minute}}, 5)...)
	}
	// The four tokens of US were granted before. Grants elsewhere count once they are
	// durable, so that all requests that come with them find tokens plenty.
	r := play(t, d, "refuse", 20)
	if r.Refused != 10 || r.Plenty.Requests != 30 || r.Plenty.Refused != 10 {
		t.Errorf("all becomes used: %+v", r)
	}
	d.Leases = append(d.Leases, slices.Repeat([]Lease{{Due: 2 * time.Second, Hold: time.Minute}}, 7)...)
	if r := play(t, d, "refuse", 20); r.Refused != 17 || r.Plenty.Requests != 30 || r.Plenty.Refused != 10 {
		t.Errorf("all is used: %+v", r)
	}
}

func near(a, b Latency) bool {
	same := func(x, y float64) bool { return math.Abs(x-y) < 1e-9 }
	return same(a.Mean, b.Mean) && same(a.P50, b.P50) && same(a.P90, b.P90) && same(a.P95, b.P95) &&
		same(a.P99, b.P99) && same(a.P999, b.P999) && same(a.Max, b.Max)
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
	// Nobody has tokens for three of these acquires: they wait, and are refused. (The
	// paper's policy would refuse more: it does not grant a part of a need.)
	for range 8 {
		d.Leases = append(d.Leases, Lease{Due: 2 * time.Second, Hold: time.Minute})
	}
	if r := play(t, d, "reactive", 5); r.Refused != 3 || r.Waited < 4 || r.GaveUp == 0 || r.BeyondOracle != 0 {
		t.Errorf("%+v", r)
	}
}

// counter is a system with a single counter that answers at once, and may be spoilt.
type counter struct {
	limit, out int
	answer     func(*virtual.Request, virtual.Outcome)
	// generous grants beyond the limit, silent does not answer releases, and twice
	// answers acquires twice. off is the error of its books. forgets makes it forget in a
	// crash that tokens are out.
	generous, silent, twice, forgets bool
	off                              int
	check                            error
}

func (c *counter) Start(_ *virtual.World, limit int, answer func(*virtual.Request, virtual.Outcome)) error {
	c.limit, c.answer = limit, answer
	return nil
}

func (c *counter) Handle(r *virtual.Request) {
	switch {
	case r.Kind == virtual.Release && c.silent:
		return
	case r.Kind == virtual.Release:
		c.out--
	case c.out >= c.limit && !c.generous:
		c.answer(r, virtual.Refused)
		return
	default:
		c.out++
	}
	c.answer(r, virtual.Granted)
	if c.twice {
		c.answer(r, virtual.Granted)
	}
}

func (c *counter) Crashed(virtual.Place) {
	if c.forgets {
		c.out = 0
	}
}

func (*counter) Restarted(virtual.Place)      {}
func (c *counter) Out() int                   { return c.out + c.off }
func (c *counter) Check() error               { return c.check }
func (*counter) Counters() map[string]float64 { return map[string]float64{"seen": 7} }

// TestUnsound: a run that hands out too many tokens, or forgets a token, fails.
func TestUnsound(t *testing.T) {
	d := &Demand{Span: time.Second, Leases: []Lease{{Hold: time.Minute}, {Hold: time.Minute}, {Hold: time.Millisecond}}}
	for what, system := range map[string]*counter{
		"2 at clients, the limit is 1": {generous: true},
		"1 tokens are out by":          {off: -1},
		"no answer":                    {silent: true},
		"two answers":                  {twice: true},
		"are lost":                     {check: errors.New("tokens are lost")},
	} {
		o := Options{Demand: d, Limit: 3}
		if system.generous {
			o.Limit = 1
		}
		if _, err := Run(o, system); !errors.Is(err, ErrUnsound) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	r, err := Run(Options{Demand: d, Limit: 2}, &counter{})
	if err != nil || r.Granted != 2 || r.Refused != 1 || r.Counters["seen"] != 7 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = Run(Options{Demand: d, Limit: 1, Unlimited: true}, &counter{generous: true}); err != nil || r.Granted != 3 || r.Releases != 1 || r.Beyond != 2 || r.GrantedBeyond != 2 {
		t.Errorf("without a limit: %+v, %v", r, err)
	}
	broken := sites.New(func(c *core.Config) { c.Offer = "none" })
	if _, err := Run(Options{Demand: draw(t, "fit", 1)}, broken); !errors.Is(err, policy.ErrUnknownName) {
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
