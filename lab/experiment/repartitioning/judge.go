package repartitioning

import (
	"fmt"
	"math"

	"github.com/samya-db/samya/lab/experiment"
)

// The bounds of the goals.
const (
	overBase       = 1.0 // Async(W) over the best Base, median throughput on E
	overRoundRobin = 1.3
	mostMulti      = 5.0  // % of E's requests on several partitions after a single cut
	baseDrop       = 50.0 // %, least fall of the lowest interval of a cut, and of the mean during cuts
	asyncDrop      = 25.0 // %, bound of the fall of the mean: single intervals depend on the machine as well
)

// windowed begins the names of Async with a window.
const windowed = plainAsync + " W="

// goals judges the runs on E and the runs during cuts.
func (m *measured) goals() []experiment.Goal {
	var all []experiment.Goal
	for _, n := range m.workers {
		rate := m.of(m.best("E", n, windowed), throughput)
		base := m.of(m.best("E", n, "Base"), throughput)
		dealt := m.of(m.find("E", n, roundRobin), throughput)
		all = append(
			all,
			judged(experiment.AtLeast(fmt.Sprintf("E, %d workers: median of Async(W) over Base(best Δp)", n), rate/base, overBase, "×")),
			judged(experiment.AtLeast(fmt.Sprintf("E, %d workers: median of Async(W) over round-robin", n), rate/dealt, overRoundRobin, "×")),
			judged(experiment.Below(fmt.Sprintf("E, %d workers: requests on several partitions after one cut", n), m.afterOne(n), mostMulti, "%")),
		)
	}
	drops := m.dropCells()
	return append(
		all,
		judged(experiment.AtLeast("Base: the lowest 50 ms of a cut are below the median by", m.of(drops[0], dipOf), baseDrop, "%")),
		judged(experiment.AtLeast("Base: throughput during cuts is below that elsewhere by", m.of(drops[0], lossOf), baseDrop, "%")),
		judged(experiment.Below("Async: throughput during cuts is below that elsewhere by", m.of(drops[1], lossOf), asyncDrop, "%")),
	)
}

// judged marks a goal as unmeasured if its figure is NaN or infinite: its cells did
// not run.
func judged(g experiment.Goal) experiment.Goal {
	if math.IsNaN(g.Got) || math.IsInf(g.Got, 0) {
		return experiment.Unmeasured(g)
	}
	return g
}

// afterOne returns the share of E's requests on several partitions between the
// first switch and the second, in %. It takes Base with its longest interval: its
// first graph has the most requests and is still early.
func (m *measured) afterOne(workers int) float64 {
	share := math.NaN()
	for _, c := range m.cells {
		if c.workload == "E" && c.workers == workers && c.name == longestBase {
			share = m.of(c, multiOnce)
		}
	}
	return share
}

// longestBase is the Base with a single cut, in the middle.
const longestBase = "Base Δp=1/2"

// expectedMulti returns the expected share of E's requests on several of n
// partitions with random placement, in %: 1 − (1/n)^(len−1) of scans, and no other
// requests.
func expectedMulti(n int) float64 {
	sum := 0.0
	for length := scanMin; length <= scanMax; length++ {
		sum += 1 - math.Pow(1/float64(n), float64(length-1))
	}
	return 100 * .95 * sum / (scanMax - scanMin + 1)
}
