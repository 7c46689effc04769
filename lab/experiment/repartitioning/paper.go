package repartitioning

import (
	"fmt"
	"math"

	"github.com/samya-db/samya/lab/experiment"
)

// compared are the claims of the paper as ratios, beside ours with the most
// workers: the paper has as many workers as its machine has cores.
func (m *measured) compared() []experiment.Comparison {
	n := m.workers[len(m.workers)-1]
	ratio := func(figure func(*figures) float64, a, b cell) float64 { return m.of(a, figure) / m.of(b, figure) }
	at := func(workload, name string) cell { return m.find(workload, n, name) }
	best := func(workload, prefix string) cell { return m.best(workload, n, prefix) }
	drops := m.dropCells()
	all := []experiment.Comparison{
		{
			What: "E: median, Async W=1e3 over best Base", Unit: "×", Paper: new(36115.0 / 24194),
			Ours: ratio(throughput, at("E", "Async W=1e3"), best("E", "Base")),
			Why:  "The paper's Base is let down by its intervals; ours places keys that the graph lacks by their neighbours, so one good cut serves it to the end.",
		},
		{
			What: "E: median, Async W=1e4 over best Base", Unit: "×", Paper: new(28863.5 / 24194),
			Ours: ratio(throughput, at("E", "Async W=1e4"), best("E", "Base")),
			Why:  "As above.",
		},
		{
			What: "E: median, best Async W over round-robin", Unit: "×", Paper: new(36.0 / 5),
			Ours: ratio(throughput, best("E", windowed), at("E", roundRobin)),
			Why:  "A request on several partitions costs eight workers of the paper a barrier each; ours are as many as stated above, on fewer cores, and those that wait let others run.",
		},
		{
			What: "E: makespan, Async W=1e3 over best Base", Unit: "×", Paper: new(117.02 / 150.02),
			Ours: ratio(makespan, at("E", "Async W=1e3"), best("E", "Base")),
			Why:  "The runs are shorter, so the time before the first cut weighs more.",
		},
		{
			What: "E: makespan, Async W=1e3 over a single worker", Unit: "×", Paper: new(117.02 / 270.04),
			Ours: ratio(makespan, at("E", "Async W=1e3"), at("E", single)),
			Why:  "Several workers cannot be more than twice as fast as one on two cores, which the scheduler and the cuts need as well.",
		},
		{
			What: "E: makespan, round-robin over a single worker", Unit: "×", Paper: new(969.12 / 270.04),
			Ours: ratio(makespan, at("E", roundRobin), at("E", single)),
			Why:  "Fewer workers take part in each barrier.",
		},
		{
			What: "A: makespan, Async over round-robin", Unit: "×", Paper: new(127.02 / 141.02),
			Ours: ratio(makespan, at("A", plainAsync), at("A", roundRobin)),
			Why:  "The paper gains by balance alone; with fewer workers than its eight there is less imbalance to gain by.",
		},
		{
			What: "A: makespan, Async over best Base", Unit: "×", Paper: new(127.02 / 125.02),
			Ours: ratio(makespan, at("A", plainAsync), m.fastest("A", n, "Base")),
			Why:  "A graph without edges is packed in milliseconds, so neither stops for long.",
		},
		{
			What: "A: makespan, a single worker over round-robin", Unit: "×", Paper: new(817.11 / 141.02),
			Ours: ratio(makespan, at("A", single), at("A", roundRobin)),
			Why:  "The paper has eight workers on sixteen cores.",
		},
	}
	for _, v := range []struct {
		name  string
		paper float64
	}{{roundRobin, 23.44}, {m.best("A", n, "Base").name, 1.41}, {plainAsync, .7}} {
		all = append(all, experiment.Comparison{
			What: "A: variation of the queues' lengths, " + v.name, Unit: "%", Paper: new(v.paper),
			Ours: m.of(at("A", v.name), spread),
			Why:  "The paper's queues hold millions of requests, so that a few hundred more or less do not show; ours are bounded.",
		})
	}
	for _, v := range []struct {
		name  string
		paper float64
	}{{plainAsync, 60}, {"Async W=1e5", 825}, {"Async W=1e4", 6836}, {"Async W=1e3", 60065}} {
		all = append(all, experiment.Comparison{
			What: "A: repartitionings, " + v.name, Paper: new(v.paper),
			Ours: m.of(at("A", v.name), switches),
			Why:  "Ours leaves a while between two cuts, and does not apply a map that gains nothing.",
		})
	}
	all = append(
		all,
		experiment.Comparison{
			What: "Base: throughput falls during a cut by up to", Unit: "%", Paper: new(75.0),
			Ours: m.of(drops[0], dipOf),
			Why:  "The paper's workers go on with what is queued; ours have little queued here, so that the pause shows.",
		},
		experiment.Comparison{
			What: "Async: throughput falls during a cut by up to", Unit: "%", Paper: new(0.0),
			Ours: m.of(drops[1], dipOf),
			Why:  "One interval of 50 ms tells of the machine as well: the CSV file has how much the lowest between two cuts is below, where there is time between.",
		},
		experiment.Comparison{
			What: "Async: throughput during cuts is below that elsewhere by", Unit: "%", Paper: new(0.0),
			Ours: m.of(drops[1], lossOf),
			Why:  "Two cores run scheduler, workers and cut; the paper's cut has a core of its own.",
		},
	)
	for _, workers := range m.workers {
		all = append(
			all,
			experiment.Comparison{
				What: fmt.Sprintf("E, %d workers: requests on several partitions before a cut", workers), Unit: "%", Paper: nil,
				Ours: m.of(m.find("E", workers, longestBase), multiFirst),
				Why:  fmt.Sprintf("Keys dealt at random give %s %%.", number(expectedMulti(workers))),
			},
			experiment.Comparison{
				What: fmt.Sprintf("E, %d workers: the same after one cut", workers), Unit: "%",
				Ours: m.afterOne(workers),
				Why:  "The paper does not tell it.",
			},
		)
	}
	ran := all[:0]
	for _, c := range all {
		if !math.IsNaN(c.Ours) {
			ran = append(ran, c)
		}
	}
	return ran
}

// fastest returns the cell with the least makespan among the policies with a name
// prefix.
func (m *measured) fastest(workload string, workers int, prefix string) cell {
	var found cell
	least := math.Inf(1)
	for _, c := range m.cells {
		if c.workload == workload && c.workers == workers && len(c.name) >= len(prefix) && c.name[:len(prefix)] == prefix {
			if span := m.of(c, makespan); span < least {
				found, least = c, span
			}
		}
	}
	return found
}

// notes are the notes of the report.
var notes = []string{
	"Throughput is what ended in intervals of 50 ms; the paper's are a second.",
	"Keys are placed before the run, at random as seen from their order. The paper places each at its first use, all new keys of a scan together, which keeps some scans on one partition without any cut.",
	"Keys that a new map does not have stay where they are or follow their neighbours. The paper's code forgets them, and places them anew.",
	"How often Base cuts is told as a share of the run, as the paper's 1e5, 1e6 and 1e7 of 5e7 and 5e6 requests are.",
}
