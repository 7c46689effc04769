package inspection_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/inspection"
	"github.com/samya-db/samya/internal/testfuzz"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

func site(up int64, served uint64, operations ...uint64) inspection.Site {
	s := inspection.Site{Site: "us", Known: true, UpMS: up, Served: served, Imbalance: 9}
	for _, n := range operations {
		s.Partitions = append(s.Partitions, inspection.Partition{Entities: 3, Operations: n, Queued: 2})
	}
	return s
}

func TestSince(t *testing.T) {
	split := func(s inspection.Site, operations ...uint64) inspection.Site {
		for i, n := range operations {
			s.Split = append(s.Split, inspection.Split{Name: string(rune('a' + i)), Left: []int64{1}, Operations: n})
		}
		return s
	}
	now := split(site(5000, 30, 20, 12), 7, 9)
	now.Cross, now.Passed = 2, 4
	now.Repartitioning = inspection.Repartitioning{
		On: true, Computed: 9, Applied: 5, Skipped: 4, Failed: 3, Moved: 70, Tracking: .5, LastCut: .1, LastCutMS: 3,
		Pause: inspection.Pause{Count: 5, P50: 1, P99: 2, Max: 3},
	}
	before := split(site(3000, 20, 10, 10), 8)
	before.Cross, before.Passed = 1, 1
	before.Repartitioning = inspection.Repartitioning{Computed: 7, Applied: 4, Skipped: 3, Failed: 1, Moved: 30, Pause: inspection.Pause{Count: 4}}

	want := site(2000, 10, 10, 2)
	want.Cross, want.Passed, want.Imbalance = 1, 3, 2*10./12
	want.Repartitioning = now.Repartitioning
	want.Repartitioning.Computed, want.Repartitioning.Applied, want.Repartitioning.Skipped = 2, 1, 1
	want.Repartitioning.Failed, want.Repartitioning.Moved = 2, 40
	// The first was split anew in between, the second is for the first time.
	want = split(want, 7, 9)

	unknown := before
	unknown.Known = false
	gone := now
	gone.Known = false
	idle := split(site(9000, 30, 20, 12), 7, 9)
	resting := split(site(4000, 0, 0, 0), 0, 0)
	resting.Imbalance = 0
	for _, c := range []struct {
		what              string
		now, before, want inspection.Site
	}{
		{"what was done in between", now, before, want},
		{"nothing was known before", now, unknown, now},
		{"nothing is known", gone, before, gone},
		{"the first look", now, inspection.Site{}, now},
		{"started again", now, site(6000, 1, 1, 1), now},
		{"started again with more partitions", now, site(100, 1, 1), now},
		{"nothing was done", idle, split(site(5000, 30, 20, 12), 7, 9), resting},
	} {
		if d := cmp.Diff(c.want, c.now.Since(c.before)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, d)
		}
	}
	if now.Partitions[0].Operations != 20 || now.Split[0].Operations != 7 {
		t.Errorf("the look itself was changed: %+v", now)
	}
	other := inspection.Site{Site: "eu", Problem: "silent"}
	got := inspection.Status{Sites: []inspection.Site{other, now}}.Since(inspection.Status{Sites: []inspection.Site{before}})
	if d := cmp.Diff(inspection.Status{Sites: []inspection.Site{other, want}}, got); d != "" {
		t.Errorf("of several sites (-want +got):\n%s", d)
	}
}

