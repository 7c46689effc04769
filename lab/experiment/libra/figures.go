package libra

import (
	"fmt"
	"math"
	"strconv"

	"github.com/samya-db/samya/kvpart/libra"
	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/libralab"
	"github.com/samya-db/samya/lab/plot"
)

var nan = math.NaN()

// maxMean is the axis of all figures of balance.
var maxMean = plot.Axis{Label: "largest load over the mean"}

// figures draws the paper's figures.
func (m *measured) figures() []experiment.Figure {
	return []experiment.Figure{
		{Caption: "Figure 11: Max/Mean after balancing, mean of the seeds. 1 is even.", Figure: &plot.Figure{Panels: []plot.Panel{m.after()}, Width: 760, Height: 280}},
		{Name: "ycsb", Caption: "Figure 15d: Max/Mean of the worse dimension on YCSB.", Figure: &plot.Figure{Panels: []plot.Panel{m.ycsb()}, Width: 760, Height: 260}},
		{Name: "splits", Caption: "Figure 16: error of the share that a split separates.", Figure: plot.New(m.errors())},
		{Name: "time", Caption: "Figure 17: Max/Mean over time, by the way to split; mean of the seeds, no noise.", Figure: plot.New(m.overTime())},
		{Name: "regions", Caption: "Figure 18: regions at the end of each hot spot.", Figure: plot.New(m.byRound())},
		{Name: "durations", Caption: "Figure 21: Max/Mean just before a hot spot moves, by its duration.", Figure: plot.New(m.byDuration())},
		{Name: "lambda", Caption: "Figure 22: balance and splits by tolerance.", Figure: &plot.Figure{Panels: m.byLambda(), Height: 220}},
		{Name: "weights", Caption: "Table II: 2D-WTD by the weight of the processor.", Figure: plot.New(m.byWeight())},
	}
}

// short rounds a number for a label above a bar.
func short(v float64) float64 { return math.Round(v*100) / 100 }

// after is Figure 11.
func (m *measured) after() plot.Panel {
	b := &plot.Bars{Title: "After balancing: the busiest node over the mean", X: "policy", Y: maxMean}
	all := []libralab.Policy{off, onlyCPU, onlyDisk, isolated, weighted, ours}
	for _, p := range all {
		b.Groups = append(b.Groups, p.Name)
	}
	for _, d := range libra.Dimensions() {
		s := plot.BarSeries{Name: dimensionName(d)}
		for _, p := range all {
			s.Values = append(s.Values, short(m.mean(m.static(skewed, p), in(d))))
		}
		b.Series = append(b.Series, s)
	}
	return b
}

func (m *measured) ycsb() plot.Panel {
	b := &plot.Bars{Title: "YCSB: the worse dimension after balancing", X: "workload", Y: maxMean, Groups: m.letters}
	for _, p := range []libralab.Policy{off, isolated, weighted, ours} {
		s := plot.BarSeries{Name: p.Name}
		for _, l := range m.letters {
			s.Values = append(s.Values, short(m.mean(m.static(l, p), worse)))
		}
		b.Series = append(b.Series, s)
	}
	return b
}

func (m *measured) errors() plot.Panel {
	b := &plot.Bars{Title: "Error of a split", X: "wanted share of load", Y: plot.Axis{Label: "error", Unit: "%", Log: true}}
	for _, s := range shares {
		b.Groups = append(b.Groups, strconv.FormatFloat(s, 'g', -1, 64))
	}
	for _, by := range []struct {
		name string
		of   func(libralab.Accuracy) libra.Load
	}{
		{"L-split", func(a libralab.Accuracy) libra.Load { return a.Load }},
		{"S-split", func(a libralab.Accuracy) libra.Load { return a.Size }},
	} {
		for _, d := range libra.Dimensions() {
			s := plot.BarSeries{Name: by.name + ", " + dimensionName(d)}
			for _, a := range m.accuracy[skewed] {
				s.Values = append(s.Values, math.Round(100*by.of(a)[d]))
			}
			b.Series = append(b.Series, s)
		}
	}
	return b
}

