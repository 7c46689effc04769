package repartitioning

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// Pause measures how long requests stand still for a switch.
var Pause = experiment.Experiment{
	Name:  "pause",
	Short: "How long requests stand still for a switch while a large graph is cut",
	Long: `Scans keys that are all wanted as often, so that the graph has a vertex for each of
them, and has it cut and applied again and again while requests go on: one
goroutine hands them to workers (strategy threaded), or eight clients run them
themselves (soft). Tells the pause at the switches beside the cuts' seconds and
vertices.`,
	New: func(f *pflag.FlagSet) experiment.Run {
		o := &pauseOptions{}
		o.flags(f)
		return func(ctx context.Context, env *experiment.Env) (*experiment.Result, error) {
			return o.run(ctx, env, func(o kvpart.Options) (clientStore, error) { return kvpart.Open(o) })
		}
	},
}

// clientStore is a store with clients that run their own requests.
type clientStore interface {
	store
	Read(ctx context.Context, key string, dst []byte) ([]byte, error)
	Write(ctx context.Context, key string, value []byte) error
	Scan(ctx context.Context, from string, limit int, dst []kvpart.Pair) ([]kvpart.Pair, error)
}

// pauseOptions are the flags of pause.
type pauseOptions struct {
	records   int
	switches  int
	workers   int
	clients   int
	valueSize int
	limit     time.Duration
}

func (o *pauseOptions) flags(f *pflag.FlagSet) {
	f.IntVar(&o.records, "records", 200_000, "records that are there before: keys, and so vertices")
	f.IntVar(&o.switches, "switches", 100, "how many switches to see under each strategy")
	f.IntVar(&o.workers, "partitions", 4, "partitions, each with a worker")
	f.IntVar(&o.clients, "clients", 8, "clients, of strategy soft")
	f.IntVar(&o.valueSize, "value-size", 1024, "bytes of a value")
	f.DurationVar(&o.limit, "timeout", 5*time.Minute, "how long to wait at most, under each strategy")
}

func (o *pauseOptions) check() error {
	bad := func(flag, want string) error {
		return fmt.Errorf("%w: --%s must be %s", experiment.ErrOptions, flag, want)
	}
	switch {
	case o.records < 1000 || o.records > 1<<24:
		return bad("records", "within 1000 and 16777216")
	case o.switches < 1 || o.switches > 1_000_000:
		return bad("switches", "within 1 and 1000000")
	case o.workers < 2 || o.workers > 64:
		return bad("partitions", "within 2 and 64")
	case o.clients < 1 || o.clients > 1024:
		return bad("clients", "within 1 and 1024")
	case o.valueSize < 1 || o.valueSize > 1<<20:
		return bad("value-size", "within 1 and 1048576")
	case o.limit < time.Second || o.limit > 24*time.Hour:
		return bad("timeout", "within 1s and 24h")
	}
	return nil
}

// The goals: the size of a large graph, the time of a real cut, and the longest
// pause of a switch meanwhile.
const (
	leastVertices = 100_000
	leastCut      = 100 * time.Millisecond
	mostPause     = time.Millisecond
	leastSwitches = 100
)

// errSlow says that too few switches came in time.
var errSlow = errors.New("too few switches in time")

// observed is the measurements of a strategy.
type observed struct {
	strategy kvpart.Strategy
	seconds  float64
	done     int64
	stats    kvpart.Stats
	cuts     []cutSeen
}

// cutSeen is a finished cut.
type cutSeen struct {
	at       time.Duration
	took     time.Duration
	vertices int
	edges    int
	longest  time.Duration // longest pause so far
}

