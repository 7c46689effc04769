package repartitioning

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/samya-db/samya/kvpart"
)

func TestLoads(t *testing.T) {
	const n = 20_000
	share := func(l *load, kind kvpart.RequestKind) float64 {
		count := 0
		for _, o := range l.ops {
			if o.kind == kind {
				count++
			}
		}
		return float64(count) / n
	}
	near := func(got, want float64) bool { return math.Abs(got-want) < .02 }
	a, d, e := smallLoad(t, "A", n), smallLoad(t, "D", n), smallLoad(t, "E", n)
	if r, w := share(a, kvpart.ReadRequest), share(a, kvpart.WriteRequest); !near(r, .5) || !near(w, .5) || len(a.names) != 1000 {
		t.Errorf("A: %v reads, %v writes, %d keys", r, w, len(a.names))
	}
	if r, w := share(d, kvpart.ReadRequest), share(d, kvpart.WriteRequest); !near(r, .95) || !near(w, .05) {
		t.Errorf("D: %v reads, %v writes", r, w)
	}
	if added := float64(len(d.names)-1000) / n; !near(added, .05) {
		t.Errorf("D adds %v keys a request", added)
	}
	if s, w := share(e, kvpart.ScanRequest), share(e, kvpart.WriteRequest); !near(s, .95) || !near(w, .05) || len(e.names) != 1000 {
		t.Errorf("E: %v scans, %v writes, %d keys", s, w, len(e.names))
	}
	lengths := make(map[uint8]int)
	for _, o := range e.ops {
		if o.kind == kvpart.ScanRequest {
			lengths[o.limit]++
		}
	}
	for length, count := range lengths {
		if length < scanMin || length > scanMax || !near(float64(count)/n, .95/7) {
			t.Errorf("E: %d scans of %d", count, length)
		}
	}
	inserting, err := newLoad(loadOptions{workload: "E", records: 1000, ops: n, inserts: true, seed: 1})
	if err != nil || !near(float64(len(inserting.names)-1000)/n, .05) {
		t.Errorf("E with inserts: %d keys, %v", len(inserting.names), err)
	}
	if !slices.Equal(e.ops, smallLoad(t, "E", n).ops) {
		t.Error("another load for the same seed")
	}
	// Every key is written before it is read.
	written := make(map[int32]bool)
	for _, o := range d.ops {
		if int(o.key) >= d.records && o.kind == kvpart.ReadRequest && !written[o.key] {
			t.Fatalf("D reads %s before it is written", d.names[o.key])
		}
		written[o.key] = written[o.key] || o.kind == kvpart.WriteRequest
	}
	if _, err := newLoad(loadOptions{workload: "F", records: 1000, ops: n}); err == nil {
		t.Error("a load that modifies was made")
	}
	if _, err := newLoad(loadOptions{workload: "Z", records: 1000, ops: 1}); err == nil {
		t.Error("an unknown load was made")
	}
}

func TestEveryRequestIsHandedOverOnce(t *testing.T) {
	for _, inFlight := range []int{16, 1000, 5000} {
		l := smallLoad(t, "E", 3000)
		f := newFake(kvpart.Options{})
		d := driverOf(t, f, l, inFlight)
		if err := d.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := make(map[kvpart.RequestKind]int64)
		for _, o := range l.ops {
			want[o.kind]++
		}
		for kind, n := range want {
			if got := f.kinds[kind].Load(); got != n {
				t.Errorf("%d in flight: %d of kind %d, want %d", inFlight, got, kind, n)
			}
		}
		if got := d.done.Load(); got != int64(len(l.ops)) {
			t.Errorf("%d done of %d", got, len(l.ops))
		}
		if top := f.top.Load(); top > int64(inFlight) {
			t.Errorf("%d under way, at most %d may be", top, inFlight)
		}
	}
}

func TestWrongAnswersFail(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		workload string
		spoil    func(*fake)
		want     error
	}{
		"failed":        {"A", func(f *fake) { f.fails = broken }, broken},
		"short value":   {"A", func(f *fake) { f.size-- }, errAnswer},
		"short in scan": {"E", func(f *fake) { f.size-- }, errAnswer},
		"too many":      {"E", func(f *fake) { f.pairs = -1 }, errAnswer},
		"refused":       {"E", func(f *fake) { f.refuse = 7 }, kvpart.ErrClosed},
	} {
		f := newFake(kvpart.Options{})
		d := driverOf(t, f, smallLoad(t, c.workload, 1000), 64)
		c.spoil(f)
		if err := d.run(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	f := newFake(kvpart.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	d := driverOf(t, f, smallLoad(t, "A", 1000), 16)
	cancel(interrupted)
	// Nothing answers, so that the driver must wait.
	d.slots[0].state.Store(busy)
	if err := d.run(ctx); !errors.Is(err, interrupted) {
		t.Errorf("%v", err)
	}
}
