package cut

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

const (
	defaultImbalance = .03
	defaultStretch   = .05
	defaultLoose     = .1
)

// Partition partitions g. A graph without edges is packed by weight alone (longest
// processing time first). It fails for a malformed graph, with ErrOptions, or, if ctx ends
// before the work is done, with the error of ctx.
func Partition(ctx context.Context, g *Graph, o Options) (*Result, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	if err := o.check(g); err != nil {
		return nil, err
	}
	o.complete()
	s := &solver{
		pace: pace{ctx: ctx, yield: o.Yield},
		rng:  o.chance(),
	}
	if !s.rest() {
		return nil, fmt.Errorf("partition a graph: %w", s.err)
	}
	j := newJob(s, g, &o)
	j.run()
	if s.err != nil {
		return nil, fmt.Errorf("partition a graph: %w", s.err)
	}
	return j.result(), nil
}

// complete fills defaults in. Bounds that are off become Imbalance.
func (o *Options) complete() {
	for _, d := range []struct {
		bound *float64
		value float64
	}{{&o.Imbalance, defaultImbalance}, {&o.Stretch, defaultStretch}, {&o.Loose, defaultLoose}} {
		if *d.bound == 0 {
			*d.bound = d.value
		}
		*d.bound = max(*d.bound, o.Imbalance)
	}
}

// chance returns the source of all random choices.
func (o *Options) chance() *rand.Rand { return rand.New(rand.NewPCG(o.Seed, 0x5eed)) }

// job is a call of Partition.
type job struct {
	s    *solver
	g    *Graph
	o    *Options
	n, k int
	l    *level // g, with weights scaled so that sums do not overflow
	part []int32
	hubs []int32
}

func newJob(s *solver, g *Graph, o *Options) *job {
	j := &job{s: s, g: g, o: o, n: len(g.Offsets) - 1, k: o.Parts}
	j.l = &level{
		n: j.n, dims: g.Dims, off: g.Offsets, adj: g.Neighbors,
		ew: fitEdges(g.EdgeWeights), vw: fitVertices(g.VertexWeights, g.Dims),
	}
	j.part = make([]int32, j.n)
	return j
}

// run places the hubs, then the rest of the graph around them.
func (j *job) run() {
	if j.k == 1 || j.n == 0 {
		j.findHubs()
		return
	}
	open := j.placeHubs()
	rest := &problem{l: j.l, k: len(open)}
	ids := []int32(nil)
	part := j.part
	start := j.o.Start
	if len(j.hubs) > 0 {
		rest.l, ids = j.withoutHubs()
		part = make([]int32, rest.l.n)
		start = j.startOf(ids, open)
	}
	rest.limit(j.s, j.o.Imbalance)
	j.s.partition(rest, part, start, j.o)
	if ids == nil {
		return
	}
	for i, v := range ids {
		j.part[v] = open[part[i]]
	}
}

// fitEdges returns weights in proportion, with a sum that is an int32.
func fitEdges(ws []int32) []int32 {
	sum := int64(0)
	for _, w := range ws {
		sum += int64(w)
	}
	const most = math.MaxInt32
	if sum <= most {
		return ws
	}
	// Each weight stays at least 1.
	shift := bits.Len64(uint64(sum / (most - int64(len(ws)))))
	fit := make([]int32, len(ws))
	for i, w := range ws {
		fit[i] = max(1, w>>shift)
	}
	return fit
}

// fitVertices returns weights in proportion, with sums far from overflow.
func fitVertices(ws []int64, dims int) []int64 {
	fit := ws
	for d := range dims {
		var hi, lo uint64
		for i := d; i < len(ws); i += dims {
			var carry uint64
			lo, carry = bits.Add64(lo, uint64(ws[i]), 0)
			hi += carry
		}
		shift := max(0, bits.Len64(lo)-60)
		if hi > 0 {
			shift = bits.Len64(hi) + 4
		}
		if shift == 0 {
			continue
		}
		if &fit[0] == &ws[0] {
			fit = append([]int64(nil), ws...)
		}
		for i := d; i < len(ws); i += dims {
			fit[i] = ws[i] >> shift
		}
	}
	return fit
}

func (j *job) result() *Result {
	r := &Result{Parts: j.part, Hubs: j.hubs, Balance: balance(j.g, j.part, j.k)}
	for v := range j.n {
		for e := j.g.Offsets[v]; e < j.g.Offsets[v+1]; e++ {
			if u := j.g.Neighbors[e]; int(u) > v && j.part[u] != j.part[v] {
				r.Cut += int64(j.g.EdgeWeights[e])
			}
		}
		if j.o.Start != nil && j.o.Start[v] >= 0 && j.o.Start[v] != j.part[v] {
			r.Moved++
		}
	}
	return r
}

// balance returns the weight of the heaviest part divided by the mean, by dimension.
func balance(g *Graph, part []int32, k int) []float64 {
	b := make([]float64, g.Dims)
	w := make([]float64, k)
	for d := range b {
		clear(w)
		sum, most := 0., 0.
		for v, p := range part {
			x := float64(g.VertexWeights[v*g.Dims+d])
			w[p] += x
			sum += x
		}
		for _, x := range w {
			most = max(most, x)
		}
		b[d] = 1
		if sum > 0 {
			b[d] = most * float64(k) / sum
		}
	}
	return b
}
