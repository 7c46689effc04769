package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Workload says which entities are asked for.
type Workload string

// The workloads.
const (
	// Hot: one entity.
	Hot Workload = "hot"
	// Zipf: 10,000 entities, the nth most popular asked for in proportion to n^-0.99.
	Zipf Workload = "zipf"
)

// The entities of the workload of many.
const (
	zipfEntities = 10_000
	zipfExponent = .99
	// drawn is how many draws are made; callers go through them in turn, each
	// from a place of its own.
	drawn = 1 << 20
)

// entities returns the names of a workload's entities.
func (w Workload) entities() []string {
	if w == Hot {
		return []string{"acme/hot"}
	}
	names := make([]string, zipfEntities)
	for i := range names {
		names[i] = fmt.Sprintf("acme/%05d/vm", i)
	}
	return names
}

// draws returns which entity each operation asks for.
func (w Workload) draws(seed uint64) []uint16 {
	if w == Hot {
		return []uint16{0}
	}
	below := make([]float64, zipfEntities) // the sum of the weights through each
	sum := 0.0
	for i := range below {
		sum += math.Pow(float64(i+1), -zipfExponent)
		below[i] = sum
	}
	random := rand.New(rand.NewPCG(seed, 0))
	// Popular entities are not neighbours by name.
	place := random.Perm(zipfEntities)
	draws := make([]uint16, drawn)
	for i := range draws {
		at, _ := slices.BinarySearch(below, random.Float64()*sum)
		draws[i] = uint16(place[min(at, zipfEntities-1)])
	}
	return draws
}
