package earlylab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/samya-db/samya/kvpart/early"
)

// The applications.
const (
	List = "list"
	KV   = "kv"
)

// ErrOptions says that an option is out of range. Nothing was measured.
var ErrOptions = errors.New("bad option")

// Options describe a measurement.
type Options struct {
	// App is List or KV. Size is the number of values in each list, or of keys in all.
	App  string
	Size int
	// Shards is the number of shards, Threads the threads of each.
	Shards, Threads int
	// Writes is the share of writes, Global the share of requests to all shards, Skew the
	// share of the others that go to the first shard; each is in 0 to 1.
	Writes, Global, Skew float64
	// Computed takes the mapping from the expected weights, in place of the paper's.
	Computed bool
	// Requests is the number of requests of a round. Each mode runs Rounds rounds, in turns.
	Requests, Rounds int
	// Batch is the number of requests handed over at a time; 0 is 1.
	Batch int
	// Queue bounds the requests that wait at a thread; 0 is 65,536.
	Queue int
	// Seed draws the requests.
	Seed uint64
	// Now reads a clock.
	Now func() time.Time `json:"-"`
}

// Default is the paper's light list on two shards.
func Default() Options {
	return Options{App: List, Size: 1000, Shards: 2, Threads: 1, Writes: .1, Global: .01, Requests: 20_000, Rounds: 5, Queue: 64, Seed: 1}
}

func (o *Options) values() int {
	if o.App == KV {
		return max(1, o.Size/o.Shards)
	}
	return o.Size
}

func (o *Options) check() error {
	for _, c := range []struct {
		bad        bool
		name, want string
	}{
		{o.App != List && o.App != KV, "app", "list or kv"},
		{o.Size < 1 || o.Size > 10_000_000, "size", "in 1 to 10,000,000"},
		{o.Shards < 1 || o.Shards > 64, "shards", "in 1 to 64"},
		{o.Threads < 1 || o.Shards*o.Threads > early.MaxThreads, "threads", fmt.Sprintf("at least 1, and %d in all shards", early.MaxThreads)},
		{!(o.Writes >= 0 && o.Writes <= 1), "writes", "in 0 to 1"},
		{!(o.Global >= 0 && o.Global <= 1), "global", "in 0 to 1"},
		{!(o.Skew >= 0 && o.Skew <= 1), "skew", "in 0 to 1"},
		{o.Requests < 1 || o.Requests > 10_000_000, "requests", "in 1 to 10,000,000"},
		{o.Batch < 0 || o.Batch > 1<<16, "batch", "in 0 to 65,536"},
		{o.Queue < 0 || o.Queue > 1<<20, "queue", "in 0 to 1,048,576"},
		{o.Rounds < 1 || o.Rounds > 1000, "rounds", "in 1 to 1,000"},
	} {
		if c.bad {
			return fmt.Errorf("%w: --%s must be %s", ErrOptions, c.name, c.want)
		}
	}
	return nil
}

// Sequential names the run on a single thread.
const Sequential = "sequential"

// Row is the result of a mode: medians of the rounds.
type Row struct {
	Mode string `json:"mode"`
	// Rate is in requests a second. Ratio is of the sequential run, median of the rounds;
	// Low and High are the least and the greatest.
	Rate  float64 `json:"requests_per_second"`
	Ratio float64 `json:"of_sequential"`
	Low   float64 `json:"least"`
	High  float64 `json:"greatest"`
	// Waited is the share of requests with several threads waiting, Stolen the share of
	// stolen requests, both of the last round.
	Waited float64 `json:"waited"`
	Stolen float64 `json:"stolen"`
}

