package rls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/samya-db/samya/lab/compare"
)

// Options are the options of a measurement.
type Options struct {
	// Bin is the samya program, Self a program that knows [EchoCommand], and Ratelimit the
	// program of envoyproxy/ratelimit; empty leaves it out.
	Bin, Self, Ratelimit string
	// Gubernator is the program of Gubernator; empty leaves it out.
	Gubernator      string
	Callers, Rounds int
	Warmup, Time    time.Duration
	// Dir holds a directory for data and logs, on a disk.
	Dir string
	// Progress, if not nil, is called with messages of progress.
	Progress func(string)
}

// Report is the result.
type Report struct {
	Callers int    `json:"callers"`
	Rounds  int    `json:"rounds"`
	Rows    []Row  `json:"rows"`
	Goals   []Goal `json:"goals"`
}

// Row is the result of a system.
type Row struct {
	System  string           `json:"system"`
	Samples []compare.Sample `json:"samples"`
	// Rate is decisions a second; latencies and processor time are in µs. All are medians.
	Rate      float64 `json:"rate"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	ServerCPU float64 `json:"server_cpu_us"`
	ClientCPU float64 `json:"client_cpu_us"`
}

// Goal is a goal for the rate of the site over another's.
type Goal struct {
	Over   string  `json:"over"`
	Wanted float64 `json:"wanted"`
	Got    float64 `json:"got"`
}

// startTime bounds the start of all systems.
const startTime = time.Minute

// Run measures. It leaves no process and no file behind.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	dir, err := os.MkdirTemp(o.Dir, "samya-rls-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for data and logs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	var systems []*system
	defer func() {
		for _, s := range systems {
			err = errors.Join(err, s.stop(context.WithoutCancel(ctx)))
		}
	}()
	starting, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	starts := []func(home string) (*system, error){
		func(home string) (*system, error) { return startSite(starting, o.Bin, home) },
		func(home string) (*system, error) { return startAppManager(starting, o.Bin, home) },
		func(home string) (*system, error) { return startEcho(starting, o.Self, home) },
	}
	if o.Ratelimit != "" {
		starts = append(starts, func(home string) (*system, error) { return startPeer(starting, o.Ratelimit, home) })
	}
	if o.Gubernator != "" {
		starts = append(starts, func(home string) (*system, error) { return startGubernator(starting, o.Gubernator, home) })
	}
	r := &Report{Callers: o.Callers, Rounds: o.Rounds}
	for i, start := range starts {
		home := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(home, 0o700); err != nil {
			return nil, err
		}
		s, err := start(home)
		if err != nil {
			return nil, err
		}
		systems = append(systems, s)
		r.Rows = append(r.Rows, Row{System: s.name})
	}
	for round := range o.Rounds {
		for i := range systems {
			at := (i + round) % len(systems)
			s, err := measure(ctx, systems[at], &o, round)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", systems[at].name, err)
			}
			o.Progress(fmt.Sprintf("round %d of %d, %s: %.0f a second, p50 %.0f µs, p99 %.0f µs", round+1, o.Rounds, systems[at].name, s.Rate, s.P50, s.P99))
			r.Rows[at].Samples = append(r.Rows[at].Samples, *s)
		}
	}
	r.judge()
	return r, nil
}

// measure asks a system for a while.
func measure(ctx context.Context, s *system, o *Options, round int) (_ *compare.Sample, err error) {
	d, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return compare.Measure(ctx, d, &compare.Load{
		Callers: o.Callers, Batch: 1, Entities: []string{"hot"}, Draws: make([]uint32, o.Callers), Prefix: fmt.Sprint(round),
		Warmup: o.Warmup, Time: o.Time, Usage: func() (compare.Usage, error) { return compare.UsageOf(s.pids) },
	})
}

func median(all []float64) float64 {
	slices.Sort(all)
	n := len(all)
	if n == 0 {
		return 0
	}
	return (all[(n-1)/2] + all[n/2]) / 2
}

// judge works out medians and goals.
func (r *Report) judge() {
	of := func(row *Row, f func(*compare.Sample) float64) float64 {
		var all []float64
		for i := range row.Samples {
			all = append(all, f(&row.Samples[i]))
		}
		return median(all)
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Rate = of(row, func(s *compare.Sample) float64 { return s.Rate })
		row.P50, row.P99 = of(row, func(s *compare.Sample) float64 { return s.P50 }), of(row, func(s *compare.Sample) float64 { return s.P99 })
		row.ServerCPU = of(row, func(s *compare.Sample) float64 { return s.ServerCPU })
		row.ClientCPU = of(row, func(s *compare.Sample) float64 { return s.ClientCPU })
	}
	wanted := map[string]float64{Echo: .75, Peer: 1.5}
	for i := range r.Rows {
		if wanted[r.Rows[i].System] == 0 {
			continue // samya's own
		}
		var ratios []float64
		for n := range r.Rows[i].Samples {
			ratios = append(ratios, r.Rows[0].Samples[n].Rate/r.Rows[i].Samples[n].Rate)
		}
		r.Goals = append(r.Goals, Goal{Over: r.Rows[i].System, Wanted: wanted[r.Rows[i].System], Got: median(ratios)})
	}
}

// Met reports whether all goals are met.
func (r *Report) Met() bool {
	return !slices.ContainsFunc(r.Goals, func(g Goal) bool { return g.Got < g.Wanted })
}

// WriteText writes the tables.
func (r *Report) WriteText(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "decisions of %d callers over a connection, an entity; medians of %d rounds in turn\n\n", r.Callers, r.Rounds); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "system\ta second\tp50 ms\tp99 ms\tserver µs\tclient µs") // Flush tells the error
	for _, row := range r.Rows {
		_, _ = fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%.2f\t%.1f\t%.1f\n", row.System, row.Rate, row.P50/1e3, row.P99/1e3, row.ServerCPU, row.ClientCPU)
	}
	_, _ = fmt.Fprintln(t)
	for _, g := range r.Goals {
		said := "met"
		if g.Got < g.Wanted {
			said = "MISSED"
		}
		_, _ = fmt.Fprintf(t, "%s, over %s\t%s\twanted %.2f\tgot %.2f\n", r.Rows[0].System, g.Over, said, g.Wanted, g.Got)
	}
	return t.Flush()
}
