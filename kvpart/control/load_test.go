package control

import (
	"fmt"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/kvpart/cut"
	"github.com/samya-db/samya/kvpart/libra"
	"github.com/samya-db/samya/kvpart/workload"
)

// spend uses keys at a cost of each.
func (w *world) spend(load workload.Load, is ...int) {
	ticket, ok := w.c.Pick()
	if !ok {
		return
	}
	es := make([]*key, len(is))
	for i, at := range is {
		es[i] = w.keys.sorted[at]
	}
	w.c.Record(ticket, es, load)
}

// place puts key i on partition at(i).
func (w *world) place(at func(i int) int) {
	for i, e := range w.keys.sorted {
		e.at, e.next = at(i), at(i)
	}
}

// The loads of the two kinds of requests: the first takes time, the second writes.
var (
	heavyCPU  = workload.Load{20_000, 100}
	heavyDisk = workload.Load{2_000, 4000}
)

// halves uses a key of the first half at the cost of heavyCPU, or of the second half at
// the cost of heavyDisk, and its pair with it.
func (w *world) halves(n int, shift *int) func() {
	return func() {
		for range n {
			i := int(w.rand()>>8) % (len(w.keys.sorted) / 2)
			load := heavyCPU
			if 2*i >= len(w.keys.sorted)/2 {
				load = heavyDisk
			}
			at := (2*i + *shift) % len(w.keys.sorted)
			w.spend(load, at, at+1)
		}
	}
}

// loads are the relative loads of partitions by the map as it is.
func (w *world) loads(shift int) []libra.Load {
	n := len(w.keys.sorted)
	all := make([]libra.Load, w.keys.k)
	var sum libra.Load
	for i := range n {
		load := heavyCPU
		if i >= n/2 {
			load = heavyDisk
		}
		at := w.keys.sorted[(i+shift)%n].at
		for d := range load {
			all[at][d] += float64(load[d])
			sum[d] += float64(load[d])
		}
	}
	for i := range all {
		for d := range sum {
			all[i][d] *= float64(w.keys.k) / sum[d]
		}
	}
	return all
}

// most returns the largest load in a dimension.
func most(loads []libra.Load, d libra.Dimension) float64 {
	m := 0.
	for _, l := range loads {
		m = max(m, l[d])
	}
	return m
}

// runs counts the runs of neighbouring keys on the same partition.
func (w *world) runs() int {
	n := 1
	for i := 1; i < len(w.keys.sorted); i++ {
		if w.keys.sorted[i].at != w.keys.sorted[i-1].at {
			n++
		}
	}
	return n
}

// TestBothLoadsAreBalanced begins with the half that takes time on some partitions and the
// half that writes on others. Only a policy of both loads balances both, up to the
// tolerance and chance. Ranges stay whole, down to half of the tolerance in either load, or pairs together.
// After a shift of the loads all is well again.
func TestBothLoadsAreBalanced(t *testing.T) {
	race.OneGoroutine(t)
	const k, keys = 4, 800
	for name, c := range map[string]struct {
		p          Policy
		cpu, disk  float64 // at most, or at least if below 0
		runs, pair int     // at most
	}{
		"libra": {Policy{Balance: Libra}, 1.1, 1.1, 2 * k * 2 / .05, keys},
		"both":  {Policy{Balance: Both}, 1.1, 1.1, keys, 0},
		"base":  {Policy{Kind: Base, Operations: 20_000, Balance: Libra}, 1.1, 1.1, 2 * k * 2 / .05, keys},
		"graph": {Policy{Balance: Graph}, -1.3, -1.3, keys, keys},
	} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				c.p.Every, c.p.Share, c.p.Window = time.Second, 1, 20_000
				w := &world{t: t, keys: newKeys(k, keys), seed: seed}
				w.build(Options[*key]{Policy: c.p, Cut: cut.Partition})
				w.place(func(i int) int { return i * k / keys })
				shift := 0
				check := func(when string) {
					t.Helper()
					if w.failed != nil {
						t.Fatal(w.failed)
					}
					loads := w.loads(shift)
					for d, bound := range map[libra.Dimension]float64{libra.CPU: c.cpu, libra.Disk: c.disk} {
						if m := most(loads, d); bound > 0 && m > bound || bound < 0 && m < -bound {
							t.Errorf("%s: most %s load %.3f of the mean, want %v (below 0: at least)", when, d, m, bound)
						}
					}
					if w.runs() > c.runs || w.apart() > c.pair {
						t.Errorf("%s: %d ranges, want %d at most; %d pairs apart, want %d", when, w.runs(), c.runs, w.apart(), c.pair)
					}
				}
				if w.c.opt.Policy.Balance == Graph {
					w.pass(20*time.Second, 10*time.Millisecond, func() {
						for range 200 {
							i := int(w.rand()>>8) % (keys / 2)
							w.use(2*i, 2*i+1)
						}
					})
					check("with the graph")
					return
				}
				w.pass(20*time.Second, 10*time.Millisecond, w.halves(200, &shift))
				check("at first")
				applied := w.accounted().Applied
				w.pass(20*time.Second, 10*time.Millisecond, w.halves(200, &shift))
				if s := w.accounted(); s.Applied > applied+1 {
					t.Errorf("%d new maps in balance", s.Applied-applied)
				}
				shift = keys / 4
				w.pass(60*time.Second, 10*time.Millisecond, w.halves(200, &shift))
				check("after a shift")
			})
		}
	}
}

