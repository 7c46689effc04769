package repartitioning

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// measured is all measurements.
type measured struct {
	*options
	cells []cell
	runs  map[cell][]*figures // by round
}

// of returns the median of a figure over the rounds of a cell; NaN if the cell did
// not run.
func (m *measured) of(c cell, figure func(*figures) float64) float64 {
	var all []float64
	for _, f := range m.runs[c] {
		all = append(all, figure(f))
	}
	return median(all)
}

// find returns the cell of a policy. For a cell not asked for it returns the zero
// cell, which has no runs.
func (m *measured) find(workload string, workers int, name string) cell {
	if name == single {
		workers = m.workers[0]
	}
	for _, c := range m.cells {
		if c.workload == workload && c.workers == workers && c.name == name {
			return c
		}
	}
	return cell{}
}

// best returns the cell with the highest median throughput among the policies with
// a name prefix.
func (m *measured) best(workload string, workers int, prefix string) cell {
	var found cell
	most := math.Inf(-1)
	for _, c := range m.cells {
		if c.workload != workload || c.workers != workers || !strings.HasPrefix(c.name, prefix) {
			continue
		}
		if rate := m.of(c, throughput); rate > most {
			found, most = c, rate
		}
	}
	return found
}

// The figures of comparisons.
func throughput(f *figures) float64 { return f.median }
func makespan(f *figures) float64   { return f.makespan.Seconds() }
func spread(f *figures) float64     { return 100 * f.spread }
func switches(f *figures) float64   { return float64(f.stats.Applied) }
func multiOnce(f *figures) float64  { return 100 * f.once }
func multiFirst(f *figures) float64 { return 100 * f.first }
func dipOf(f *figures) float64      { return 100 * f.dip }
func lossOf(f *figures) float64     { return 100 * f.loss }

// result makes the report.
func (m *measured) result() (*experiment.Result, error) {
	r := &experiment.Result{
		Setup:    m.setup(),
		Goals:    m.goals(),
		Compared: m.compared(),
		Tables:   []experiment.Table{m.runTable(), m.timeTable()},
		Notes:    notes,
	}
	r.Figures = m.figures()
	return r, nil
}

// runTable has a row for each run.
func (m *measured) runTable() experiment.Table {
	t := experiment.Table{Heads: []string{
		"workload", "workers", "policy", "round", "makespan_s", "median_ops", "cpu_us_per_op", "queue_variation",
		"computed", "applied", "skipped", "multi_share", "multi_share_before", "multi_share_one_cut", "dip_during_cuts", "dip_elsewhere", "loss_during_cuts",
		"longest_start_ms", "pause_p50_us", "pause_p99_us", "pause_max_us", "tracked", "dropped", "vertices", "edges", "last_cut_ms",
		"tracking_ms", "cutting_ms",
	}}
	for _, c := range append(m.dropCells(), m.cells...) {
		for round, f := range m.runs[c] {
			s := &f.stats
			t.Rows = append(t.Rows, []string{
				c.workload, strconv.Itoa(c.workers), c.name, strconv.Itoa(round + 1),
				decimal(f.makespan.Seconds()), decimal(f.median), micros(f.perOp), decimal(f.spread),
				whole(s.Computed), whole(s.Applied), whole(s.Skipped), decimal(f.multi), decimal(f.first), decimal(f.once), decimal(f.dip), decimal(f.calm), decimal(f.loss),
				millis(f.longest), micros(s.Pause.P50), micros(s.Pause.P99), micros(s.Pause.Max),
				whole(s.Tracked), whole(s.Dropped), strconv.Itoa(s.Vertices), strconv.Itoa(s.Edges), millis(s.LastCutTime),
				millis(s.TrackingTime), millis(s.CuttingTime),
			})
		}
	}
	return t
}

// timeTable has a row for each bin of the first round.
func (m *measured) timeTable() experiment.Table {
	t := experiment.Table{Name: "time", Heads: []string{
		"workload", "workers", "policy", "from_s", "to_s", "ops", "multi_share", "queue_variation", "applied",
	}}
	for _, c := range append(m.dropCells(), m.cells...) {
		runs := m.runs[c]
		if len(runs) == 0 {
			continue
		}
		for _, b := range runs[0].bins {
			t.Rows = append(t.Rows, []string{
				c.workload, strconv.Itoa(c.workers), c.name, decimal(b.from.Seconds()), decimal(b.to.Seconds()),
				decimal(b.rate), decimal(b.multi), decimal(b.spread), whole(b.applied),
			})
		}
	}
	return t
}

// number formats a number for people, decimal for a file. NaN gives no digits.
func number(v float64) string { return plot.Number(v) }

func decimal(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

func whole(n int64) string          { return strconv.FormatInt(n, 10) }
func micros(d time.Duration) string { return decimal(float64(d) / float64(time.Microsecond)) }
func millis(d time.Duration) string { return decimal(float64(d) / float64(time.Millisecond)) }
