package repartitioning

import (
	"fmt"
	"math"
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// figures draws all pictures with numbers to draw.
func (m *measured) figures() []experiment.Figure {
	n := m.workers[len(m.workers)-1]
	var over []plot.Panel
	for _, w := range m.workloads {
		shown := []cell{m.find(w, n, single), m.find(w, n, roundRobin), m.best(w, n, "Base"), m.find(w, n, plainAsync), m.best(w, n, windowed), m.find(w, n, "Async W=1e4 Q=1e2")}
		if p := m.lines(fmt.Sprintf("Workload %s, %d workers", w, n), kiloRate, shown, throughputBins); p != nil {
			over = append(over, p)
		}
	}
	var all []experiment.Figure
	if len(over) > 0 {
		all = append(all, experiment.Figure{
			Caption: "Throughput over time by policy, of the first round.",
			Figure:  &plot.Figure{Panels: over, Height: 230},
		})
	}
	if b := m.bars(); b != nil {
		all = append(all, experiment.Figure{Name: "median", Caption: "Median throughput by policy.", Figure: &plot.Figure{Panels: b, Width: 900, Height: 280}})
	}
	if p := m.multi(); p != nil {
		all = append(all, experiment.Figure{Name: "multi", Caption: "Share of the requests of E that need several partitions, over time.", Figure: &plot.Figure{Panels: p, Height: 230}})
	}
	if p := m.drop(); p != nil {
		all = append(all, experiment.Figure{Name: "drop", Caption: "What a cut does to the throughput meanwhile: Base stops, Async does not.", Figure: &plot.Figure{Panels: p, Height: 230}})
	}
	return all
}

// The axes.
var (
	timeAxis  = plot.Axis{Label: "time", Unit: "s", Zero: true}
	kiloRate  = plot.Axis{Label: "throughput", Unit: "1000 requests/s", Zero: true}
	shareAxis = plot.Axis{Label: "on several partitions", Unit: "%", Zero: true}
)

func throughputBins(b *bin) float64 { return b.rate / 1000 }
func multiBins(b *bin) float64      { return 100 * b.multi }

// lines is a panel of some cells over time, each in its first round; nil if no cell
// ran.
func (m *measured) lines(title string, y plot.Axis, cells []cell, of func(*bin) float64) plot.Panel {
	l := &plot.Lines{Title: title, X: timeAxis, Y: y}
	drawn := make(map[cell]bool)
	for _, c := range cells {
		if runs := m.runs[c]; len(runs) > 0 && !drawn[c] {
			drawn[c] = true
			if s := (plot.Series{Name: c.name, Points: points(runs[0], of)}); len(s.Points) > 0 {
				l.Series = append(l.Series, s)
			}
		}
	}
	if len(l.Series) == 0 {
		return nil
	}
	return l
}

// longestLine is about the most points of a line: the repository keeps the
// pictures.
const longestLine = 200

// points returns the bins of a run as points. Long runs join several bins in a
// point.
func points(f *figures, of func(*bin) float64) []plot.Point {
	together := max(1, (len(f.bins)+longestLine-1)/longestLine)
	var all []plot.Point
	for at := 0; at < len(f.bins); at += together {
		group := f.bins[at:min(at+together, len(f.bins))]
		sum, n := 0.0, 0
		for i := range group {
			if v := of(&group[i]); !math.IsNaN(v) {
				sum += v
				n++
			}
		}
		middle := (group[0].from + group[len(group)-1].to) / 2
		if n > 0 {
			all = append(all, plot.Point{X: rounded(middle), Y: sum / float64(n)})
		}
	}
	return all
}

func rounded(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// bars are the medians, with a panel for each workload.
func (m *measured) bars() []plot.Panel {
	var panels []plot.Panel
	for _, w := range m.workloads {
		b := &plot.Bars{Title: "Workload " + w, X: "policy", Y: plot.Axis{Label: "median throughput", Unit: "1000 requests/s"}}
		named := make(map[string]int)
		for _, c := range m.cells {
			if _, seen := named[c.name]; c.workload == w && !seen {
				named[c.name] = len(b.Groups)
				b.Groups = append(b.Groups, c.name)
			}
		}
		for _, n := range m.workers {
			s := plot.BarSeries{Name: fmt.Sprintf("%d workers", n), Values: make([]float64, len(b.Groups))}
			for i := range s.Values {
				s.Values[i] = math.NaN()
			}
			for _, c := range m.cells {
				if c.workload == w && c.workers == n {
					s.Values[named[c.name]] = m.of(c, throughput) / 1000
				}
			}
			b.Series = append(b.Series, s)
		}
		if len(b.Groups) > 0 {
			panels = append(panels, b)
		}
	}
	return panels
}

// multi is the share on several partitions over time, with a panel for each number
// of workers.
func (m *measured) multi() []plot.Panel {
	var panels []plot.Panel
	for _, n := range m.workers {
		shown := []cell{m.find("E", n, roundRobin), m.find("E", n, longestBase), m.find("E", n, plainAsync), m.find("E", n, "Async W=1e3"), m.find("E", n, "Async W=1e5"), m.find("E", n, "Async W=1e4 Q=1e2")}
		if p := m.lines(fmt.Sprintf("Workload E, %d workers", n), shareAxis, shown, multiBins); p != nil {
			panels = append(panels, p)
		}
	}
	return panels
}

// drop is Base above Async on axes of the same scale, with the cuts shaded.
func (m *measured) drop() []plot.Panel {
	var panels []plot.Panel
	x, y := timeAxis, kiloRate
	for _, c := range m.dropCells() {
		for _, f := range m.runs[c][:min(1, len(m.runs[c]))] {
			for i := range f.bins {
				x.Reach, y.Reach = max(x.Reach, f.bins[i].to.Seconds()), max(y.Reach, throughputBins(&f.bins[i]))
			}
		}
	}
	for _, c := range m.dropCells() {
		runs := m.runs[c]
		if len(runs) == 0 {
			return nil
		}
		l := &plot.Lines{Title: c.name, X: x, Y: y, Spanned: "graph being cut"}
		for _, s := range runs[0].cuts {
			l.Spans = append(l.Spans, plot.Span{From: rounded(s.from), To: rounded(s.to)})
		}
		if len(l.Spans) == 0 {
			l.Spanned = ""
		}
		l.Series = []plot.Series{{Name: "requests ended", Points: points(runs[0], throughputBins)}}
		if len(l.Series[0].Points) == 0 {
			return nil
		}
		panels = append(panels, l)
	}
	return panels
}
