package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Workload is a choice of entities.
type Workload string

// The workloads.
const (
	// Hot asks for a single entity.
	Hot Workload = "hot"
	// Zipf asks for 10,000 entities, the nth most popular in proportion to n^-0.99.
	Zipf Workload = "zipf"
)

// The entities of the workload Zipf.
const (
	zipfEntities = 10_000
	zipfExponent = .99
	// drawn is the number of draws. Each caller goes through the draws from its own
	// start.
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

// draws returns the index of the entity of each operation.
func (w Workload) draws(seed uint64) []uint16 {
	if w == Hot {
		return []uint16{0}
	}
	below := make([]float64, zipfEntities) // sums of the weights up to each entity
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