// FuzzOf: the JSON of every answer of a site reads back as it was.
func FuzzOf(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add("us", int64(1), uint64(2), 1.5, int64(-3), 2)
	f.Add("", int64(math.MinInt64), uint64(math.MaxUint64), math.NaN(), int64(math.MaxInt64), 0)
	f.Add("\xff", int64(-1), uint64(0), math.Inf(-1), int64(0), 70)
	f.Fuzz(func(t *testing.T, text string, seconds int64, n uint64, share float64, left int64, parts int) {
		time := &durationpb.Duration{Seconds: seconds, Nanos: int32(seconds)}
		m := &samyav1.SiteInspection{
			Site: text, Problem: text, Known: n%2 == 0, Up: time, Served: n, Cross: n, Passed: n, Imbalance: share,
			Repartitioning: &samyav1.Repartitioning{
				Computed: n, Tracking: share, LastCut: share, LastCutTime: time, Pause: &samyav1.SwitchPause{Count: n, P50: time, P99: time, Max: time},
			},
			Split: []*samyav1.SplitEntity{{Name: text, Left: []int64{left}, Operations: n}, {}, nil},
		}
		for range min(max(parts, 0), 100) {
			m.Partitions = append(m.Partitions, &samyav1.Partition{Entities: n, Operations: n, Queued: n})
		}
		s := inspection.Of(&samyav1.InspectSitesResponse{Complete: true, Sites: []*samyav1.SiteInspection{m, {}, nil}})
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		var again inspection.Status
		if err := json.Unmarshal(b, &again); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if got := again.Sites[0]; got.Served != n || got.Split[0].Left[0] != left || len(got.Partitions) != len(m.GetPartitions()) {
			t.Fatalf("%+v was told as %s", m, b)
		}
		_ = s.Since(again)
	})
}

// TestOf: each field of an answer is told as that field, in the unit of its name.
// Nothing of a kind is an empty list in JSON.
func TestOf(t *testing.T) {
	answer := &samyav1.InspectSitesResponse{Complete: true, Sites: []*samyav1.SiteInspection{
		{
			Site: "us", Known: true, Up: durationpb.New(1500 * time.Millisecond), Served: 1, Cross: 2, Passed: 3, Imbalance: 1.5,
			Partitions: []*samyav1.Partition{{Entities: 4, Operations: 5, Queued: 6}},
			Repartitioning: &samyav1.Repartitioning{
				On: true, Computed: 7, Applied: 8, Skipped: 9, Failed: 10, Moved: 11, Tracking: .25, LastCut: .125,
				LastCutTime: durationpb.New(2500 * time.Microsecond),
				Pause: &samyav1.SwitchPause{
					Count: 12, P50: durationpb.New(13 * time.Microsecond), P99: durationpb.New(14 * time.Microsecond), Max: durationpb.New(15 * time.Microsecond),
				},
			},
			Split: []*samyav1.SplitEntity{{Name: "acme", Left: []int64{16, 17}, Operations: 18}, {Name: "none"}},
		},
		{Site: "eu", Problem: "silent"},
	}}
	got := inspection.Of(answer)
	want := inspection.Status{Complete: true, Sites: []inspection.Site{
		{
			Site: "us", Known: true, UpMS: 1500, Served: 1, Cross: 2, Passed: 3, Imbalance: 1.5,
			Partitions: []inspection.Partition{{Entities: 4, Operations: 5, Queued: 6}},
			Repartitioning: inspection.Repartitioning{
				On: true, Computed: 7, Applied: 8, Skipped: 9, Failed: 10, Moved: 11, Tracking: .25, LastCut: .125, LastCutMS: 2.5,
				Pause: inspection.Pause{Count: 12, P50: 13, P99: 14, Max: 15},
			},
			Split: []inspection.Split{{Name: "acme", Left: []int64{16, 17}, Operations: 18}, {Name: "none", Left: []int64{}}},
		},
		{Site: "eu", Problem: "silent", Partitions: []inspection.Partition{}, Split: []inspection.Split{}},
	}}
	// Times come from seconds.
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	b, err := json.Marshal(inspection.Of(&samyav1.InspectSitesResponse{Sites: []*samyav1.SiteInspection{{Site: "eu"}}}))
	if err != nil || strings.Contains(string(b), "null") {
		t.Errorf("%s, %v", b, err)
	}
	if b, err := json.Marshal(inspection.Of(nil)); err != nil || string(b) != `{"complete":false,"sites":[]}` {
		t.Errorf("no answer: %s, %v", b, err)
	}
	answer.Sites[0].Split[0].Left[0] = 99
	if got.Sites[0].Split[0].Left[0] != 16 {
		t.Error("what was told changes with the message")
	}
	if since := got.Since(inspection.Status{}); !since.Complete {
		t.Error("a whole look counts as a part of one because of the earlier one")
	}
}
