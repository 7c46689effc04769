package repartitioning

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"time"

	"github.com/samya-db/samya/kvpart"
)

// variant is a scheduling policy of the paper with its settings.
type variant struct {
	name   string // as in the paper's Table 1
	kind   kvpart.PolicyKind
	single bool // a single worker
	// interval is Δp of Base, as a share of the requests of the run.
	interval float64
	window   int // W, 0 for no bound
	queue    int // Q, 0 for no bound but the requests under way
}

// The names in goals and figures.
const (
	single     = "SW"
	roundRobin = "RR"
	plainAsync = "Async"
)

// variants returns the variants of the paper's Table 1 at our size: the paper's W,
// a tenth of the paper's Q, and Δp as about the same share of the run.
func variants() []variant {
	async := func(w, q int) variant {
		v := variant{name: plainAsync, kind: kvpart.Async, window: w, queue: q}
		if w > 0 {
			v.name += " W=" + thousands(w)
		}
		if q > 0 {
			v.name += " Q=" + thousands(q)
		}
		return v
	}
	base := func(interval float64) variant {
		return variant{name: fmt.Sprintf("Base Δp=1/%.0f", 1/interval), kind: kvpart.Base, interval: interval}
	}
	return []variant{
		{name: single, kind: kvpart.Static, single: true},
		{name: roundRobin, kind: kvpart.Static},
		base(.02), base(.1), base(.5),
		async(0, 0),
		async(0, 100), async(0, 1000),
		async(1000, 0), async(10_000, 0), async(100_000, 0),
		async(10_000, 100),
	}
}

// thousands formats powers of ten from 100 as 1e2, 1e3 and so on, other numbers
// plainly.
func thousands(n int) string {
	if power := math.Log10(float64(n)); power == math.Trunc(power) && n >= 100 {
		return "1e" + strconv.Itoa(int(power))
	}
	return strconv.Itoa(n)
}

// cell is a setting to measure.
type cell struct {
	workload string
	workers  int // of variants with several workers
	variant
}

func (c cell) String() string {
	return fmt.Sprintf("%s, %d workers, %s", c.workload, c.workers, c.name)
}

// setting is the settings common to all cells.
type setting struct {
	valueSize int
	inFlight  int
	every     time.Duration // least time between two cuts of Async
	share     float64       // share of the processor time for tracking and cutting
	gain      float64
	seed      uint64
	open      opener
	now       func() time.Time
}

// opener opens a store.
type opener func(kvpart.Options) (store, error)

// openStore opens the product's store.
func openStore(o kvpart.Options) (store, error) { return kvpart.Open(o) }

// options returns the options of a cell's store.
func (s *setting) options(c cell, l *load) kvpart.Options {
	o := kvpart.Options{
		Place:    kvpart.RoundRobin, // as in the paper
		Strategy: kvpart.Threaded, Partitions: c.workers, Backend: "btree", Queue: c.queue, Seed: s.seed,
		Policy: kvpart.Policy{Kind: c.kind},
	}
	if c.single {
		o.Partitions = 1
	}
	if o.Queue == 0 {
		o.Queue = s.inFlight
	}
	switch c.kind {
	case kvpart.Base:
		o.Policy.Operations = max(int64(c.interval*float64(len(l.ops))), 1)
		// The paper's Base does not sample and does not weigh the gain of a map.
		o.Policy.Sample, o.Policy.Gain, o.Policy.Share = 1, -1, 1
	case kvpart.Async:
		o.Policy.Window, o.Policy.Every, o.Policy.Share, o.Policy.Gain = c.window, s.every, s.share, s.gain
	}
	return o
}

// figures are the figures of a run.
type figures struct {
	makespan time.Duration
	bins     []bin
	cuts     []span
	median   float64 // requests a second: median of the bins
	spread   float64 // median coefficient of variation of the queues' lengths
	multi    float64 // share of requests on several partitions, over the whole run
	first    float64 // multi before the first switch
	once     float64 // multi between the first switch and the second, or the end
	dip      float64 // share by which throughput falls during cuts
	calm     float64 // dip outside of cuts
	loss     float64 // share by which throughput is lower during cuts than elsewhere
	longest  time.Duration
	perOp    time.Duration // processor time of the whole process
	stats    kvpart.Stats
}

