package control

import "github.com/samya-db/samya/kvpart/cut"

// quality is the cut and balance of a map in a graph.
type quality struct {
	cut, total int64   // edge weight between partitions, and in all
	balance    float64 // heaviest / mean, in the worst dimension
	weight     int64   // of all vertices, in that dimension
}

// share returns the part of the edge weight that is cut.
func (q quality) share() float64 {
	if q.total == 0 {
		return 0
	}
	return float64(q.cut) / float64(q.total)
}

// stride is the number of vertices worked on between two yields.
const stride = 1024

// weigh judges the map parts of g; its elements are below k, or negative for no part. A
// vertex in no part weighs nowhere, and no edge to it counts as cut.
func weigh(g *cut.Graph, parts []int32, k int, yield func()) quality {
	q := quality{balance: 1}
	load := make([]int64, k*g.Dims)
	sum := make([]int64, g.Dims)
	for v, p := range parts {
		if v%stride == stride-1 {
			yield()
		}
		for d := range g.Dims {
			w := g.VertexWeights[v*g.Dims+d]
			sum[d] += w
			if p >= 0 {
				load[int(p)*g.Dims+d] += w
			}
		}
		for e := g.Offsets[v]; e < g.Offsets[v+1]; e++ {
			w := g.Neighbors[e]
			if int(w) < v {
				continue
			}
			q.total += int64(g.EdgeWeights[e])
			if o := parts[w]; p >= 0 && o >= 0 && o != p {
				q.cut += int64(g.EdgeWeights[e])
			}
		}
	}
	for d := range g.Dims {
		most := int64(0)
		for p := range k {
			most = max(most, load[p*g.Dims+d])
		}
		if sum[d] == 0 {
			continue
		}
		if b := float64(most) * float64(k) / float64(sum[d]); d == 0 || b > q.balance {
			q.balance, q.weight = b, sum[d]
		}
	}
	return q
}

// The least gain that counts, and the exchange rate of cut and balance.
const (
	leastCut = .001 // share of the edge weight
	// multiCost is the additional work of a request on several partitions, in units of
	// the work on a single partition. It only decides between balance and cut.
	multiCost = 4
)

// better reports whether next is better than present by the share gain. Either the cut
// is, and the balance stays within imbalance or gets no worse. Or the present balance is
// off by more than noise, and improving it costs less than it brings.
func better(present, next quality, gain, imbalance, noise float64) bool {
	if gain < 0 {
		return true
	}
	allowed := 1 + imbalance + noise
	if next.cut <= present.cut-int64(gain*float64(present.cut)) &&
		present.share()-next.share() > leastCut &&
		next.balance <= max(allowed, present.balance) {
		return true
	}
	return present.balance > allowed &&
		next.balance-1 <= (present.balance-1)*(1-gain) &&
		next.cost() < present.cost()*(1-gain)
}

// cost is about how long the work takes, compared with balanced partitions and no cut.
func (q quality) cost() float64 { return q.balance * (1 + multiCost*q.share()) }
