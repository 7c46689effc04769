package realtime

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
	"github.com/samya-db/samya/lab/replay"
)

// Report compares plays with virtual time and with the paper.
func Report(all []*Played) *experiment.Result {
	r := &experiment.Result{
		Setup: "Five samya site processes and one app manager, which reads the books, on this machine, over the loopback; " +
			"half of the round trips of Table 5 each way between sites, none between clients and their sites. One program makes the load through the SDK, " +
			"each request at the site of its region when it is due; latency counts from then. Virtual time plays the same demand to the same code, untrained in both.",
		Notes: []string{
			"Transactions committed are what can be compared with virtual time. Latencies are those of this machine, whose processors and disk all sites share.",
			"The paper's percentiles are over an hour between five regions of Google Cloud; what is played here is the beginning of that hour, with empty hands at its start.",
		},
	}
	for _, p := range all {
		name := called(p.Workload, p.Limit)
		if p.Oracle.Refused == 0 {
			r.Goals = append(r.Goals, experiment.AtLeast(name+": committed, of what virtual time commits", p.Share(), leastCommitted, "%"))
		} else {
			// Milliseconds decide who gets the last tokens, and the committed
			// transactions depend on their hold. Refusals can be compared.
			most := mostRefused*float64(p.Virtual.Refused) + refusedBeside
			r.Goals = append(r.Goals, experiment.Below(fmt.Sprintf("%s: refused; virtual time refuses %d", name, p.Virtual.Refused), float64(p.Refused), most, ""))
		}
		r.Goals = append(r.Goals, experiment.Below(name+": requests timed out", float64(p.TimedOut), 1, ""))
		why := fmt.Sprintf("Ours is of seven processes on the %d processors and the disk of one machine; in virtual time, where each site has its own, the 99th percentile is %.1f ms.",
			runtime.GOMAXPROCS(0), p.Virtual.All.P99)
		for _, c := range []struct {
			part        string
			paper, ours float64
		}{{"90", 1.4, p.Latency.P90}, {"95", 10.2, p.Latency.P95}, {"99", 65.1, p.Latency.P99}} {
			r.Compared = append(r.Compared, experiment.Comparison{
				What: fmt.Sprintf("%s: %sth percentile (Table 6, majority)", name, c.part), Unit: "ms", Paper: &c.paper, Ours: c.ours, Why: why,
			})
		}
		r.Notes = append(r.Notes, p.note())
		if p.Behind.P99 > busy {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: this machine was busy: the program that makes the load was behind by %.0f ms at the 99th percentile, so the percentiles from there on tell of the machine, not of samya.", name, p.Behind.P99))
		}
	}
	r.Tables = tables(all)
	r.Figures = []experiment.Figure{figure(all)}
	return r
}

// note describes a play in a few sentences.
func (p *Played) note() string {
	return fmt.Sprintf("%s: of %d requests %d were granted, %d released, %d refused (virtual time: %d, the oracle: %d), %d timed out; %d acquires waited (virtual time: %d); "+
		"%d redistributions were begun (virtual time: %d); clients held %d tokens in the end, as the books say, %d at most. "+
		"The program that makes the load was behind by %.2f ms in the median and %.1f ms at the 99th percentile.",
		called(p.Workload, p.Limit), p.Requests, p.Granted, p.Released, p.Refused, p.Virtual.Refused, p.Oracle.Refused, p.TimedOut, p.Waited, p.Virtual.Waited,
		p.Redistributions(), p.Virtual.Redistributions(), p.Held, p.Peak, p.Behind.P50, p.Behind.P99)
}

