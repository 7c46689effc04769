package kvlab

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/samya-db/samya/kvpart"
)

// Table is the throughput of all ways to run requests, on all workloads of a table.
type Table struct {
	Partitions int        `json:"partitions"`
	Clients    int        `json:"clients"`
	Workloads  []string   `json:"workloads"`
	Rows       []TableRow `json:"rows"`
}

// TableRow is a way to run requests, with a cell for each workload.
type TableRow struct {
	Store string      `json:"store"`
	Cells []TableCell `json:"cells"`
}

// TableCell is the throughput of a store on a workload.
type TableCell struct {
	Rate float64 `json:"operations_per_second"` // median
	// Ratio is the rate by the rate of the control, the first row, in the same round: the
	// median, the least and the greatest.
	Ratio float64 `json:"of_control"`
	Low   float64 `json:"least"`
	High  float64 `json:"greatest"`
	// Processor is the processor time of an operation in µs, the clients' included: the
	// median.
	Processor float64 `json:"processor_us"`
}

// tableRows are the rows of a table. The first, the control, is what package kvpart does
// by default with workers.
func (b *bench) tableRows() []struct {
	name string
	kvpart.Options
} {
	type row = struct {
		name string
		kvpart.Options
	}
	base := kvpart.Policy{Kind: kvpart.Base, Operations: 100_000}
	rows := []row{
		{"threaded, workers, async", kvpart.Options{Strategy: kvpart.Threaded, Policy: b.policy()}},
		{"threaded, workers, base", kvpart.Options{Strategy: kvpart.Threaded, Policy: base}},
		{"threaded, workers, static", kvpart.Options{Strategy: kvpart.Threaded}},
		{"sequential: one worker", kvpart.Options{Strategy: kvpart.Threaded, Partitions: 1}},
		{"hard_threaded, workers, async", kvpart.Options{Strategy: kvpart.HardThreaded, Policy: b.policy()}},
		{"soft, async", kvpart.Options{Strategy: kvpart.Soft, Policy: b.policy()}},
		{"soft, base", kvpart.Options{Strategy: kvpart.Soft, Policy: base}},
		{"hard, async", kvpart.Options{Strategy: kvpart.Hard, Policy: b.policy()}},
		{"engine", kvpart.Options{Strategy: kvpart.Bare, Partitions: 1}},
	}
	for _, s := range kvpart.Schedulers() {
		if s != kvpart.Workers {
			rows = append(rows, row{"threaded, " + string(s) + ", async", kvpart.Options{Strategy: kvpart.Threaded, Scheduler: s, Policy: b.policy()}})
		}
	}
	for i := range rows {
		if o := &rows[i].Options; o.Partitions == 0 {
			o.Partitions = b.Partitions
		}
		rows[i].Backend, rows[i].Seed = "btree", b.Seed
	}
	return rows
}

// tableLoads are the workloads of a table.
func (b *bench) tableLoads() ([]string, []benchLoad, error) {
	names := []string{"YCSB A", "YCSB E"}
	var loads []benchLoad
	for _, workload := range []string{"A", "E"} {
		l, err := b.load(workload, "")
		if err != nil {
			return nil, nil, err
		}
		loads = append(loads, l)
	}
	for _, m := range []struct {
		name string
		Mix
	}{
		{"writes 10 %, global 1 %", Mix{Writes: .1, Global: .01}},
		{"50 %, 1 %", Mix{Writes: .5, Global: .01}},
		{"10 %, 15 %", Mix{Writes: .1, Global: .15}},
		{"10 %, 1 %, skewed", Mix{Writes: .1, Global: .01, Skew: .8}},
	} {
		names = append(names, m.name)
		loads = append(loads, benchLoad{
			names: m.Names(b.Records), ops: m.Make(b.Partitions, b.Records, b.Clients, max(b.Operations/b.Clients, 1), b.Seed),
		})
	}
	return names, loads, nil
}

// RunTable measures all rows of a table on all workloads. Every second round runs
// backwards.
func RunTable(ctx context.Context, o *BenchOptions) (*Table, error) {
	b := newBench(o)
	rows := b.tableRows()
	names, loads, err := b.tableLoads()
	if err != nil {
		return nil, err
	}
	t := &Table{Partitions: o.Partitions, Clients: o.Clients, Workloads: names, Rows: make([]TableRow, len(rows))}
	results := make([][][]*Result, len(loads))
	for w := range loads {
		results[w] = make([][]*Result, len(rows))
	}
	for round := range o.Rounds {
		for w := range loads {
			o.Progress(fmt.Sprintf("round %d of %d: %s", round+1, o.Rounds, names[w]))
			for i := range rows {
				if round%2 == 1 {
					i = len(rows) - 1 - i
				}
				r, err := b.run(ctx, &rows[i].Options, loads[w])
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", rows[i].name, names[w], err)
				}
				results[w][i] = append(results[w][i], r)
			}
		}
	}
	for i := range rows {
		t.Rows[i].Store = rows[i].name
		for w := range loads {
			t.Rows[i].Cells = append(t.Rows[i].Cells, cellOf(results[w][i], results[w][0]))
		}
	}
	return t, nil
}

// cellOf sums up the rounds of a store beside those of the control.
func cellOf(results, control []*Result) TableCell {
	c := TableCell{Low: math.Inf(1)}
	var rates, ratios, costs []float64
	for round, r := range results {
		rates, costs = append(rates, r.Rate()), append(costs, r.PerOperation())
		ratios = append(ratios, r.Rate()/control[round].Rate())
	}
	c.Rate, c.Ratio, c.Processor = median(rates), median(ratios), median(costs)
	c.Low, c.High = slices.Min(ratios), slices.Max(ratios)
	return c
}

// WriteText writes a table: thousands of operations a second, and the ratio to the control
// with its spread.
func (t *Table) WriteText(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintf(tw, "%d partitions, %d clients: thousand operations a second, by the control's\t", t.Partitions, t.Clients)
	for _, name := range t.Workloads {
		_, _ = fmt.Fprintf(tw, "%s\t", name)
	}
	_, _ = fmt.Fprintln(tw)
	for _, r := range t.Rows {
		_, _ = fmt.Fprintf(tw, "%s\t", r.Store)
		for _, c := range r.Cells {
			_, _ = fmt.Fprintf(tw, "%.0f  %.2f (%.2f–%.2f)\t", c.Rate/1e3, c.Ratio, c.Low, c.High)
		}
		_, _ = fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	return nil
}
