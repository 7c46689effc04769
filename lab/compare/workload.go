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
	// Even asks for 100,000 entities, all as often.
	Even Workload = "even"
)

// workloads are all workloads, in the order in which a system meets them.
var workloads = []Workload{Hot, Zipf, Even}

// The entities of the workloads Zipf and Even.
const (
	zipfEntities = 10_000
	zipfExponent = .99
	evenEntities = 100_000
	// drawn is the number of draws. Each caller goes through the draws from its own
	// start.
	drawn = 1 << 20
)

// entities returns the names of a workload's entities.
func (w Workload) entities() []string {
	named := func(n int, format string) []string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf(format, i)
		}
		return names
	}
	switch w {
	case Zipf:
		return named(zipfEntities, "acme/%05d/vm")
	case Even:
		return named(evenEntities, "acme/%06d/gpu")
	}
	return []string{"acme/hot"}
}

// draws returns the index of the entity of each operation.
func (w Workload) draws(seed uint64) []uint32 {
	random := rand.New(rand.NewPCG(seed, 0))
	draws := make([]uint32, drawn)
	switch w {
	case Hot:
		return []uint32{0}
	case Even:
		for i := range draws {
			draws[i] = random.Uint32N(evenEntities)
		}
		return draws
	}
	below := make([]float64, zipfEntities) // sums of the weights up to each entity
	sum := 0.0
	for i := range below {
		sum += math.Pow(float64(i+1), -zipfExponent)
		below[i] = sum
	}
	// Popular entities are not neighbours by name.
	place := random.Perm(zipfEntities)
	for i := range draws {
		at, _ := slices.BinarySearch(below, random.Float64()*sum)
		draws[i] = uint32(place[min(at, zipfEntities-1)])
	}
	return draws
}
