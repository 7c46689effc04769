package cutcheck

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/kvpart/cut"
	"github.com/samya-db/samya/kvpart/cut/graphs"
)

const (
	// timed is the number of vertices of a large timed graph, timedParts the number of
	// parts of all timed graphs.
	timed, timedParts = 100_000, 8
	// timedEdges is about the number of edges of a small timed graph. estimate is the
	// number of vertices from which its size is estimated.
	timedEdges, estimate = 10_000, 2_000
	// tick is the resolution of gpmetis's report, in seconds.
	tick = .001
)

// times takes the time to cut two graphs of a family: of about 100,000 vertices, and of
// about 10,000 edges.
func (s *suite) times(ctx context.Context, f *graphs.Family) error {
	g, err := f.Draw(timed, 1)
	if err != nil {
		return err
	}
	if len(g.Neighbors) == 0 {
		s.tell(nil, "no time of %s, which gpmetis refuses", f.Name)
		return nil
	}
	t, err := s.time(ctx, f, g)
	if err != nil {
		return err
	}
	t.judge()
	s.report.Times = append(s.report.Times, *t)
	if g, err = f.Draw(estimate, 1); err != nil {
		return err
	}
	if g, err = f.Draw(estimate*timedEdges/(len(g.Neighbors)/2), 1); err != nil {
		return err
	}
	small, err := s.time(ctx, f, g)
	if err != nil {
		return err
	}
	s.report.Small = append(s.report.Small, *small)
	s.tell(t.Broken, "time of %s", f.Name)
	return nil
}

// time takes the time to cut g, alternating with gpmetis.
func (s *suite) time(ctx context.Context, f *graphs.Family, g *cut.Graph) (t *Time, err error) {
	file, err := s.metis.Open(g)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	t = &Time{
		Graph: Graph{f.Name, 1, len(g.Offsets) - 1, len(g.Neighbors) / 2},
		Parts: timedParts, Runs: s.o.Runs,
	}
	var own, other []float64
	for range s.o.Runs {
		a, _, err := Ours(ctx, g, cut.Options{Parts: timedParts, Seed: 1})
		if err != nil {
			return nil, err
		}
		b, err := theirs(ctx, g, file, MetisOptions{Parts: timedParts, Seed: 1})
		if err != nil {
			return nil, err
		}
		own, other = append(own, a.Seconds), append(other, b.Seconds)
		t.OursCut, t.MetisCut = a.Cut, b.Cut
	}
	t.Ours, t.Metis = median(own), median(other)
	return t, nil
}

// ratio returns the time as a multiple of gpmetis's.
func (t *Time) ratio() float64 { return t.Ours / max(t.Metis, tick) }

// cutRatio returns the cut as a multiple of gpmetis's. An edge more to both saves the
// ratio of graphs that are not cut at all.
func (t *Time) cutRatio() float64 { return float64(t.OursCut+1) / float64(t.MetisCut+1) }

// Effort is the effort on small graphs: medians over families of processor time and cut,
// as multiples of gpmetis's.
type Effort struct {
	Families int      `json:"families"`
	Time     float64  `json:"time"`
	Cut      float64  `json:"cut"`
	Broken   []string `json:"broken"`
}

// effort returns the effort on the small graphs of the report, or nil if there are none.
func (r *Report) effort() *Effort {
	if len(r.Small) == 0 {
		return nil
	}
	var times, cuts []float64
	for i := range r.Small {
		t := &r.Small[i]
		times = append(times, t.ratio())
		cuts = append(cuts, t.cutRatio())
	}
	e := &Effort{Families: len(times), Time: median(times), Cut: median(cuts)}
	if e.Families < manyFamilies {
		return e
	}
	if e.Time > mostEffort {
		e.Broken = append(e.Broken, fmt.Sprintf("time %.2f > %.2f", e.Time, mostEffort))
	}
	if e.Cut > 1 {
		e.Broken = append(e.Broken, fmt.Sprintf("cut %.3f > 1", e.Cut))
	}
	return e
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
