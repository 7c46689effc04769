package cutcheck

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"syscall"
	"time"

	"github.com/samya-db/samya/kvpart/cut"
	"github.com/samya-db/samya/kvpart/cut/graphs"
)

// Options are the options of the suite.
type Options struct {
	// Families names the families; empty means all.
	Families []string
	// Vertices bounds the size of graphs other than trees; 0 means each family's own
	// size.
	Vertices int
	// Seeds is the number of graphs drawn of each family, at least 1.
	Seeds int
	// Runs is the number of timed runs, alternating with gpmetis; 0 takes no times.
	Runs int
	// Progress, if not nil, is called after each step.
	Progress func(Progress)
}

// Progress is the progress of the suite.
type Progress struct {
	Done, Of int
	// What names the last step; Broken are its broken bounds.
	What   string
	Broken []string
}

// Graph names a graph that the suite drew.
type Graph struct {
	Family   string `json:"family"`
	Seed     uint64 `json:"seed"`
	Vertices int    `json:"vertices"`
	Edges    int    `json:"edges"`
}

// parts are the numbers of parts that each graph is cut into.
var parts = []int{2, 4, 8, 16}

// Run runs the suite. The report has the broken bounds; an error means that the
// suite could not run.
func Run(ctx context.Context, m *Metis, o Options) (*Report, error) {
	families, err := chosen(o.Families)
	if err != nil {
		return nil, err
	}
	s := &suite{metis: m, o: o, of: len(families) * o.Seeds * len(parts) * (1 + len(Changes()))}
	if o.Runs > 0 {
		s.of += len(families)
	}
	for _, f := range families {
		for seed := range uint64(o.Seeds) {
			if err := s.graph(ctx, f, seed+1); err != nil {
				return nil, fmt.Errorf("%s, seed %d: %w", f.Name, seed+1, err)
			}
		}
	}
	s.report.Sums = s.report.sums()
	// Times come last, with nothing else in memory.
	if o.Runs > 0 {
		for _, f := range families {
			if err := s.times(ctx, f); err != nil {
				return nil, fmt.Errorf("time of %s: %w", f.Name, err)
			}
		}
		s.report.Effort = s.report.effort()
	}
	return &s.report, nil
}

// chosen returns the families of some names, or all families for no names.
func chosen(names []string) ([]*graphs.Family, error) {
	if len(names) == 0 {
		for _, f := range graphs.Families() {
			names = append(names, f.Name)
		}
	}
	var families []*graphs.Family
	for _, name := range names {
		f, err := graphs.ByName(name)
		if err != nil {
			return nil, err
		}
		families = append(families, f)
	}
	return families, nil
}

// suite is a run of the suite.
type suite struct {
	metis    *Metis
	o        Options
	done, of int
	report   Report
}

func (s *suite) tell(broken []string, format string, args ...any) {
	s.done++
	if s.o.Progress != nil {
		s.o.Progress(Progress{s.done, s.of, fmt.Sprintf(format, args...), broken})
	}
}

// graph cuts a graph into all numbers of parts, and again after changes of its
// load.
func (s *suite) graph(ctx context.Context, f *graphs.Family, seed uint64) (err error) {
	vertices := f.Vertices
	if s.o.Vertices > 0 && !isTree(f.Name) {
		vertices = min(vertices, s.o.Vertices)
	}
	g, err := f.Draw(vertices, seed)
	if err != nil {
		return err
	}
	file, err := s.metis.Open(g)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	is := Graph{f.Name, seed, len(g.Offsets) - 1, len(g.Neighbors) / 2}
	for _, k := range parts {
		r, at, err := s.against(ctx, is, g, file, k)
		if err != nil {
			return fmt.Errorf("%d parts: %w", k, err)
		}
		s.report.Cuts = append(s.report.Cuts, *r)
		s.tell(r.Broken, "%s, seed %d, %d parts", f.Name, seed, k)
		for _, change := range Changes() {
			w, err := s.warm(ctx, is, g, at, change, k)
			if err != nil {
				return fmt.Errorf("%d parts, %s: %w", k, change, err)
			}
			s.report.Warm = append(s.report.Warm, *w)
			s.tell(w.Broken, "%s, seed %d, %d parts, %s", f.Name, seed, k, change)
		}
	}
	return nil
}

// against cuts g into k parts with kvpart/cut and with gpmetis.
func (s *suite) against(ctx context.Context, is Graph, g *cut.Graph, file *File, k int) (*Cut, []int32, error) {
	own, result, err := Ours(ctx, g, cut.Options{Parts: k, Seed: 1})
	if err != nil {
		return nil, nil, err
	}
	r := &Cut{Graph: is, Parts: k, Ours: *own, bestBalance: bestBalance(g, k)}
	if is.Edges > 0 {
		if r.Metis, err = theirs(ctx, g, file, MetisOptions{Parts: k, Seed: 1}); err != nil {
			return nil, nil, err
		}
		if r.Bisect, err = theirs(ctx, g, file, MetisOptions{Parts: k, Seed: 1, Bisect: true}); err != nil {
			return nil, nil, err
		}
	}
	r.judge(EdgeWeight(g))
	return r, result.Parts, nil
}

// Ours cuts g with kvpart/cut and counts the score of the parts. It fails with
// ErrParts if the score differs from the result of the cut.
func Ours(ctx context.Context, g *cut.Graph, o cut.Options) (*Figures, *cut.Result, error) {
	runtime.GC() // this cut must not collect the garbage of others
	before, err := processorTime()
	if err != nil {
		return nil, nil, err
	}
	began := time.Now()
	result, err := cut.Partition(ctx, g, o)
	took := time.Since(began)
	if err != nil {
		return nil, nil, err
	}
	after, err := processorTime()
	if err != nil {
		return nil, nil, err
	}
	score, err := Count(g, result.Parts, o.Parts)
	if err != nil {
		return nil, nil, err
	}
	if score.Cut != result.Cut {
		return nil, nil, fmt.Errorf("%w: %d is cut, and said to be %d", ErrParts, score.Cut, result.Cut)
	}
	for d, b := range score.Balances {
		if d >= len(result.Balance) || math.Abs(b-result.Balance[d]) > 1e-9 {
			return nil, nil, fmt.Errorf("%w: balances are %v, and said to be %v", ErrParts, score.Balances, result.Balance)
		}
	}
	f := &Figures{Score: score, Seconds: (after - before).Seconds(), Elapsed: took.Seconds(), Hubs: len(result.Hubs)}
	return f, result, nil
}

// theirs cuts g with gpmetis and counts the score of the parts.
func theirs(ctx context.Context, g *cut.Graph, file *File, o MetisOptions) (*Figures, error) {
	began := time.Now()
	parts, seconds, err := file.Partition(ctx, o)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	score, err := Count(g, parts, o.Parts)
	if err != nil {
		return nil, err
	}
	return &Figures{Score: score, Seconds: seconds, Elapsed: took.Seconds()}, nil
}

// processorTime returns the processor time of this process so far.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read the processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
