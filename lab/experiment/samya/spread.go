package samya

import (
	"strconv"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// spreads are the figures that the report gives for the median seed and the worst
// seed of each run.
var spreads = []struct {
	head string
	of   figure
	// high says that higher is better.
	high bool
}{
	{"committed, /s", (*outcome).rate, true},
	{"p50, ms", func(o *outcome) float64 { return o.all.p50 }, false},
	{"p99, ms", p99, false},
	{"p99.9, ms", p999, false},
	{"p99.9 while 5 % is free, ms", plenty999, false},
	{"waits, %", (*outcome).waits, false},
	{"refused beyond the oracle's", (*outcome).beyondOracle, false},
	{"refused while 5 % is free", falsely, false},
	{"tokens beyond the limit", beyondLimit, false},
}

// spread returns a table of the runs: the median over the seeds and the worst value
// of each figure, or a single number if both are the same.
func (r *runs) spread(plays []play) experiment.Table {
	t := experiment.Table{
		Name:  "Median seed / worst seed. Tokens beyond the limit: the most that clients held.",
		Heads: []string{"workload", "system", "seeds"},
	}
	for _, s := range spreads {
		t.Heads = append(t.Heads, s.head)
	}
	for _, p := range plays {
		row := []string{p.workload, title(p.system), strconv.Itoa(len(r.seedsOf(p)))}
		for _, s := range spreads {
			each := r.each(p, s.of)
			worst := most(each)
			if s.high {
				worst = least(each)
			}
			cell := plot.Number(median(each))
			if to := plot.Number(worst); to != cell {
				cell += " / " + to
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
