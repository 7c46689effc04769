package earlyscheduling

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/samya-db/samya/kvpart/early"
	"github.com/samya-db/samya/lab/earlylab"
	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// result makes the report.
func (m *measured) result() *experiment.Result {
	return &experiment.Result{
		Setup:    m.setup(),
		Goals:    m.goals(),
		Compared: m.compared(),
		Spreads:  []experiment.Table{m.modesTable(), m.waitsTable(), m.realSpread()},
		Tables:   []experiment.Table{m.virtualTable(), m.realTable(), m.costsTable()},
		Figures:  m.figures(),
		Notes:    m.notes(),
	}
}

func (m *measured) setup() string {
	return fmt.Sprintf("Sorted lists of 1,000, 10,000 and 100,000 integers (light, moderate, heavy) and a tree of %s keys; "+
		"%s requests a run on the light list, a quarter and a tenth on the others; at most %d requests wait at a thread. "+
		"Virtual time with up to %d threads, each with a core; real runs are medians of %d rounds, as ratios to a run on one thread in the same round.",
		plot.Number(float64(m.keys)), plot.Number(float64(m.requests)), longQueue, m.most(), m.rounds)
}

// notes tell what the figures assume.
func (m *measured) notes() []string {
	costs, _ := json.Marshal(&m.costs) // numbers alone
	return []string{
		fmt.Sprintf("Costs of steps, in nanoseconds: `%s`.", costs),
		"Virtual time assumes a core for each thread and the producer; the same cost of a cache line's move between any two cores; readers that do not delay each other; threads that wait for a lock without sleeping; requests that do not slow each other down; and the same cost of each of several wakes. Two cores can measure none of these.",
		"Threads wait as the paper's unless the table says otherwise: at a meeting they sleep at once; at a counter or without work they look for ever. Late lets threads without work sleep.",
		"The paper tells neither the threads nor the writes of Figure 6. Figure 8 compares garbage collectors of Java, and has no counterpart here.",
	}
}

// modesTable has all modes on all lists.
func (m *measured) modesTable() experiment.Table {
	n := m.most()
	t := experiment.Table{Name: fmt.Sprintf("Virtual time, one shard, %d threads: requests/s of the sequential run, and the modes over it.", n), Heads: []string{"mode"}}
	rows := [][]string{{earlylab.Sequential}}
	for _, mode := range early.Modes() {
		rows = append(rows, []string{mode.String()})
	}
	for _, size := range sizes {
		for _, w := range m.writes {
			t.Heads = append(t.Heads, named[size]+" "+percent(w))
			l := list(size, w, n)
			for i := range rows {
				r := asPaper(l, rows[i][0])
				if i == 0 {
					rows[i] = append(rows[i], plot.Number(math.Round(m.rate(r))))
				} else {
					rows[i] = append(rows[i], ratio(m.over(r)))
				}
			}
		}
	}
	t.Rows = rows
	return t
}

// waitsTable has the ways to wait.
func (m *measured) waitsTable() experiment.Table {
	t := experiment.Table{
		Name:  fmt.Sprintf("Virtual time, one shard, %d threads, over the sequential run, by how threads wait: as the paper's; as ours, 100 looks and 4 that yield, then sleep; ours with looks for twice the time of a wake.", m.most()),
		Heads: []string{"load", "barriers, paper", "ours", "longer", "busy-wait, paper", "ours", "longer", "optimistic, paper", "ours", "longer"},
	}
	for _, size := range sizes {
		for _, w := range m.writes {
			l := list(size, w, m.most())
			row := []string{named[size] + " " + percent(w)}
			for _, mode := range []string{barriers, busyWait, optimistic} {
				for _, waits := range []earlylab.Waits{earlylab.ParkAtMeetings, earlylab.SpinThenPark, earlylab.SpinLonger} {
					row = append(row, ratio(m.over(run{load: l, mode: mode, waits: waits})))
				}
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// realSpread has the real runs beside virtual time.
func (m *measured) realSpread() experiment.Table {
	modes := []string{barriers, busyWait, optimistic, prefix, late}
	t := experiment.Table{
		Name:  "Real runs, over the sequential run of the same round: median, least to greatest, and in brackets virtual time with threads that wait as ours.",
		Heads: append([]string{"load"}, modes...),
	}
	for _, l := range m.realLoads() {
		if len(m.real[l]) == 0 {
			continue
		}
		row := []string{l.String()}
		for _, mode := range modes {
			r := m.realRow(l, mode)
			row = append(row, fmt.Sprintf("%s, %s–%s (%s)", ratio(r.Ratio), ratio(r.Low), ratio(r.High), ratio(m.virtualRatio(l, mode))))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// virtualTable has a row for each run in virtual time.
func (m *measured) virtualTable() experiment.Table {
	t := experiment.Table{Heads: []string{
		"load", "shards", "threads", "queue", "writes", "skew", "mode", "waits", "single", "cheap_wakes", "requests_per_second", "of_sequential",
		"waited_us", "ran_us", "stolen", "steals", "sleeps",
	}}
	waits := [...]string{earlylab.SpinThenPark: "ours", earlylab.ParkAtMeetings: "paper", earlylab.SpinLonger: "longer"}
	for _, c := range m.cells() {
		p := m.virtual[c]
		t.Rows = append(t.Rows, []string{
			c.name(), strconv.Itoa(c.shards), strconv.Itoa(c.threads), strconv.Itoa(cmp.Or(c.queue, longQueue)), decimal(c.writes), decimal(c.skew), c.mode, waits[c.waits], strconv.FormatBool(c.single), strconv.FormatBool(c.cheap),
			decimal(p.Rate), decimal(m.over(c)), decimal(p.Waited / 1000), decimal(p.Ran / 1000), strconv.FormatInt(p.Stolen, 10), strconv.FormatInt(p.Steals, 10), strconv.Itoa(p.Parks),
		})
	}
	return t
}

// realTable has a row for each real run.
func (m *measured) realTable() experiment.Table {
	t := experiment.Table{Name: "real", Heads: []string{"load", "shards", "threads", "writes", "skew", "mode", "requests_per_second", "of_sequential", "least", "greatest", "waited", "stolen"}}
	for _, l := range m.realLoads() {
		for _, r := range m.real[l] {
			t.Rows = append(t.Rows, []string{
				l.name(), strconv.Itoa(l.shards), strconv.Itoa(l.threads), decimal(l.writes), decimal(l.skew), r.Mode,
				decimal(r.Rate), decimal(r.Ratio), decimal(r.Low), decimal(r.High), decimal(r.Waited), decimal(r.Stolen),
			})
		}
	}
	return t
}

// costsTable has the durations of requests.
func (m *measured) costsTable() experiment.Table {
	t := experiment.Table{Name: "work", Heads: []string{"load", "shards", "read_ns", "write_ns", "element_ns"}}
	for _, c := range m.cells() {
		key := load{app: c.app, size: c.size}
		if c.app == earlylab.KV {
			key.shards = c.shards
		}
		row := []string{key.name(), strconv.Itoa(key.shards), decimal(m.work[key].Read), decimal(m.work[key].Write), decimal(m.work[key].Element)}
		known := false
		for _, r := range t.Rows {
			known = known || r[0] == row[0] && r[1] == row[1]
		}
		if !known {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// ratio formats a ratio for people, decimal a number for a file. NaN gives no digits.
func ratio(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v < .1:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return plot.Number(math.Round(v))
}

func decimal(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
