package graphs

import (
	"math/rand/v2"

	"github.com/samya-db/samya/kvpart/cut"
)

// ordered is a ring of keys: the first key follows the last. Key i is vertex ordered[i],
// a random vertex, so that the numbers of vertices tell nothing.
type ordered []int

// scan requests 2 to 8 keys in order.
func (o ordered) scan(b *builder, r *rand.Rand, from int) {
	keys := make([]int32, 2+r.IntN(7))
	for i := range keys {
		keys[i] = int32(o[(from+i)%len(o)])
	}
	b.request(keys...)
}

func drawRing(vertices int, r *rand.Rand) (*builder, ordered) {
	b, keys := newBuilder(vertices, 0), ordered(r.Perm(vertices))
	for range 5 * vertices {
		keys.scan(b, r, r.IntN(vertices))
	}
	return b, keys
}

func ring(vertices int, r *rand.Rand) *cut.Graph {
	b, _ := drawRing(vertices, r)
	return b.graph()
}

func ringTwo(vertices int, r *rand.Rand) *cut.Graph {
	b, keys := drawRing(vertices, r)
	weights := make([]int64, 2*vertices)
	var io int64
	for i, v := range keys {
		if i%100 == 0 {
			io = 0
			if r.IntN(10) == 0 {
				io = 20
			}
		}
		weights[2*v], weights[2*v+1] = b.weights[v], io
	}
	b.weights, b.dims = weights, 2
	return b.graph()
}

func coaccess(vertices int, r *rand.Rand) *cut.Graph {
	b, keys := newBuilder(vertices, 0), ordered(r.Perm(vertices))
	z, scattered := newZipf(vertices, .99), r.Perm(vertices)
	for range 2 * vertices {
		keys.scan(b, r, scattered[z.draw(r)])
	}
	return b.graph()
}

func edgeless(vertices int, r *rand.Rand) *cut.Graph {
	b := newBuilder(vertices, 0)
	z := newZipf(vertices, .99)
	for range 10 * vertices {
		b.weights[z.draw(r)]++
	}
	return b.graph()
}

func communities(vertices int, r *rand.Rand) *cut.Graph {
	const size = 50
	b := newBuilder(vertices, 0)
	// Members are scattered, so that their numbers tell nothing.
	scattered := r.Perm(vertices)
	for v := range vertices {
		first := v / size * size
		members := min(size, vertices-first)
		for range 10 {
			// Any member but v itself: the last member stands for v.
			from, of := first, members
			if members == 1 || r.IntN(10) == 0 {
				from, of = 0, vertices
			}
			other := from + r.IntN(of-1)
			if other == v {
				other = from + of - 1
			}
			b.request(int32(scattered[v]), int32(scattered[other]))
		}
	}
	return b.graph()
}

func bipartite(vertices int, r *rand.Rand) *cut.Graph {
	const genre = 500
	users := vertices / 5
	items := vertices - users
	all, own := newZipf(items, .8), newZipf(min(genre, items), .8)
	b := newBuilder(vertices, 0)
	for range 2 * vertices {
		user := r.IntN(users)
		keys := []int32{int32(user)}
		for range 3 {
			item := int32(user%max(1, items/genre)*genre) + own.draw(r)
			if r.IntN(10) == 0 {
				item = all.draw(r)
			}
			keys = append(keys, int32(users)+item)
		}
		// Items of a request are not neighbours: each is used together with the user, not
		// with the other items.
		for _, item := range keys[1:] {
			b.edge(keys[0], item, 1)
			b.weights[item]++
		}
		b.weights[keys[0]]++
	}
	return b.graph()
}
