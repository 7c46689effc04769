package cutcheck

import (
	"errors"
	"fmt"

	"github.com/samya-db/samya/kvpart/cut"
)

// ErrParts says that parts are none of a graph; it is wrapped with what is wrong.
var ErrParts = errors.New("bad parts")

// Score is what parts are worth, counted from the graph and the parts alone.
type Score struct {
	// Cut is the weight of the edges between parts, Share that of all edges.
	Cut   int64   `json:"cut"`
	Share float64 `json:"cut_share"`
	// Balance is the heaviest part divided by the mean, of the dimension where that
	// is highest; Balances has them all.
	Balance  float64   `json:"balance"`
	Balances []float64 `json:"balances"`
	// Empty is how many parts have no vertex.
	Empty int `json:"empty"`
}

// EdgeWeight is the weight of all edges of g, each counted once.
func EdgeWeight(g *cut.Graph) int64 {
	var sum int64
	for _, w := range g.EdgeWeights {
		sum += int64(w)
	}
	return sum / 2
}

// Count returns the score of parts, k of them. It fails with ErrParts.
func Count(g *cut.Graph, parts []int32, k int) (Score, error) {
	n := len(g.Offsets) - 1
	if len(parts) != n {
		return Score{}, fmt.Errorf("%w: %d parts for %d vertices", ErrParts, len(parts), n)
	}
	vertices := make([]int, k)
	for v, p := range parts {
		if p < 0 || int(p) >= k {
			return Score{}, fmt.Errorf("%w: vertex %d is in part %d of %d", ErrParts, v, p, k)
		}
		vertices[p]++
	}
	var s Score
	for _, in := range vertices {
		if in == 0 {
			s.Empty++
		}
	}
	for v := range n {
		for i := g.Offsets[v]; i < g.Offsets[v+1]; i++ {
			if parts[v] != parts[g.Neighbors[i]] {
				s.Cut += int64(g.EdgeWeights[i])
			}
		}
	}
	s.Cut /= 2
	if all := EdgeWeight(g); all > 0 {
		s.Share = float64(s.Cut) / float64(all)
	}
	for _, weights := range Weights(g, parts, k) {
		var sum, heaviest int64
		for _, w := range weights {
			sum += w
			heaviest = max(heaviest, w)
		}
		balance := 1.0
		if sum > 0 {
			balance = float64(heaviest) * float64(k) / float64(sum)
		}
		s.Balances = append(s.Balances, balance)
		s.Balance = max(s.Balance, balance)
	}
	return s, nil
}

// Weights returns the weights of the parts, k of them, by dimension.
func Weights(g *cut.Graph, parts []int32, k int) [][]int64 {
	weights := make([][]int64, g.Dims)
	for d := range weights {
		weights[d] = make([]int64, k)
		for v, p := range parts {
			weights[d][p] += g.VertexWeights[v*g.Dims+d]
		}
	}
	return weights
}

// PartsOf is what a vertex weighs, in means of k parts, in the dimension where
// that is the most.
func PartsOf(g *cut.Graph, v int32, k int) float64 {
	most := 0.0
	for d := range g.Dims {
		var sum int64
		for i := d; i < len(g.VertexWeights); i += g.Dims {
			sum += g.VertexWeights[i]
		}
		if sum > 0 {
			most = max(most, float64(g.VertexWeights[int(v)*g.Dims+d])*float64(k)/float64(sum))
		}
	}
	return most
}

// bestBalance returns a balance that no parts, k of them, go below: one has the
// heaviest vertex, and none is lighter than the mean.
func bestBalance(g *cut.Graph, k int) float64 {
	best := 1.0
	for d := range g.Dims {
		var sum, heaviest int64
		for v := d; v < len(g.VertexWeights); v += g.Dims {
			sum += g.VertexWeights[v]
			heaviest = max(heaviest, g.VertexWeights[v])
		}
		if sum > 0 {
			best = max(best, float64(heaviest)*float64(k)/float64(sum))
		}
	}
	return best
}

// moved counts the vertices that are in another part than before.
func moved(before, after []int32) int {
	n := 0
	for v := range after {
		if before[v] != after[v] {
			n++
		}
	}
	return n
}
