package samya

import (
	"cmp"
	"math"
	"slices"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

var (
	minuteAxis = plot.Axis{Label: "time", Unit: "min", Zero: true}
	rateAxis   = plot.Axis{Label: "committed", Unit: "transactions/s", Zero: true}
)

// window is the number of minutes in an average of the paper's throughput.
const window = 5

// rateLines draws the moving averages of the throughput of runs over time.
func (r *runs) rateLines(name string, plays []play, over int) *plot.Lines {
	l := &plot.Lines{Title: name, X: minuteAxis, Y: rateAxis}
	for _, p := range plays {
		line := overMinutes(title(p.system), moving(r.perMinute(p, func(o *outcome) []float64 { return o.byMinute }), over), 1.0/60)
		line.Strong = p.system == product
		l.Series = append(l.Series, line)
	}
	return l
}

// tailLines draws the 99th percentiles of runs over time.
func (r *runs) tailLines(name string, plays []play) *plot.Lines {
	l := &plot.Lines{Title: name, X: minuteAxis, Y: plot.Axis{Label: "p99 of the worst 10 s", Unit: "ms", Log: true}}
	for _, p := range plays {
		values := r.perMinute(p, func(o *outcome) []float64 { return o.tailByMinute })
		for i, v := range values {
			values[i] = max(v, leastShown)
		}
		line := overMinutes(title(p.system), values, 1)
		line.Strong = p.system == product
		l.Series = append(l.Series, line)
	}
	return l
}

// product is the system that stands out in figures: samya with default settings.
const product = transfers

// percentileRows draws the latencies of runs, with a row for each run, the lowest
// latency on top.
func (r *runs) percentileRows(name string, plays []play) *plot.Ranges {
	panel := &plot.Ranges{Title: name, X: plot.Axis{Label: "latency", Unit: "ms", Log: true}, Points: []string{"p50", "p99", "p99.9"}}
	of := []figure{
		func(o *outcome) float64 { return o.all.p50 }, func(o *outcome) float64 { return o.all.p99 }, func(o *outcome) float64 { return o.all.p999 },
	}
	for _, p := range plays {
		row := plot.Row{Name: title(p.system), Strong: p.system == product}
		for _, f := range of {
			row.Values = append(row.Values, max(r.median(p, f), leastShown))
		}
		panel.Rows = append(panel.Rows, row)
	}
	slices.SortStableFunc(panel.Rows, func(a, b plot.Row) int { return cmp.Compare(a.Values[len(of)-1], b.Values[len(of)-1]) })
	return panel
}

// leastShown replaces smaller values on a logarithmic axis.
const leastShown = .1

// overMinutes returns a line through the ends of minutes.
func overMinutes(name string, values []float64, scale float64) plot.Series {
	s := plot.Series{Name: name}
	for i, v := range values {
		s.Points = append(s.Points, plot.Point{X: float64(i + 1), Y: v * scale})
	}
	return s
}

// against draws a figure of runs, with a line for each system, against a number
// such as the limit.
func (r *runs) against(l *plot.Lines, systems []string, xs []int, at func(system string, x int) play, f figure) *plot.Lines {
	for _, s := range systems {
		line := plot.Series{Name: title(s), Marks: true, Strong: s == product}
		for _, x := range xs {
			y := r.median(at(s, x), f)
			if math.IsNaN(y) || l.Y.Log && y <= 0 {
				continue
			}
			line.Points = append(line.Points, plot.Point{X: float64(x), Y: y})
		}
		if len(line.Points) > 0 {
			l.Series = append(l.Series, line)
		}
	}
	return l
}

// bars draws figures of runs: a group for each run, a bar for each figure.
func (r *runs) bars(b *plot.Bars, plays []play, group func(play) string, of map[string]figure, order ...string) *plot.Bars {
	for _, p := range plays {
		b.Groups = append(b.Groups, group(p))
	}
	for _, name := range order {
		s := plot.BarSeries{Name: name}
		for _, p := range plays {
			v := r.median(p, of[name])
			if b.Y.Log && v <= 0 {
				v = math.NaN()
			}
			s.Values = append(s.Values, v)
		}
		b.Series = append(b.Series, s)
	}
	return b
}

// picture returns a figure of panels.
func picture(name, caption string, panels ...plot.Panel) experiment.Figure {
	return experiment.Figure{Name: name, Caption: caption, Figure: plot.New(panels...)}
}
