package compare

import (
	"runtime"
	"slices"
	"time"
)

// Report is the result of a run.
type Report struct {
	// Cores is the number of this machine's processors, shared by all processes.
	Cores int `json:"cores"`
	// Rounds and Seconds are the number and the length of the measurements of a
	// cell.
	Rounds  int     `json:"rounds"`
	Seconds float64 `json:"seconds"`
	// Cells are in the order of the systems and their ways.
	Cells []*Measured `json:"cells"`
	// Goals are the judged goals; [Report.Judge] sets them.
	Goals []Goal `json:"goals,omitempty"`
}

// Measured is a cell with its figures.
type Measured struct {
	Cell
	Kind    Kind   `json:"kind"`
	Promise string `json:"promise"`
	// Settings are the settings of the system that differ from its defaults.
	Settings string `json:"settings,omitempty"`
	Callers  int    `json:"callers"`
	Batch    int    `json:"batch"`
	// Offered is the number of operations a second that are due in an open loop; else 0.
	Offered int `json:"offered,omitempty"`
	// Median holds the median of each figure.
	Median Sample `json:"median"`
	// Lowest and Highest are the extreme rates of the rounds.
	Lowest  float64 `json:"lowest_rate"`
	Highest float64 `json:"highest_rate"`
	// Samples are in the order of the rounds.
	Samples []*Sample `json:"samples"`
}

// newReport returns a report of the wanted cells, without figures.
func newReport(o *Options) *Report {
	r := &Report{Cores: runtime.NumCPU(), Rounds: o.Rounds, Seconds: o.Time.Round(time.Millisecond).Seconds()}
	for _, s := range o.Systems {
		about := s.About()
		for _, w := range about.Ways {
			for _, c := range o.wanted(&about, w) {
				r.Cells = append(r.Cells, &Measured{
					Cell: c, Kind: about.Kind, Promise: about.Promise, Settings: about.Settings,
					Callers: w.Callers, Batch: w.Batch, Offered: w.Offered,
				})
			}
		}
	}
	return r
}

// find returns a cell, or nil for a cell not in the report.
func (r *Report) find(c Cell) *Measured {
	for _, m := range r.Cells {
		if m.Cell == c {
			return m
		}
	}
	return nil
}

func (r *Report) add(c Cell, s *Sample) {
	m := r.find(c)
	m.Samples = append(m.Samples, s)
}

// summarize fills in the medians.
func (r *Report) summarize() {
	for _, m := range r.Cells {
		of := func(figure func(*Sample) float64) float64 { return median(m.figures(figure)) }
		m.Median = Sample{
			Operations: int64(of(func(s *Sample) float64 { return float64(s.Operations) })),
			Seconds:    of(func(s *Sample) float64 { return s.Seconds }),
			Rate:       of(rate), P50: of(func(s *Sample) float64 { return s.P50 }),
			P99: of(p99), P999: of(p999),
			ServerCPU: of(func(s *Sample) float64 { return s.ServerCPU }),
			ClientCPU: of(func(s *Sample) float64 { return s.ClientCPU }),
		}
		rates := m.figures(rate)
		m.Lowest, m.Highest = slices.Min(rates), slices.Max(rates)
	}
}

func rate(s *Sample) float64 { return s.Rate }
func p99(s *Sample) float64  { return s.P99 }
func p999(s *Sample) float64 { return s.P999 }

func serverCPU(s *Sample) float64 { return s.ServerCPU }

// figures returns a figure of all samples.
func (m *Measured) figures(figure func(*Sample) float64) []float64 {
	values := make([]float64, len(m.Samples))
	for i, s := range m.Samples {
		values[i] = figure(s)
	}
	return values
}

// median returns the middle of values; for an even number, the mean of the middle
// two. It does not change values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ratio returns the median over the rounds of a figure of a over a figure of b.
func ratio(a *Measured, of func(*Sample) float64, b *Measured, to func(*Sample) float64) float64 {
	ratios := make([]float64, min(len(a.Samples), len(b.Samples)))
	for i := range ratios {
		ratios[i] = of(a.Samples[i]) / to(b.Samples[i])
	}
	return median(ratios)
}
