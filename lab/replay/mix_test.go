package replay

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/lab/replay/sites"
	"github.com/samya-db/samya/lab/virtual"
)

// TestReads: a share of requests are reads, and the number of requests stays the same. A
// stale read has its answer from the site alone at once, an exact read after the farthest
// round trip.
func TestReads(t *testing.T) {
	race.OneGoroutine(t)
	d := draw(t, "fit", 30)
	all := d.Shape().Transactions
	for _, setting := range []string{"default", "paper", "star", "transfer"} {
		s, err := SettingByName(setting)
		if err != nil {
			t.Fatal(err)
		}
		for _, exact := range []bool{false, true} {
			mixed, err := d.WithReads(.4, exact, 7)
			if err != nil {
				t.Fatal(err)
			}
			if asked := mixed.Shape().Transactions + len(mixed.Reads); asked != all {
				t.Errorf("%d are asked instead of %d", asked, all)
			}
			if share := float64(len(mixed.Reads)) / float64(all); math.Abs(share-.4) > .03 {
				t.Errorf("a share of %v", share)
			}
			r, err := Run(Options{Demand: mixed, Limit: 2000}, sites.New(s.Configure))
			if err != nil {
				t.Fatal(err)
			}
			if r.ReadsAsked != len(mixed.Reads) || r.Reads < r.ReadsAsked*999/1000 || r.Requests != len(mixed.Leases) {
				t.Errorf("%s, exact %v: %+v", setting, exact, r)
			}
			reads := latencyOfKind(r)
			farthest := milliseconds(wan.Samya().RoundTrip("us", "sa"))
			if slow := reads.P50 > farthest; slow != exact || !exact && reads.Max > 3 {
				t.Errorf("%s, exact %v: %+v", setting, exact, reads)
			}
		}
	}
}

// latencyOfKind is the latency of the sample's reads.
func latencyOfKind(r *Result) Latency {
	var reads []time.Duration
	for _, p := range r.Sample {
		if p.Kind >= virtual.ReadStale {
			reads = append(reads, time.Duration(p.Latency*float64(time.Millisecond)))
		}
	}
	return latencyOf(reads)
}

// TestAllReads: all requests can be reads, and an exact read has no answer across a cut.
func TestAllReads(t *testing.T) {
	d, err := draw(t, "fit", 12).WithReads(1, true, 1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(Options{Demand: d, Faults: []Fault{Cut(30*time.Second, 0, 0, 0, 1, 1)}}, sites.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests != 0 || r.ReadsAsked != len(d.Reads) || r.Reads == 0 || r.Counters["reads inexact"] != float64(r.ReadsAsked-r.Reads) {
		t.Errorf("%+v", r)
	}
	for i, w := range r.Windows {
		if at := time.Duration(i) * WindowSpan; (w.Committed == 0) != (at >= 30*time.Second) && at != 30*time.Second {
			t.Errorf("at %v %d reads are answered", at, w.Committed)
		}
	}
	for _, share := range []float64{-.1, 1.1, math.NaN()} {
		if _, err := d.WithReads(share, false, 1); err == nil {
			t.Errorf("a share of %v", share)
		}
	}
}

// TestHistoryOfReads: sites remember as much less as there are fewer leases, in
// either order of asking.
func TestHistoryOfReads(t *testing.T) {
	one := func() *Demand {
		d, err := DrawPlaces("fit", 1, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := one()
	if err := first.Recall(); err != nil {
		t.Fatal(err)
	}
	want := first.History[0][100].Net * .25
	first, err := first.WithReads(.75, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	second, err := one().WithReads(.75, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Recall(); err != nil {
		t.Fatal(err)
	}
	if got := first.History[0][100].Net; got != want || second.History[0][100].Net != want {
		t.Errorf("%v and %v instead of %v", got, second.History[0][100].Net, want)
	}
}

// TestStretch: the same demand comes, more slowly.
func TestStretch(t *testing.T) {
	d := draw(t, "fit", 12)
	slow, err := d.Stretch(4)
	if err != nil {
		t.Fatal(err)
	}
	if slow.Span != 4*d.Span || len(slow.Leases) != len(d.Leases) || slow.bin() != 20*time.Second {
		t.Errorf("%v, %d leases, bins of %v", slow.Span, len(slow.Leases), slow.bin())
	}
	for i, l := range d.Leases {
		if want := (Lease{Due: 4 * l.Due, Hold: turnaround + 4*(l.Hold-turnaround), Place: l.Place}); slow.Leases[i] != want {
			t.Fatalf("%+v becomes %+v", l, slow.Leases[i])
		}
	}
	if err := slow.Recall(); err != nil {
		t.Fatal(err)
	}
	a, err := Run(Options{Demand: d}, sites.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Run(Options{Demand: slow}, sites.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	if ratio := a.TPS() / b.TPS(); a.Refused+b.Refused != 0 || ratio < 3.9 || ratio > 4.1 {
		t.Errorf("%v times as many a second", ratio)
	}
	if _, err := d.Stretch(0); err == nil {
		t.Error("stretched to nothing")
	}
}

// TestPlaces: more places than regions serve, each with a demand of its own; two places
// of a region are near each other.
func TestPlaces(t *testing.T) {
	d, err := DrawPlaces("fit", 1, 24, 8)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Recall(); err != nil {
		t.Fatal(err)
	}
	five := draw(t, "fit", 24)
	of := func(d *Demand, p virtual.Place) (leases []Lease) {
		for _, l := range d.Leases {
			if l.Place == p {
				l.Place = 0
				leases = append(leases, l)
			}
		}
		return leases
	}
	if !slices.Equal(of(d, 3), of(five, 3)) || slices.Equal(of(d, 1), of(d, 6)) || len(d.History) != 8 {
		t.Error("place 6 has the demand of place 1, or place 3 another one than among five")
	}
	r, err := Run(Options{Demand: d, Limit: 8 * 300}, sites.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Places) != 8 || r.Places[7] != "eu-2" || len(r.Peaks) != 8 || r.Peaks["eu-2"] == 0 || r.Redistributions() == 0 {
		t.Errorf("%+v", r)
	}
	for _, n := range []int{0, MaxPlaces + 1} {
		if _, err := DrawPlaces("fit", 1, 24, n); err == nil {
			t.Errorf("%d places", n)
		}
	}
}