// measure runs a load once under a cell's setting.
func (s *setting) measure(ctx context.Context, c cell, l *load) (f *figures, err error) {
	st, err := s.open(s.options(c, l))
	if err != nil {
		return nil, fmt.Errorf("%v: open: %w", c, err)
	}
	closed := false
	defer func() {
		if !closed {
			err = errors.Join(err, st.Close())
		}
	}()
	d := newDriver(st, l, s.valueSize, s.inFlight, s.now)
	if err := d.preload(ctx); err != nil {
		return nil, fmt.Errorf("%v: %w", c, err)
	}
	runtime.GC()

	watching, stop := context.WithCancel(ctx)
	defer stop()
	ticker := time.NewTicker(binLength)
	defer ticker.Stop()
	used, err := processorTime()
	if err != nil {
		return nil, err
	}
	began := s.now()
	looks := []look{d.look(began)}
	watched := make(chan []look)
	go func() { watched <- d.watch(watching, ticker.C, began, looks) }()
	err = d.run(ctx)
	f = &figures{makespan: s.now().Sub(began), longest: d.longest}
	after, usedErr := processorTime()
	stop()
	looks = append(<-watched, d.look(began))
	if err := errors.Join(err, usedErr); err != nil {
		return nil, fmt.Errorf("%v: %w", c, err)
	}
	f.perOp = (after - used) / time.Duration(max(len(l.ops), 1))
	f.stats = since(&looks[0].Stats, &looks[len(looks)-1].Stats)
	f.sum(looks)
	closed = true
	if err := st.Close(); err != nil {
		return nil, fmt.Errorf("%v: close: %w", c, err)
	}
	return f, nil
}

// since returns the work of a store between two looks.
func since(from, to *kvpart.Stats) kvpart.Stats {
	s := *to
	s.Operations -= from.Operations
	s.Multi -= from.Multi
	s.Tracked -= from.Tracked
	s.Dropped -= from.Dropped
	s.TrackingTime -= from.TrackingTime
	s.CuttingTime -= from.CuttingTime
	s.Computed -= from.Computed
	s.Applied -= from.Applied
	s.Skipped -= from.Skipped
	s.Moved -= from.Moved
	s.Pause.Count -= from.Pause.Count
	return s
}

// sum computes the figures from the looks.
func (f *figures) sum(looks []look) {
	f.bins, f.cuts = bins(looks), cuts(looks)
	var rates, spreads []float64
	for _, b := range f.bins {
		rates, spreads = append(rates, b.rate), append(spreads, b.spread)
	}
	// The last bin ends with the run, and may have any length.
	if n := len(rates); n > 4 {
		rates = rates[:n-1]
	}
	f.median, f.spread = median(rates), median(spreads)
	first, last := &looks[0], &looks[len(looks)-1]
	f.multi = multiBetween(first, last)
	f.first, f.once = f.multi, math.NaN()
	var switched *look
	for i := range looks {
		l := &looks[i]
		if l.Applied == first.Applied {
			continue
		}
		if switched == nil {
			switched = l
			f.first = multiBetween(first, &looks[max(i-1, 0)])
		}
		if l.Applied == switched.Applied {
			f.once = multiBetween(switched, l)
		}
	}
	f.dip, f.calm = dip(f.bins, f.cuts), dip(f.bins, between(f.cuts))
	f.loss = loss(f.bins, f.cuts)
}

// multiBetween returns the share of requests on several partitions between two
// looks; NaN for no requests.
func multiBetween(a, b *look) float64 {
	if b.Operations <= a.Operations {
		return math.NaN()
	}
	return float64(b.Multi-a.Multi) / float64(b.Operations-a.Operations)
}
