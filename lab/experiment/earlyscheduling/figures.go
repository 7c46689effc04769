package earlyscheduling

import (
	"fmt"
	"math"

	"github.com/samya-db/samya/lab/earlylab"
	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

var nan = math.NaN()

// figures draws the paper's figures in virtual time, and the real runs beside it.
func (m *measured) figures() []experiment.Figure {
	n := m.most()
	all := []experiment.Figure{
		{Caption: "Figure 2, light list, threads wait as the paper's do: busy-wait stays up as threads are added, early scheduling falls.", Figure: &plot.Figure{Panels: m.overThreads(), Height: 230}},
		{Name: "costs", Caption: fmt.Sprintf("Figure 2, all lists, %d threads: throughput of busy-wait over early scheduling with barriers.", n), Figure: plot.New(m.overEarly())},
		{Name: "stealing", Caption: fmt.Sprintf("Figure 3, %d threads: the variants of work stealing.", n), Figure: &plot.Figure{Panels: m.single("Work stealing", append([]string{barriers}, thieves()...), 2), Width: 900, Height: 260}},
		{Name: "single", Caption: fmt.Sprintf("Figures 2 and 4, one shard, %d threads.", n), Figure: &plot.Figure{Panels: m.single("One shard", []string{late, barriers, busyWait, optimistic}, 3), Width: 900, Height: 260}},
		{Name: "shards", Caption: fmt.Sprintf("Figure 5, light lists, %d threads: balanced, skewed, and the throughput left by skew.", n), Figure: &plot.Figure{Panels: m.sharded(), Width: 900, Height: 260}},
		{Name: "times", Caption: "Figure 6, one request at a time: how long a request waits, and runs.", Figure: m.times()},
		{Name: "stolen", Caption: fmt.Sprintf("Figure 7, optimistic stealing, %d threads.", n), Figure: &plot.Figure{Panels: m.stolen(), Height: 190}},
		{Name: "keys", Caption: fmt.Sprintf("Figure 9, store of keys, %d threads.", n), Figure: &plot.Figure{Panels: m.keysPanels(), Width: 900, Height: 260}},
	}
	if p := m.beside(); p != nil {
		all = append(all, experiment.Figure{Name: "real", Caption: "Real runs beside virtual time, with the threads of package kvpart/early.", Figure: &plot.Figure{Panels: p, Width: 900, Height: 230}})
	}
	return all
}

// short rounds a number to two digits, so that the numbers above narrow bars fit.
func short(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-1)
	return math.Round(v/unit) * unit
}

// ofSequential is the axis of throughput over the sequential run.
var ofSequential = plot.Axis{Label: "throughput", Unit: "× sequential", Zero: true}

// label is the paper's name of a mode.
func label(mode string) string {
	if mode == barriers {
		return "early (barriers)"
	}
	return mode
}

// overThreads has a panel for each share of writes on the light list.
func (m *measured) overThreads() []plot.Panel {
	var panels []plot.Panel
	for _, w := range m.writes {
		l := &plot.Lines{Title: percent(w) + " writes", X: plot.Axis{Label: "threads", Zero: true}, Y: ofSequential}
		for _, mode := range []string{busyWait, barriers, late} {
			s := plot.Series{Name: label(mode), Marks: true, Strong: mode == busyWait}
			for _, n := range m.threads {
				if y := m.over(asPaper(list(sizes[0], w, n), mode)); !math.IsNaN(y) {
					s.Points = append(s.Points, plot.Point{X: float64(n), Y: y})
				}
			}
			l.Series = append(l.Series, s)
		}
		panels = append(panels, l)
	}
	return panels
}

// overEarly is busy-wait over barriers, by list and share of writes.
func (m *measured) overEarly() plot.Panel {
	b := &plot.Bars{Title: "Busy-wait over early scheduling", X: "share of writes", Y: plot.Axis{Label: "throughput", Unit: "× early", Log: true}}
	for _, w := range m.writes {
		b.Groups = append(b.Groups, percent(w))
	}
	for _, size := range sizes {
		s := plot.BarSeries{Name: named[size] + " requests"}
		for _, w := range m.writes {
			l := list(size, w, m.most())
			s.Values = append(s.Values, short(m.rate(asPaper(l, busyWait))/m.rate(asPaper(l, barriers))))
		}
		b.Series = append(b.Series, s)
	}
	return b
}

