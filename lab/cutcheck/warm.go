package cutcheck

import (
	"cmp"
	"context"
	"slices"

	"github.com/samya-db/samya/kvpart/cut"
)

// changed is the share of the load that changes before a warm start.
const changed = .05

// imbalance is the allowed imbalance of a warm start, the default of cut.Options.
const imbalance = .03

// warm changes a twentieth of the load of g, whose parts at holds, and cuts g
// again, cold and warm.
func (s *suite) warm(ctx context.Context, is Graph, g *cut.Graph, at []int32, change Change, k int) (*Warm, error) {
	after := Shift(g, change, changed, is.Seed)
	w := &Warm{Graph: is, Parts: k, Change: change, bestBalance: bestBalance(after, k)}
	cold, coldResult, err := Ours(ctx, after, cut.Options{Parts: k, Seed: 1})
	if err != nil {
		return nil, err
	}
	warm, warmResult, err := Ours(ctx, after, cut.Options{Parts: k, Seed: 1, Start: at})
	if err != nil {
		return nil, err
	}
	w.Cold, w.Warm = *cold, *warm
	w.ColdMoved = cut.Relabel(coldResult.Parts, at, k)
	// The labels of a warm start count as they are: samya would run with them.
	w.WarmMoved = moved(at, warmResult.Parts)
	stays, err := Count(after, at, k)
	if err != nil {
		return nil, err
	}
	w.Before, w.Least = stays.Balance, least(after, at, k, max(1+imbalance, cold.Balance))
	w.judge(EdgeWeight(after))
	return w, nil
}

// least returns the least number of vertices that have to leave parts heavier than
// balance times the mean: in each part the heaviest vertices.
func least(g *cut.Graph, parts []int32, k int, balance float64) int {
	n := 0
	for d, weights := range Weights(g, parts, k) {
		var sum int64
		for _, w := range weights {
			sum += w
		}
		in := make([][]int64, k)
		for v, p := range parts {
			in[p] = append(in[p], g.VertexWeights[v*g.Dims+d])
		}
		leave := 0
		for p, left := range weights {
			slices.SortFunc(in[p], func(a, b int64) int { return cmp.Compare(b, a) })
			for _, w := range in[p] {
				if float64(left) <= balance*float64(sum)/float64(k) {
					break
				}
				left -= w
				leave++
			}
		}
		n = max(n, leave)
	}
	return n
}
