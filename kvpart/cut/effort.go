package cut

// The bounds on the number of trials. Two trials of a single weight a vertex take about
// twice gpmetis's time. With two weights gpmetis takes longer, and luck counts for more:
// manyTrials take twice its time. So many trials of a tiny graph take a millisecond.
// Graphs of more than trialWork/2 vertices and neighbours get a single trial.
const (
	trialWork  = 1 << 19
	tinyWork   = 1 << 12
	fewTrials  = 2
	manyTrials = 8
)

// mostTries is the number of times a trial cuts the coarsest graph from scratch. Trials of
// graphs of up to smallWork vertices and neighbours mostly spend their time on the coarsest
// graph. There the second of fewTrials makes do with one try.
const mostTries, smallWork = 3, 1 << 16

// size returns about the number of vertices and neighbours.
func (p *problem) size() int { return p.l.n + len(p.l.adj) + 1 }

// trials returns the number of times that p is partitioned from scratch.
func (p *problem) trials() int {
	size := p.size()
	most := fewTrials
	if p.l.dims > 1 {
		most = manyTrials
	}
	most = max(most, min(manyTrials, tinyWork/size))
	return max(1, min(most, trialWork/size))
}

// tries returns the number of times that a trial cuts the coarsest graph.
func (p *problem) tries(trial int) int {
	if trial > 0 && p.trials() == fewTrials && p.size() <= smallWork {
		return 1
	}
	return mostTries
}