// Measure runs all modes on the same requests. It fails if a mode ends in another state
// than the sequential run.
func Measure(ctx context.Context, o *Options) ([]Row, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	classes, mapping, err := o.mapping()
	if err != nil {
		return nil, err
	}
	one := oneThread(classes)
	rows := []Row{{Mode: Sequential}}
	for _, m := range early.Modes() {
		rows = append(rows, Row{Mode: m.String()})
	}
	rates, ratios := make([][]float64, len(rows)), make([][]float64, len(rows))
	for round := range o.Rounds {
		var want uint64
		for i := range rows {
			if err := context.Cause(ctx); err != nil {
				return nil, fmt.Errorf("measure: %w", err)
			}
			options := early.Options{Mode: early.BusyWait, Classes: classes, Mapping: one, Queue: cmp.Or(o.Queue, 1<<16)}
			if i > 0 {
				options.Mode, options.Mapping = early.Modes()[i-1], mapping
			}
			rate, sum, err := o.round(&options, o.Seed+uint64(round), &rows[i])
			switch {
			case err != nil:
				return nil, err
			case i == 0:
				want = sum
			case sum != want:
				return nil, fmt.Errorf("seed %d: %s ends in another state than the sequential run", o.Seed+uint64(round), rows[i].Mode)
			}
			rates[i] = append(rates[i], rate)
			ratios[i] = append(ratios[i], rate/rates[0][round])
		}
	}
	for i := range rows {
		slices.Sort(rates[i])
		slices.Sort(ratios[i])
		rows[i].Rate, rows[i].Ratio = rates[i][len(rates[i])/2], ratios[i][len(ratios[i])/2]
		rows[i].Low, rows[i].High = ratios[i][0], ratios[i][len(ratios[i])-1]
	}
	return rows, nil
}

// mapping returns the classes, and their mapping to threads.
func (o *Options) mapping() (*early.Classes, *early.Mapping, error) {
	classes, mapping, err := early.Shards(o.Shards, o.Threads)
	if errors.Is(err, early.ErrMapping) {
		return nil, nil, fmt.Errorf("%w: --shards, --threads: %w", ErrOptions, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("map classes to threads: %w", err)
	}
	if o.Computed {
		if mapping, err = classes.Map(o.Shards*o.Threads, o.weights()); err != nil {
			return nil, nil, fmt.Errorf("compute a mapping: %w", err)
		}
	}
	return classes, mapping, nil
}

// oneThread maps all classes to a single thread.
func oneThread(classes *early.Classes) *early.Mapping {
	one := &early.Mapping{Threads: 1}
	for range classes.Len() {
		one.Of = append(one.Of, early.Assignment{Sequential: true, Threads: []int{0}})
	}
	return one
}

// weights are the expected shares of the classes.
func (o *Options) weights() []float64 {
	w := make([]float64, 2*o.Shards+2)
	global := o.Global
	if o.Shards == 1 {
		global = 0
	}
	for i := range o.Shards {
		part := (1 - global) * (1 - o.Skew) / float64(o.Shards)
		if i == 0 {
			part += (1 - global) * o.Skew
		}
		w[2*i], w[2*i+1] = part*(1-o.Writes), part*o.Writes
	}
	w[2*o.Shards], w[2*o.Shards+1] = global*(1-o.Writes), global*o.Writes
	return w
}

// round runs all requests once, on fresh state.
func (o *Options) round(options *early.Options, seed uint64, row *Row) (rate float64, sum uint64, err error) {
	state := o.state()
	requests := o.trace(seed)
	for _, r := range requests {
		r.app = state
	}
	s, err := early.New(*options)
	if err != nil {
		return 0, 0, fmt.Errorf("start a scheduler: %w", err)
	}
	var batches [][]early.Request
	for some := range slices.Chunk(requests, max(o.Batch, 1)) {
		var batch []early.Request
		for _, r := range some {
			batch = append(batch, early.Request{Class: r.class, Job: r})
		}
		batches = append(batches, batch)
	}
	began := o.Now()
	for _, batch := range batches {
		if len(batch) == 1 {
			s.Submit(batch[0].Class, batch[0].Job)
			continue
		}
		s.SubmitAll(batch)
	}
	s.Close()
	took := o.Now().Sub(began)
	st := s.Stats()
	row.Waited, row.Stolen = float64(st.Sequential)/float64(len(requests)), float64(st.Stolen)/float64(len(requests))
	return float64(len(requests)) / max(took, 1).Seconds(), state.sum(), nil
}

// state makes the state of the application.
func (o *Options) state() app {
	if o.App == KV {
		return newStores(o.Shards, o.Size)
	}
	return newLists(o.Shards, o.Size)
}

// WriteText writes rows as a table.
func WriteText(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "mode\trequests/s\tof sequential\tleast\tgreatest\twaited %\tstolen %\t")
	for _, r := range rows {
		_, _ = fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.1f\t%.1f\t\n", r.Mode, r.Rate, r.Ratio, r.Low, r.High, 100*r.Waited, 100*r.Stolen)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	return nil
}