func (m *measured) overTime() plot.Panel {
	l := &plot.Lines{Title: "The worse dimension over time", X: plot.Axis{Label: "time", Unit: "min"}, Y: maxMean}
	for _, p := range splitPolicies {
		name := p.Name
		if p == ours {
			name = "L-split"
		}
		s := plot.Series{Name: name, Strong: p == ours}
		runs := m.runs[m.split(p)]
		for i := range runs[0].Points {
			t, sum := float64(runs[0].Points[i].Second)/60, 0.
			for _, o := range runs {
				sum += worseOf(&o.Points[i])
			}
			if t <= 40 {
				s.Points = append(s.Points, plot.Point{X: t, Y: sum / float64(len(runs))})
			}
		}
		l.Series = append(l.Series, s)
	}
	return l
}

func (m *measured) byRound() plot.Panel {
	b := &plot.Bars{Title: fmt.Sprintf("Regions after each hot spot of %d min", roundMinutes), X: "hot spot", Y: plot.Axis{Label: "regions"}}
	for i := range m.rounds {
		b.Groups = append(b.Groups, strconv.Itoa(i+1))
	}
	for _, p := range []libralab.Policy{ours, eager} {
		s := plot.BarSeries{Name: p.Name}
		for _, v := range m.ends(m.round(p), regionsOf) {
			s.Values = append(s.Values, math.Round(v))
		}
		b.Series = append(b.Series, s)
	}
	return b
}

func (m *measured) byDuration() plot.Panel {
	l := &plot.Lines{Title: "The worse dimension just before the hot spot moves", X: plot.Axis{Label: "duration of a hot spot", Unit: "min", Zero: true}, Y: maxMean}
	for _, p := range durable() {
		s := plot.Series{Name: p.Name, Marks: true, Strong: p == ours}
		for _, d := range m.durations {
			s.Points = append(s.Points, plot.Point{X: float64(d), Y: m.atEnd(m.duration(p, d))})
		}
		l.Series = append(l.Series, s)
	}
	return l
}

func (m *measured) byLambda() []plot.Panel {
	balance := &plot.Bars{Title: "The busiest node above the mean", X: "tolerance λ", Y: plot.Axis{Label: "excess", Unit: "%"}}
	splits := &plot.Bars{Title: "Splits", X: "tolerance λ", Y: plot.Axis{Label: "splits", Log: true}}
	a, b := plot.BarSeries{Name: "Libra"}, plot.BarSeries{Name: "Libra"}
	for _, l := range m.lambdas {
		balance.Groups = append(balance.Groups, strconv.FormatFloat(l, 'g', -1, 64))
		a.Values = append(a.Values, math.Round(1000*(m.mean(m.tolerance(l), worse)-1))/10)
		b.Values = append(b.Values, math.Round(m.mean(m.tolerance(l), splitsOf)))
	}
	splits.Groups = balance.Groups
	balance.Series, splits.Series = []plot.BarSeries{a}, []plot.BarSeries{b}
	return []plot.Panel{balance, splits}
}

func (m *measured) byWeight() plot.Panel {
	b := &plot.Bars{Title: "2D-WTD: the worse dimension after balancing", X: "weight of the processor", Y: maxMean}
	theirs, mine, we := plot.BarSeries{Name: "paper"}, plot.BarSeries{Name: "2D-WTD here"}, plot.BarSeries{Name: "Libra here"}
	for i, w := range weights {
		b.Groups = append(b.Groups, strconv.FormatFloat(w, 'g', -1, 64))
		theirs.Values = append(theirs.Values, []float64{2.19, 2.04, 1.71, 2.11, 2.41}[i])
		mine.Values = append(mine.Values, short(m.mean(m.weight(w), worse)))
		we.Values = append(we.Values, short(m.mean(m.static(skewed, ours), worse)))
	}
	b.Series = []plot.BarSeries{theirs, mine, we}
	return b
}