// bars is a panel of modes over the sequential run, with a group for each load.
func (m *measured) bars(title string, groups []string, loads []load, modes []string) *plot.Bars {
	b := &plot.Bars{Title: title, X: "share of writes", Y: plot.Axis{Label: "throughput", Unit: "× sequential", Log: true}, Groups: groups}
	for _, mode := range modes {
		s := plot.BarSeries{Name: label(mode)}
		for _, l := range loads {
			s.Values = append(s.Values, short(m.over(asPaper(l, mode))))
		}
		b.Series = append(b.Series, s)
	}
	return b
}

// single has a panel for each list.
func (m *measured) single(title string, modes []string, lists int) []plot.Panel {
	var panels []plot.Panel
	for _, size := range sizes[:lists] {
		var groups []string
		var loads []load
		for _, w := range m.writes {
			groups, loads = append(groups, percent(w)), append(loads, list(size, w, m.most()))
		}
		panels = append(panels, m.bars(title+", "+named[size]+" requests", groups, loads, modes))
	}
	return panels
}

// shardModes are the modes of the figures with shards.
var shardModes = []string{late, barriers, busyWait, optimistic}

// byShards is a panel of loads by shards, with the fewest writes and the most.
func (m *measured) byShards(title string, modes []string, of func(k int, w float64) load) *plot.Bars {
	var groups []string
	var loads []load
	for _, w := range []float64{m.few(), m.many()} {
		for _, k := range shards {
			groups, loads = append(groups, fmt.Sprintf("%d, %s", k, percent(w))), append(loads, of(k, w))
		}
	}
	p := m.bars(title, groups, loads, modes)
	p.X, p.Y = "shards, share of writes", ofSequential
	return p
}

// sharded is the balanced load, and below what is left of it with skew.
func (m *measured) sharded() []plot.Panel {
	balanced := m.byShards("Balanced", shardModes, func(k int, w float64) load { return sharded(sizes[0], k, w, m.most(), false) })
	skewed := m.byShards("Skewed: half of the requests to one shard", shardModes, func(k int, w float64) load { return sharded(sizes[0], k, w, m.most(), true) })
	left := &plot.Bars{Title: "Throughput left when half of the requests go to one shard", X: skewed.X, Y: plot.Axis{Label: "skewed", Unit: "% of balanced", Zero: true}, Groups: skewed.Groups}
	for _, f := range []struct {
		name        string
		size, queue int
		mode        string
	}{
		{"busy-wait, light", sizes[0], 0, busyWait},
		{"optimistic, light", sizes[0], 0, optimistic},
		{"busy-wait, heavy, few wait", sizes[2], shortQueue, busyWait},
		{"optimistic, heavy, few wait", sizes[2], shortQueue, optimistic},
		{"optimistic, heavy, many wait", sizes[2], 0, optimistic},
	} {
		s := plot.BarSeries{Name: f.name}
		for _, w := range []float64{m.few(), m.many()} {
			for _, k := range shards {
				s.Values = append(s.Values, math.Round(100-m.skewLoss(f.size, f.queue, k, w, f.mode)))
			}
		}
		left.Series = append(left.Series, s)
	}
	return []plot.Panel{balanced, skewed, left}
}

func (m *measured) keysPanels() []plot.Panel {
	return []plot.Panel{m.byShards("Store of keys", shardModes, func(k int, w float64) load { return m.keyed(k, w, m.most()) })}
}

// timesModes are the modes of Figure 6.
var timesModes = []string{earlylab.Sequential, barriers, busyWait, optimistic}

// timesRun is a run of Figure 6.
func (m *measured) timesRun(size int, mode string) run {
	r := asPaper(list(size, m.timesWrites(), timesThreads), mode)
	r.single = true
	return r
}