// TestNothingMoves checks loads that are no reason to move keys: loads in balance up to
// chance, loads that fluctuate, and loads while data is on its way.
func TestNothingMoves(t *testing.T) {
	race.OneGoroutine(t)
	const k, keys = 4, 400
	shift := 0
	for name, c := range map[string]struct {
		at       func(i int) int
		requests func(w *world) func()
		written  func([]int64) ([]int64, bool)
		window   int
	}{
		"balance":            {at: func(i int) int { return i / 2 % k }},
		"balance, by chance": {at: func(i int) int { return i / 2 % k }, window: 1000},
		"fluctuation": {
			at: func(i int) int { return i * k / keys },
			requests: func(w *world) func() {
				return func() {
					n := 200
					if w.now/time.Second%2 == 0 {
						n = 400
					}
					w.halves(n, &shift)()
				}
			},
		},
		"data on its way": {
			at:      func(i int) int { return i * k / keys },
			written: func(dst []int64) ([]int64, bool) { return append(dst, 0, 0, 0, 0), false },
		},
	} {
		for _, b := range []Balance{Libra, Both} {
			t.Run(fmt.Sprint(name, " ", b), func(t *testing.T) {
				w := &world{t: t, keys: newKeys(k, keys), seed: 7}
				w.build(Options[*key]{Policy: Policy{Balance: b, Share: 1, Window: c.window}, Written: c.written, Cut: cut.Partition})
				w.place(c.at)
				requests := w.halves(200, &shift)
				if c.requests != nil {
					requests = c.requests(w)
				}
				w.pass(time.Minute, 10*time.Millisecond, requests)
				if w.keys.switches > 0 {
					t.Errorf("%d switches", w.keys.switches)
				}
			})
		}
	}
}

// TestDiskCost checks that the measured bytes of a partition are shared out by the bytes
// of values.
func TestDiskCost(t *testing.T) {
	d := newDiskCost(2)
	var total [2]int64
	written := func(dst []int64) ([]int64, bool) { return append(dst, total[:]...), true }
	on := func(p int32) []looked { return []looked{{partition: p}} }
	now := time.Duration(0)
	var last [2]uint32
	for range 20 { // partition 0 writes 3 bytes for each byte of a value, partition 1 a single byte
		if !d.measure(now, written) {
			t.Fatal("not settled")
		}
		for range 100 {
			last[0] = d.charge(on(0), workload.Load{1, 1000}, 2)[1]
			last[1] = d.charge(on(1), workload.Load{1, 1000}, 2)[1]
			total[0] += 2 * 3000
			total[1] += 2 * 1000
		}
		now += diskEvery
	}
	if last[0] < 2990 || last[0] > 3010 || last[1] != 1000 {
		t.Errorf("a value of 1000 bytes costs %d, want 3000 and 1000", last)
	}
	before := d.cost[0]
	d.measure(now, func(dst []int64) ([]int64, bool) { return append(dst, 1<<40, 1<<40), false })
	now += diskEvery
	total[0] += 1 << 40 // data on its way
	d.measure(now, written)
	if d.cost[0] != before {
		t.Errorf("bytes of data on its way count for requests: %v, before %v", d.cost[0], before)
	}
	if got := d.charge([]looked{{partition: unplaced}}, workload.Load{1, 7}, 1); got[1] != 7 {
		t.Errorf("a request on no partition costs %d", got[1])
	}
}

// TestOneRangeSpreads begins as an empty store does: with all keys in a single range, on the first
// of few or many partitions. Splits follow splits until parts are small enough to move.
func TestOneRangeSpreads(t *testing.T) {
	race.OneGoroutine(t)
	for _, k := range []int{2, 3, 8} {
		for seed := range uint64(3) {
			w := &world{t: t, keys: newKeys(k, 800), seed: seed}
			w.build(Options[*key]{Policy: Policy{Balance: Libra, Share: 1, Window: 40_000}, Cut: cut.Partition})
			w.place(func(int) int { return 0 })
			shift := 0
			w.pass(time.Minute, 10*time.Millisecond, w.halves(200, &shift))
			loads := w.loads(shift)
			if cpu, disk := most(loads, libra.CPU), most(loads, libra.Disk); max(cpu, disk) > 1.15 {
				t.Errorf("%d partitions, seed %d: most loads %.3f and %.3f of the mean", k, seed, cpu, disk)
			}
		}
	}
}
