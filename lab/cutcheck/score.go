package cutcheck

import (
	"errors"
	"fmt"

	"github.com/samya-db/samya/kvpart/cut"
)

// ErrParts says that parts do not fit a graph. It is wrapped with the reason.
var ErrParts = errors.New("bad parts")

// Score is the quality of parts, counted from the graph and the parts alone.
type Score struct {
	// Cut is the weight of the edges between parts, Share its share of all edges.
	Cut   int64   `json:"cut"`
	Share float64 `json:"cut_share"`
	// Balance is the heaviest part over the mean, in the dimension where this ratio
	// is highest. Balances has the ratio of every dimension.
	Balance  float64   `json:"balance"`
	Balances []float64 `json:"balances"`
	// Empty is the number of parts without a vertex.
	Empty int `json:"empty"`
}

// EdgeWeight returns the weight of all edges of g, each counted once.
func EdgeWeight(g *cut.Graph) int64 {
	var sum int64
	for _, w := range g.EdgeWeights {
		sum += int64(w)
	}
	return sum / 2
}

// Count returns the score of k parts. It fails with ErrParts.
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

// Weights returns the weights of k parts, by dimension.
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

// PartsOf returns the weight of a vertex in means of k parts, in its heaviest
// dimension.
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

// bestBalance returns a lower bound of the balance of k parts: some part has the
// heaviest vertex, and the heaviest part is no lighter than the mean.
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

// moved counts the vertices that changed parts.
func moved(before, after []int32) int {
	n := 0
	for v := range after {
		if before[v] != after[v] {
			n++
		}
	}
	return n
}