// tables returns a table with a row for each play, and a table with a row for each
// window.
func tables(all []*Played) []experiment.Table {
	sums := experiment.Table{Heads: []string{
		"workload", "seed", "time", "seconds", "limit", "requests", "granted", "released", "committed", "refused", "timed_out", "resumed", "waited", "redistributions",
		"p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms", "acquire_p50_ms", "acquire_p99_ms", "acquire_p999_ms", "acquire_max_ms",
		"served_p50_ms", "served_p99_ms", "behind_p50_ms", "behind_p99_ms", "started", "ended",
	}}
	windows := experiment.Table{Name: "windows", Heads: []string{"workload", "limit", "from_s", "offered", "committed", "committed_virtual"}}
	for _, p := range all {
		seed, span := strconv.FormatUint(p.Seed, 10), decimal(p.Span.Seconds())
		l, a, v := p.Latency, p.Acquires, p.Virtual
		row := append([]string{p.Workload, seed, "real", span}, integers(int(p.Limit), p.Requests, p.Granted, p.Released, p.Committed(), p.Refused,
			p.TimedOut, p.Resumed, p.Waited, p.Redistributions())...)
		row = append(row, latencies(l, a)...)
		row = append(row, decimals(p.Served.P50, p.Served.P99, p.Behind.P50, p.Behind.P99)...)
		sums.Rows = append(sums.Rows, append(row, counts(p.Started), counts(p.Ended)))
		row = append([]string{v.Workload, seed, "virtual", span}, integers(int(p.Limit), v.Requests+v.Releases, v.Granted, v.Releases, v.Granted+v.Releases, v.Refused,
			v.TimedOut, 0, v.Waited, v.Redistributions())...)
		row = append(row, latencies(v.All, v.Latency)...)
		sums.Rows = append(sums.Rows, append(row, make([]string, 6)...))
		oracle := []string{p.Workload, seed, "oracle", span}
		o := p.Oracle
		oracle = append(oracle, integers(int(p.Limit), o.Granted+o.Releases+o.Refused, o.Granted, o.Releases, o.Granted+o.Releases, o.Refused)...)
		sums.Rows = append(sums.Rows, append(oracle, make([]string, len(sums.Heads)-len(oracle))...))
		for i, n := range p.Windows {
			at, virtual := 0, 0
			if i < len(p.offered) {
				at = p.offered[i]
			}
			if i < len(v.Windows) {
				virtual = v.Windows[i].Committed
			}
			windows.Rows = append(windows.Rows, append([]string{p.Workload}, integers(int(p.Limit), i*int(replay.WindowSpan/time.Second), at, n, virtual)...))
		}
	}
	return []experiment.Table{sums, windows}
}

func integers(of ...int) []string {
	var all []string
	for _, n := range of {
		all = append(all, strconv.Itoa(n))
	}
	return all
}

func latencies(all, acquires replay.Latency) []string {
	return decimals(all.P50, all.P90, all.P95, all.P99, all.P999, all.Max, acquires.P50, acquires.P99, acquires.P999, acquires.Max)
}

func decimals(of ...float64) []string {
	var all []string
	for _, x := range of {
		all = append(all, decimal(x))
	}
	return all
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// counts formats the counters above zero as a cell.
func counts(of map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if of[name] > 0 {
			all = append(all, fmt.Sprintf("%s %d", name, of[name]))
		}
	}
	return strings.Join(all, ", ")
}

// figure is Figure 9 for the plays.
func figure(all []*Played) experiment.Figure {
	var panels []plot.Panel
	for _, p := range all {
		panels = append(panels, &plot.Lines{
			Title: called(p.Workload, p.Limit),
			X:     plot.Axis{Label: "time", Unit: "s", Zero: true}, Y: plot.Axis{Label: "throughput", Unit: "transactions/s", Zero: true},
			Series: []plot.Series{
				{Name: "offered", Points: rates(p.offered, p.Span)},
				{Name: "committed in virtual time", Points: rates(p.virtualWindows(), p.Span)},
				{Name: "committed by processes", Points: rates(p.Windows[:len(p.Windows)-1], p.Span), Marks: true},
			},
		})
	}
	return experiment.Figure{Caption: "Throughput over time (Figure 9), in windows of 10 s.", Figure: &plot.Figure{Panels: panels, Height: 230}}
}

// virtualWindows returns the transactions committed in virtual time within the
// Span.
func (p *Played) virtualWindows() []int {
	var all []int
	for i := range min(len(p.Virtual.Windows), len(p.offered)) {
		all = append(all, p.Virtual.Windows[i].Committed)
	}
	return all
}

// rates returns the points of windows, each at the middle of its window.
func rates(windows []int, span time.Duration) []plot.Point {
	var all []plot.Point
	for i, n := range windows {
		from := time.Duration(i) * replay.WindowSpan
		took := min(replay.WindowSpan, span-from)
		all = append(all, plot.Point{X: (from + took/2).Seconds(), Y: float64(n) / took.Seconds()})
	}
	return all
}

// offered counts the transactions of a demand by window.
func offered(d *replay.Demand) []int {
	windows := make([]int, (d.Span+replay.WindowSpan-1)/replay.WindowSpan)
	for _, l := range d.Leases {
		windows[l.Due/replay.WindowSpan]++
		if end := l.Due + l.Hold; end < d.Span {
			windows[end/replay.WindowSpan]++
		}
	}
	return windows
}
