package earlyscheduling

import (
	"fmt"

	"github.com/samya-db/samya/kvpart/early"
	"github.com/samya-db/samya/lab/earlylab"
)

// The modes by their names.
var (
	barriers   = early.Barriers.String()
	busyWait   = early.BusyWait.String()
	optimistic = early.Optimistic.String()
	prefix     = early.Prefix.String()
	late       = early.Late.String()
)

// thieves are the modes that steal.
func thieves() []string {
	var names []string
	for m := early.Conservative; m <= early.Prefix; m++ {
		names = append(names, m.String())
	}
	return names
}

// String names a load.
func (l *load) String() string {
	s := fmt.Sprintf("%s, %s writes, %s", l.name(), percent(l.writes), counted(l.threads))
	if l.shards > 1 {
		s += fmt.Sprintf(", %d shards", l.shards)
	}
	if l.skew > 0 {
		s += ", skewed"
	}
	if l.queue > 0 {
		s += ", short queues"
	}
	return s
}

// counted is a number of threads.
func counted(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}

// name is the application of a load.
func (l *load) name() string {
	if l.app == earlylab.KV {
		return "keys"
	}
	return named[l.size]
}

// String names a run.
func (r *run) String() string { return r.load.String() + ", " + r.mode }

func percent(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }

// list is a load on a list in one shard.
func list(size int, writes float64, threads int) load {
	return load{app: earlylab.List, size: size, shards: 1, writes: writes, threads: threads}
}

// sharded is a load on lists of several shards. Half of the requests are skewed to the
// first, or none.
func sharded(size, k int, writes float64, threads int, skewed bool) load {
	l := load{app: earlylab.List, size: size, shards: k, writes: writes, global: .01, threads: threads}
	if skewed {
		l.skew = skew
	}
	return l
}

// skew is the share of requests that skewed loads send to the first shard, beyond its
// part.
const skew = .5

// keyed is a load on a store of keys.
func (m *measured) keyed(k int, writes float64, threads int) load {
	return load{app: earlylab.KV, size: m.keys, shards: k, writes: writes, global: .01, threads: threads}
}

// asPaper is a run whose threads wait as the paper's do.
func asPaper(l load, mode string) run {
	return run{load: l, mode: mode, waits: earlylab.ParkAtMeetings}
}

// cells are the runs in virtual time, each once.
func (m *measured) cells() []run {
	var all []run
	seen := make(map[run]bool)
	add := func(r run) {
		if !seen[r] {
			seen[r] = true
			all = append(all, r)
		}
	}
	modes := func(l load, names ...string) {
		for _, n := range append([]string{earlylab.Sequential}, names...) {
			add(asPaper(l, n))
		}
	}
	for _, w := range m.writes {
		for _, size := range sizes {
			for _, n := range m.threads { // Figures 2 and 4
				l := list(size, w, n)
				modes(l, barriers, busyWait, late)
				for _, waits := range []earlylab.Waits{earlylab.SpinThenPark, earlylab.SpinLonger} {
					add(run{load: l, mode: barriers, waits: waits})
					add(run{load: l, mode: busyWait, waits: waits})
				}
				if size < sizes[2] || n == m.most() { // Figure 3, and the table
					modes(l, thieves()...)
				}
			}
			l := list(size, w, m.most())
			for _, mode := range []string{barriers, busyWait} {
				add(run{load: l, mode: mode, waits: earlylab.ParkAtMeetings, cheap: true})
			}
			for _, waits := range []earlylab.Waits{earlylab.SpinThenPark, earlylab.SpinLonger} {
				add(run{load: l, mode: optimistic, waits: waits})
			}
		}
		for _, k := range shards { // Figures 5 and 7
			for _, skewed := range []bool{false, true} {
				modes(sharded(sizes[0], k, w, m.most(), skewed), barriers, busyWait, optimistic, prefix, late)
				heavy := sharded(sizes[2], k, w, m.most(), skewed)
				modes(heavy, busyWait, optimistic, prefix)
				heavy.queue = shortQueue
				modes(heavy, busyWait, optimistic, prefix)
			}
			modes(m.keyed(k, w, m.most()), barriers, busyWait, optimistic, prefix, late) // Figure 9
		}
	}
	for _, size := range sizes { // Figure 6
		l := list(size, m.timesWrites(), timesThreads)
		for _, mode := range []string{earlylab.Sequential, barriers, busyWait, optimistic} {
			r := asPaper(l, mode)
			r.single = true
			add(r)
		}
	}
	for _, l := range m.realLoads() { // to compare with real runs
		for _, mode := range append([]string{earlylab.Sequential, barriers, busyWait, late}, thieves()...) {
			add(run{load: l, mode: mode})
		}
	}
	return all
}

// timesThreads is the number of threads of Figure 6, and timesWrites the share of writes.
// The paper tells neither.
const timesThreads = 8

func (m *measured) timesWrites() float64 { return m.writes[len(m.writes)/2] }

// realLoads are the loads of real runs.
func (m *measured) realLoads() []load {
	var all []load
	most := m.writes[len(m.writes)-1]
	for _, n := range realThreads() {
		for _, size := range sizes {
			for _, w := range m.writes {
				all = append(all, list(size, w, n))
			}
		}
	}
	for _, k := range shards[:2] {
		for _, w := range []float64{m.writes[0], most} {
			all = append(all, sharded(sizes[0], k, w, k, false), sharded(sizes[0], k, w, k, true))
		}
	}
	return append(all, m.keyed(shards[0], m.timesWrites(), shards[0]))
}

// rate is the rate of a run in virtual time, in requests a second, and over its part of
// the sequential run; NaN if it did not run.
func (m *measured) rate(r run) float64 {
	if p := m.virtual[r]; p != nil {
		return p.Rate
	}
	return nan
}

func (m *measured) over(r run) float64 { return m.rate(r) / m.rate(sequentialOf(r)) }

// sequentialOf is the sequential run of a load.
func sequentialOf(r run) run {
	return run{load: r.load, mode: earlylab.Sequential, waits: earlylab.ParkAtMeetings}
}
