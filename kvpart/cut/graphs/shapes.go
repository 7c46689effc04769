package graphs

import (
	"math/bits"
	"math/rand/v2"

	"github.com/samya-db/samya/kvpart/cut"
)

// side returns the largest number that raised to power (2 or 3) is at most n.
func side(n, power int) int {
	s := 1
	for {
		p := 1
		for range power {
			p *= s + 1
		}
		if p > n {
			return s
		}
		s++
	}
}

func grid(vertices int, _ *rand.Rand) *cut.Graph {
	s := side(vertices, 2)
	b := newBuilder(s*s, 1)
	eachOfGrid(s, func(u, v int32) { b.edge(u, v, 1) })
	return b.graph()
}

func gridWeighted(vertices int, r *rand.Rand) *cut.Graph {
	s := side(vertices, 2)
	b := newBuilder(s*s, 1)
	for v := range b.weights {
		b.weights[v] = 1 + r.Int64N(20)
	}
	eachOfGrid(s, func(u, v int32) { b.edge(u, v, 1+r.Int32N(100)) })
	return b.graph()
}

// eachOfGrid calls edge for each two neighbours of a square grid.
func eachOfGrid(side int, edge func(u, v int32)) {
	for y := range side {
		for x := range side {
			v := int32(y*side + x)
			if x > 0 {
				edge(v-1, v)
			}
			if y > 0 {
				edge(v-int32(side), v)
			}
		}
	}
}

func mesh(vertices int, _ *rand.Rand) *cut.Graph {
	s := side(vertices, 3)
	b := newBuilder(s*s*s, 1)
	for v := range b.vertices {
		x, y, z := v%s, v/s%s, v/s/s
		if x > 0 {
			b.edge(int32(v-1), int32(v), 1)
		}
		if y > 0 {
			b.edge(int32(v-s), int32(v), 1)
		}
		if z > 0 {
			b.edge(int32(v-s*s), int32(v), 1)
		}
	}
	return b.graph()
}

func road(vertices int, r *rand.Rand) *cut.Graph {
	// A street of the grid becomes a chain of 1.5 junctions on average, and a crossing
	// keeps 1.4 streets.
	s := side(vertices*10/31, 2)
	var streets [][3]int32
	chained := s * s
	eachOfGrid(s, func(u, v int32) {
		if r.IntN(10) >= 3 {
			junctions := r.Int32N(4)
			streets = append(streets, [3]int32{u, v, junctions})
			chained += int(junctions)
		}
	})
	b := newBuilder(chained, 1)
	next := int32(s * s)
	for _, street := range streets {
		at := street[0]
		for range street[2] {
			b.edge(at, next, 1)
			at = next
			next++
		}
		b.edge(at, street[1], 1)
	}
	// Bridges and tunnels keep a map from being planar.
	for range s / 5 {
		b.edge(r.Int32N(int32(s*s)), r.Int32N(int32(s*s)), 1)
	}
	return b.graph()
}

func random(vertices int, r *rand.Rand) *cut.Graph {
	b := newBuilder(vertices, 1)
	for range 4 * vertices {
		b.edge(r.Int32N(int32(vertices)), r.Int32N(int32(vertices)), 1)
	}
	return b.graph()
}

func smallWorld(vertices int, r *rand.Rand) *cut.Graph {
	b := newBuilder(vertices, 1)
	n := int32(vertices)
	for v := range n {
		for d := int32(1); d <= 5; d++ {
			to := (v + d) % n
			if r.IntN(20) == 0 {
				to = r.Int32N(n)
			}
			b.edge(v, to, 1)
		}
	}
	return b.graph()
}

func powerLaw(vertices int, r *rand.Rand) *cut.Graph {
	const each = 8
	b := newBuilder(vertices, 0)
	// Each end of each edge stands here once. So a random element is a vertex drawn in
	// proportion to its degree.
	ends := make([]int32, 0, 2*each*vertices)
	for v := range int32(vertices) {
		for range min(int(v), each) {
			to := r.Int32N(v)
			if len(ends) > 0 {
				to = ends[r.IntN(len(ends))]
			}
			if to == v {
				continue
			}
			b.edge(v, to, 1)
			b.weights[v]++
			b.weights[to]++
			ends = append(ends, v, to)
		}
	}
	return b.graph()
}

func rmat(vertices int, r *rand.Rand) *cut.Graph {
	levels := bits.Len(uint(vertices)) - 1
	b := newBuilder(1<<levels, 1)
	scattered := r.Perm(b.vertices)
	for range 8 * b.vertices {
		var u, v int
		for range levels {
			u, v = u<<1, v<<1
			switch p := r.Float64(); {
			case p < .57:
			case p < .76:
				v |= 1
			case p < .95:
				u |= 1
			default:
				u, v = u|1, v|1
			}
		}
		b.edge(int32(scattered[u]), int32(scattered[v]), 1)
	}
	return b.graph()
}

func islands(vertices int, r *rand.Rand) *cut.Graph {
	b := newBuilder(vertices, 1)
	scattered := r.Perm(vertices)
	for first := 0; first < vertices; {
		size := min(2+r.IntN(59), vertices-first)
		at := func(i int) int32 { return int32(scattered[first+i%size]) }
		shape := r.IntN(4)
		for i := 1; i < size; i++ {
			switch shape {
			case 0, 1: // a path; a ring is closed below
				b.edge(at(i-1), at(i), 1)
			case 2: // a star
				b.edge(at(0), at(i), 1)
			case 3: // a clique
				for j := range i {
					b.edge(at(j), at(i), 1)
				}
			}
		}
		if shape == 1 && size > 2 {
			b.edge(at(size-1), at(size), 1)
		}
		first += size
	}
	return b.graph()
}