func (o *pauseOptions) run(ctx context.Context, env *experiment.Env, open func(kvpart.Options) (clientStore, error)) (*experiment.Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	settled := *o
	if env.Quick {
		settled.switches = min(o.switches, 5)
	}
	defer relaxCollector()()
	l, err := newLoad(loadOptions{workload: "E", records: o.records, ops: o.records, uniform: true, seed: env.Seed})
	if err != nil {
		return nil, err
	}
	strategies := []kvpart.Strategy{kvpart.Threaded, kvpart.Soft}
	var all []*observed
	for i, strategy := range strategies {
		seen, err := settled.observe(ctx, env, strategy, l, open, func(applied int64) {
			env.Progress(i*settled.switches+int(applied), len(strategies)*settled.switches, fmt.Sprintf("%s: %d switches", strategy, applied))
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strategy, err)
		}
		all = append(all, seen)
	}
	return settled.result(all), nil
}

// observe runs requests under a strategy until it has seen enough switches.
func (o *pauseOptions) observe(ctx context.Context, env *experiment.Env, strategy kvpart.Strategy, l *load, open func(kvpart.Options) (clientStore, error), progress func(applied int64)) (seen *observed, err error) {
	st, err := open(kvpart.Options{
		Place:    kvpart.RoundRobin, // as in the paper
		Strategy: strategy, Partitions: o.workers, Backend: "btree", Seed: env.Seed,
		Policy: kvpart.Policy{
			Kind: kvpart.Async, Every: time.Millisecond, Gain: -1, Share: 1, Sample: 1,
			Vertices: 2 * o.records, Edges: 32 * o.records,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	d := newDriver(st, l, o.valueSize, dropInFlight, env.Now)
	if err := d.preload(ctx); err != nil {
		return nil, err
	}
	before := st.Stats()
	ctx, stop := context.WithTimeoutCause(ctx, o.limit, errSlow)
	defer stop()
	running, enough := context.WithCancelCause(ctx)
	defer enough(nil)
	var group *errgroup.Group
	group, running = errgroup.WithContext(running)
	if strategy == kvpart.Threaded {
		group.Go(func() error { return o.hand(running, d) })
	} else {
		for client := range o.clients {
			group.Go(func() error { return o.client(running, st, d, client) })
		}
	}
	seen = &observed{strategy: strategy}
	began := env.Now()
	group.Go(func() error {
		defer enough(errEnough)
		return seen.watch(running, st, before, began, env.Now, int64(o.switches), progress)
	})
	err = group.Wait()
	seen.seconds, seen.stats, seen.done = env.Now().Sub(began).Seconds(), st.Stats(), d.done.Load()
	if errors.Is(err, errEnough) || errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = nil
	}
	return seen, err
}

// errEnough ends the requests after the last switch.
var errEnough = errors.New("seen enough")

// hand hands over the requests of the load in a loop.
func (o *pauseOptions) hand(ctx context.Context, d *driver) error {
	for ctx.Err() == nil {
		if err := d.run(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// client runs requests of the load itself.
func (o *pauseOptions) client(ctx context.Context, st clientStore, d *driver, client int) error {
	var value []byte
	var pairs []kvpart.Pair
	for i := client; ctx.Err() == nil; i += o.clients {
		op := &d.load.ops[i%len(d.load.ops)]
		key := d.load.names[op.key]
		var err error
		switch op.kind {
		case kvpart.ReadRequest:
			value, err = st.Read(ctx, key, value[:0])
		case kvpart.WriteRequest:
			err = st.Write(ctx, key, d.value)
		default:
			pairs, err = st.Scan(ctx, key, int(op.limit), pairs)
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		d.done.Add(1)
	}
	return nil
}

// watchEvery is the interval between looks at the cuts, shorter than a cut.
const watchEvery = 10 * time.Millisecond

// watch records each cut until it has seen enough switches.
func (s *observed) watch(ctx context.Context, st store, before kvpart.Stats, began time.Time, now func() time.Time, want int64, progress func(int64)) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	last := before
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		at := st.Stats()
		if at.Computed > last.Computed {
			s.cuts = append(s.cuts, cutSeen{at: now().Sub(began), took: at.LastCutTime, vertices: at.Vertices, edges: at.Edges, longest: at.Pause.Max})
		}
		applied := at.Applied - before.Applied
		if applied > last.Applied-before.Applied && applied%10 == 0 {
			progress(applied)
		}
		last = at
		if applied >= want && s.large() >= want {
			return nil
		}
	}
}

// large counts the long cuts of large graphs. The first cuts see only the keys used
// by then.
func (s *observed) large() int64 {
	n := int64(0)
	for _, c := range s.cuts {
		if c.vertices >= leastVertices && c.took >= leastCut {
			n++
		}
	}
	return n
}

// result reports the measurements.
func (o *pauseOptions) result(all []*observed) *experiment.Result {
	r := &experiment.Result{
		Setup: fmt.Sprintf("%s keys of %s bytes in a B-tree in memory on %d partitions, 95 %% scans of %d to %d keys and 5 %% updates, all keys wanted as often; a cut begins when the last is applied, every map is applied.",
			number(float64(o.records)), number(float64(o.valueSize)), o.workers, scanMin, scanMax),
		Tables: []experiment.Table{{Heads: []string{"strategy", "at_s", "cut_ms", "vertices", "edges", "longest_pause_us"}}},
		Notes: []string{
			"The pause is from when a switch asks for the first partition until it leaves the last.",
		},
	}
	cutTimes := &plot.Lines{Title: "Cuts", X: timeAxis, Y: plot.Axis{Label: "time of a cut", Unit: "ms", Zero: true}}
	pauses := &plot.Lines{Title: "Longest pause so far", X: timeAxis, Y: plot.Axis{Label: "pause", Unit: "ms", Zero: true}}
	for _, s := range all {
		var took []float64
		cut, pause := plot.Series{Name: string(s.strategy)}, plot.Series{Name: string(s.strategy)}
		for _, c := range s.cuts {
			took = append(took, c.took.Seconds()*1000)
			cut.Points = append(cut.Points, plot.Point{X: rounded(c.at), Y: c.took.Seconds() * 1000})
			pause.Points = append(pause.Points, plot.Point{X: rounded(c.at), Y: c.longest.Seconds() * 1000})
			r.Tables[0].Rows = append(r.Tables[0].Rows, []string{
				string(s.strategy), decimal(c.at.Seconds()), millis(c.took), strconv.Itoa(c.vertices), strconv.Itoa(c.edges), micros(c.longest),
			})
		}
		cutTimes.Series, pauses.Series = append(cutTimes.Series, cut), append(pauses.Series, pause)
		p := s.stats.Pause
		ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
		r.Goals = append(
			r.Goals,
			experiment.AtLeast(fmt.Sprintf("%s: switches", s.strategy), float64(p.Count), leastSwitches, ""),
			experiment.AtLeast(fmt.Sprintf("%s: cuts of 100,000 vertices or more that took 100 ms or more", s.strategy), float64(s.large()), leastSwitches, ""),
			experiment.Below(fmt.Sprintf("%s: pause at a switch, p99", s.strategy), ms(p.P99), ms(mostPause), "ms"),
		)
		r.Compared = append(
			r.Compared,
			experiment.Comparison{What: fmt.Sprintf("%s: pause at a switch, median", s.strategy), Unit: "ms", Ours: ms(p.P50), Why: "The paper claims that there is none, and measures none."},
			experiment.Comparison{What: fmt.Sprintf("%s: the longest", s.strategy), Unit: "ms", Ours: ms(p.Max), Why: "As above; it includes what the machine takes away meanwhile."},
			experiment.Comparison{What: fmt.Sprintf("%s: a cut, median", s.strategy), Unit: "ms", Ours: median(took), Why: "The paper tells the time between switches alone."},
			experiment.Comparison{What: fmt.Sprintf("%s: requests a second meanwhile", s.strategy), Ours: float64(s.done) / s.seconds, Why: "Not held against the paper: its machine has sixteen cores."},
		)
	}
	r.Figures = []experiment.Figure{{Caption: "Time of each cut, and the longest pause at a switch so far.", Figure: &plot.Figure{Panels: []plot.Panel{cutTimes, pauses}, Height: 220}}}
	return r
}
