package coreslab

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

// costs are round costs, of the order of a machine's.
func costs() *Costs {
	return &Costs{
		Entities: 10_000, Remembered: 1_000_000, Receive: 5000, Decode: 450, Step: 600, Stepped: 10, Serve: 400, Table: 350, Hot: 80, Served: 15,
		Drain: 500, Forget: 200, Append: 8000, Encode: 60, Join: 30, Pack: 25, Syncs: []float64{100_000, 120_000, 200_000}, Pairs: []float64{150_000, 200_000, 260_000},
		Finish: 40, Reply: 250, Send: 5000, Wake: 8000, Handover: 30_000, Yield: 50, Transfer: 80, Client: 700, ClientMessage: 11_000,
	}
}

// run plays some tens of milliseconds.
func run(tb testing.TB, o Options) *Result {
	tb.Helper()
	if o.Warmup, o.Time = 30*time.Millisecond, 60*time.Millisecond; o.Connections == 0 {
		o.Connections = 16
	}
	r, err := Run(o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// TestRunsAreEqual: equal options have equal results, other seeds others.
func TestRunsAreEqual(t *testing.T) {
	for _, p := range plans {
		o := Options{Design: p.of, Cores: 4, Callers: 1024, Costs: costs(), Seed: 3, Local: p.of == product}
		a, b := run(t, o), run(t, o)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %+v, then %+v", p.name, a, b)
		}
		if o.Seed++; reflect.DeepEqual(a, run(t, o)) {
			t.Errorf("%s: another seed has the same result", p.name)
		}
	}
}

// TestMoreCoresAreNoSlower: with more cores a design answers as much, but for a tenth: answers
// leave in smaller messages where a thread is free for each. Two commits in flight are left
// out: on few cores callers come in halves, whose steps and commits overlap, and on many
// cores all come at once.
func TestMoreCoresAreNoSlower(t *testing.T) {
	for _, p := range plans {
		if p.of.has(TwoCommits) {
			continue
		}
		before := 0.
		for _, cores := range []int{1, 2, 4, 8, 16} {
			r := run(t, Options{Design: p.of, Cores: cores, Callers: 8192, Costs: costs(), Forgets: true})
			if r.Rate < .9*before {
				t.Errorf("%s: %.0f a second on %d cores, %.0f before", p.name, r.Rate, cores, before)
			}
			before = max(before, r.Rate)
		}
	}
}

// TestNoPartExceedsItsCost: no part does more than its cost allows, and no design more than
// its cores. Time is neither lost nor made.
func TestNoPartExceedsItsCost(t *testing.T) {
	c := costs()
	for _, p := range plans {
		for _, cores := range []int{1, 4, 32} {
			for _, callers := range []int{16, 4096} {
				r := run(t, Options{Design: p.of, Cores: cores, Callers: callers, Costs: c, Forgets: true})
				// A batch may be answered at the end that was served before.
				bound := func(what string, nanos float64) {
					if most := 1e9/nanos*1.02 + float64(2*callers)/.06; r.Rate > most {
						t.Errorf("%s, %d cores, %d callers: %.0f a second, %s allows %.0f", p.name, cores, callers, r.Rate, what, most)
					}
				}
				if p.of.has(Shards) && !p.of.has(Striped) && callers > worthATurn*16 {
					bound("the table", c.Table)
				}
				if !p.of.has(Shards) {
					bound("the turn", c.Step+c.Forget)
				}
				if !p.of.has(OwnReplies) {
					bound("the finisher", c.Finish)
				}
				bound("the cores", (c.Decode+c.Finish+c.Reply)/float64(cores))
				// Work counts as it begins.
				if r.Used > 1.1 || r.Busy > 1.1 || r.Rate <= 0 || r.P50 > r.P99 {
					t.Errorf("%s, %d cores, %d callers: %+v", p.name, cores, callers, r)
				}
			}
		}
	}
}

// TestParts: what a part is for shows where it is the bottleneck.
func TestParts(t *testing.T) {
	rate := func(d Design, change func(*Costs)) float64 {
		c := costs()
		change(c)
		return run(t, Options{Design: d, Cores: 16, Callers: 8192, Costs: c, Forgets: true}).Rate
	}
	for what, c := range map[string]struct {
		with, without Design
		change        func(*Costs)
	}{
		"shards":      {product, 0, func(c *Costs) { c.Step, c.Serve, c.Table, c.Forget = 3000, 2900, 20, 1 }},
		"stripes":     {product | Striped, product, func(c *Costs) { c.Table, c.Forget = 2000, 1 }},
		"forgetting":  {product | Striped | OwnForgetting, product | Striped, func(c *Costs) { c.Forget = 1000 }},
		"own log":     {product, Shards, func(c *Costs) { c.Encode, c.Join, c.Pack, c.Table = 2000, 10, 1900, 20 }},
		"own replies": {all, all &^ OwnReplies, func(c *Costs) { c.Finish = 2000 }},
		"two commits": {all, all &^ TwoCommits, func(c *Costs) { c.Syncs, c.Pairs = []float64{20e6}, []float64{20e6} }},
	} {
		if with, without := rate(c.with, c.change), rate(c.without, c.change); with < 1.3*without {
			t.Errorf("%s: %.0f a second, without %.0f", what, with, without)
		}
	}
}

// TestTaken: where others take half of the cores, half of the work is done.
func TestTaken(t *testing.T) {
	o := Options{Cores: 1, Callers: 1024, Costs: costs(), Local: true}
	whole := run(t, o)
	o.Taken = .5
	if half := run(t, o); half.Rate > .62*whole.Rate || half.Rate < .4*whole.Rate || half.Nanos > 1.1*whole.Nanos {
		t.Errorf("%+v, of half of the cores %+v", whole, half)
	}
}

func TestBadOptions(t *testing.T) {
	good := Options{Cores: 1, Callers: 1, Connections: 1, Time: time.Second, Costs: costs()}
	for what, change := range map[string]func(*Options){
		"no cores":          func(o *Options) { o.Cores = 0 },
		"too many cores":    func(o *Options) { o.Cores = mostCores + 1 },
		"no connections":    func(o *Options) { o.Connections = 0 },
		"no callers":        func(o *Options) { o.Callers = 0 },
		"no time":           func(o *Options) { o.Time = 0 },
		"no costs":          func(o *Options) { o.Costs = nil },
		"no syncs":          func(o *Options) { o.Costs = new(Costs) },
		"parts of no shard": func(o *Options) { o.Design = Striped },
		"no such part":      func(o *Options) { o.Design = all + 1 },
		"all taken":         func(o *Options) { o.Taken = 1 },
	} {
		o := good
		change(&o)
		if _, err := Run(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
