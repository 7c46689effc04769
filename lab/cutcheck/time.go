package cutcheck

import (
	"context"
	"errors"
	"slices"

	"github.com/samya-db/samya/kvpart/cut"
	"github.com/samya-db/samya/kvpart/cut/graphs"
)

// timed is the number of vertices of a timed graph, timedParts its number of parts.
const timed, timedParts = 100_000, 8

// times takes the time to cut a family's graph of 100,000 vertices, alternating
// with gpmetis.
func (s *suite) times(ctx context.Context, f *graphs.Family) (err error) {
	g, err := f.Draw(timed, 1)
	if err != nil {
		return err
	}
	if len(g.Neighbors) == 0 {
		s.tell(nil, "no time of %s, which gpmetis refuses", f.Name)
		return nil
	}
	file, err := s.metis.Open(g)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var own, other []float64
	for range s.o.Runs {
		a, _, err := Ours(ctx, g, cut.Options{Parts: timedParts, Seed: 1})
		if err != nil {
			return err
		}
		b, err := theirs(ctx, g, file, MetisOptions{Parts: timedParts, Seed: 1})
		if err != nil {
			return err
		}
		own, other = append(own, a.Seconds), append(other, b.Seconds)
	}
	t := Time{
		Graph: Graph{f.Name, 1, len(g.Offsets) - 1, len(g.Neighbors) / 2},
		Parts: timedParts, Runs: s.o.Runs, Ours: median(own), Metis: median(other),
	}
	t.judge()
	s.report.Times = append(s.report.Times, t)
	s.tell(t.Broken, "time of %s", f.Name)
	return nil
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
