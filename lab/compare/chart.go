package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/samya-db/samya/lab/plot"
)

// kinds are the kinds of systems, each with a colour in the chart.
var kinds = []Kind{Durable, Volatile, Control}

// Figure returns a chart of the median rates on a logarithmic axis: for each way, the
// hot entity above the many entities.
func (r *Report) Figure() *plot.Figure {
	rates := &plot.RowBars{
		Title: "Acquires a second, each with an id that is remembered\n" +
			fmt.Sprintf("Medians of %d rounds of %g s on %d cores, load generator included; logarithmic.", r.Rounds, r.Seconds, r.Cores),
		X:     plot.Axis{Label: "operations a second", Log: true},
		Kinds: []string{"durable: synced before the answer", "volatile: a crash takes answers back", "control: nothing is granted"},
		Pale:  "pale: 10,000 entities, Zipf 0.99",
	}
	for _, m := range r.Cells {
		if m.Offered > 0 {
			continue // its rate is the offered rate
		}
		n := len(rates.Groups)
		if n == 0 || rates.Groups[n-1].Name != m.System {
			rates.Groups = append(rates.Groups, plot.BarGroup{Name: m.System, Kind: slices.Index(kinds, m.Kind)})
			n++
		}
		g := &rates.Groups[n-1]
		if len(g.Rows) == 0 || g.Rows[len(g.Rows)-1].Name != m.Way {
			g.Rows = append(g.Rows, plot.BarRow{Name: m.Way, Value: math.NaN(), Pale: math.NaN()})
		}
		row := &g.Rows[len(g.Rows)-1]
		switch {
		case m.Median.Rate <= 0: // no bar on a logarithmic axis
		case m.Workload == Hot:
			row.Value = m.Median.Rate
		case m.Workload == Zipf:
			row.Pale = m.Median.Rate
		}
	}
	return &plot.Figure{Panels: []plot.Panel{rates}, Width: 825, Height: rates.Height()}
}