func (m *measured) times() *plot.Figure {
	b := &plot.RowBars{
		Title: "A request by itself", X: plot.Axis{Label: "time", Unit: "µs", Log: true}, Kinds: []string{"runs"}, Pale: "waits",
	}
	for _, size := range sizes {
		g := plot.BarGroup{Name: named[size]}
		for _, mode := range timesModes {
			if p := m.virtual[m.timesRun(size, mode)]; p != nil {
				g.Rows = append(g.Rows, plot.BarRow{Name: label(mode), Value: short(p.Ran / 1000), Pale: short(max(p.Waited, .1) / 1000)})
			}
		}
		b.Groups = append(b.Groups, g)
	}
	return &plot.Figure{Panels: []plot.Panel{b}, Height: b.Height()}
}

// stolenRun is a run of Figure 7.
func (m *measured) stolenRun(size, k int, w float64) run {
	if k == 1 {
		return asPaper(list(size, w, m.most()), optimistic)
	}
	return asPaper(sharded(size, k, w, m.most(), false), optimistic)
}

// stolenShare is the share of requests stolen, in %, and batch the requests of a steal.
func (m *measured) stolenShare(r run) float64 {
	if p := m.virtual[r]; p != nil {
		return 100 * float64(p.Stolen) / float64(p.Stats.Ran)
	}
	return nan
}

func (m *measured) batch(r run) float64 {
	if p := m.virtual[r]; p != nil && p.Steals > 0 {
		return float64(p.Stolen) / float64(p.Steals)
	}
	return nan
}

func (m *measured) stolen() []plot.Panel {
	var panels []plot.Panel
	for _, size := range []int{sizes[0], sizes[2]} {
		for _, f := range []struct {
			title string
			y     plot.Axis
			of    func(run) float64
		}{
			{"Share stolen", plot.Axis{Label: "stolen", Unit: "%", Zero: true}, m.stolenShare},
			{"Requests of a steal", plot.Axis{Label: "batch", Unit: "requests", Zero: true}, m.batch},
		} {
			b := &plot.Bars{Title: f.title + ", " + named[size] + " requests", X: "shards", Y: f.y}
			for _, k := range append([]int{1}, shards...) {
				b.Groups = append(b.Groups, fmt.Sprint(k))
			}
			for _, w := range m.writes {
				s := plot.BarSeries{Name: percent(w) + " writes"}
				for _, k := range append([]int{1}, shards...) {
					s.Values = append(s.Values, short(f.of(m.stolenRun(size, k, w))))
				}
				b.Series = append(b.Series, s)
			}
			panels = append(panels, b)
		}
	}
	return panels
}

// beside are real runs beside virtual time, on the light list with one and two threads.
func (m *measured) beside() []plot.Panel {
	var panels []plot.Panel
	modes := append([]string{barriers, busyWait}, append(thieves(), late)...)
	for _, n := range realThreads()[:2] {
		l := list(sizes[0], m.timesWrites(), n)
		if len(m.real[l]) == 0 {
			return nil
		}
		b := &plot.Bars{Title: fmt.Sprintf("Light list, %s writes, %s", percent(l.writes), counted(n)), X: "mode", Y: ofSequential, Groups: modes}
		measured, virtual := plot.BarSeries{Name: "real"}, plot.BarSeries{Name: "virtual time"}
		for _, mode := range modes {
			measured.Values = append(measured.Values, short(m.realRow(l, mode).Ratio))
			virtual.Values = append(virtual.Values, short(m.virtualRatio(l, mode)))
		}
		b.Series = []plot.BarSeries{measured, virtual}
		panels = append(panels, b)
	}
	return panels
}

// realRow is the row of a real run; its numbers are NaN if it did not run.
func (m *measured) realRow(l load, mode string) earlylab.Row {
	for _, r := range m.real[l] {
		if r.Mode == mode {
			return r
		}
	}
	return earlylab.Row{Rate: nan, Ratio: nan, Low: nan, High: nan}
}

// virtualRatio is the same in virtual time, with threads that wait as in real runs.
func (m *measured) virtualRatio(l load, mode string) float64 {
	return m.rate(run{load: l, mode: mode}) / m.rate(run{load: l, mode: earlylab.Sequential})
}
