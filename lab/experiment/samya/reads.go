package samya

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// readsStudy is Figure 15.
var readsStudy = study{
	name:  "reads",
	short: "Figure 15: from no reads to nothing but reads",
	long: `Has ` + strconv.Itoa(readClients) + ` clients in each region ask again as soon as they are answered, as the paper's
do, for ten seconds: a share of what they ask for reads how many tokens are free. A
read of samya is answered by one site as it knows (bounded staleness), or exactly, by
all sites; one of MultiPaxSys by its leader.`,
	span:   readSpan,
	plays:  readsPlays,
	result: readsResult,
}

func readsPlays(s *setting) []play {
	var all []play
	for _, share := range readShares {
		for _, of := range readers {
			all = append(all, of.play(s, share))
		}
	}
	return all
}

const (
	// readClients is the number of clients in a region, readSpan the length of the
	// load.
	readClients = 8
	readSpan    = 10 * time.Second
)

// reader is a system and its way of reading.
type reader struct {
	name, system string
	exact        bool
}

func (o reader) play(s *setting, share int) play {
	return play{system: o.system, workload: fit, span: s.span, clients: readClients, reads: share, exact: o.exact}
}

var (
	readShares  = []int{0, 10, 20, 30, 40, 50, 60, 65, 70, 80, 85, 90, 95, 100}
	readStale   = reader{"samya, bounded staleness", transfers, false}
	readExact   = reader{"samya, exact", transfers, true}
	readOne     = reader{"MultiPaxSys", oneRound, true}
	readBatched = reader{"MultiPaxSys, batched", batched, true}
	readers     = []reader{readStale, readExact, readOne, readBatched}
)

// readRate returns the throughput of a reader at a share of reads.
func (r *runs) readRate(of reader, share int) float64 {
	return r.median(of.play(r.setting, share), (*outcome).rate)
}

// readsGoals judges Figure 15.
func readsGoals(r *runs) []experiment.Goal {
	var goals []experiment.Goal
	for _, rival := range []reader{readOne, readBatched} {
		lowest := math.Inf(1)
		for _, share := range readShares {
			lowest = min(lowest, ratio(r.readRate(readStale, share), r.readRate(rival, share)))
		}
		g := experiment.AtLeast("bounded staleness: throughput over "+rival.name+", lowest of all shares of reads", lowest, 1, "×")
		g.Met = g.Got > 1
		goals = append(goals, r.judged(g))
	}
	return goals
}

// crossover returns the percentage of reads above which a reader is behind a rival,
// interpolated between the shares that were run; NaN if there is none.
func (r *runs) crossover(of, rival reader) float64 {
	last := math.NaN()
	for i, share := range readShares {
		d := math.Log(ratio(r.readRate(of, share), r.readRate(rival, share)))
		if d < 0 {
			if i == 0 {
				return float64(share)
			}
			from := float64(readShares[i-1])
			return from + (float64(share)-from)*last/(last-d)
		}
		last = d
	}
	return math.NaN()
}

func readsResult(r *runs) *experiment.Result {
	panel := plot.Lines{Title: "Throughput", X: plot.Axis{Label: "reads", Unit: "%", Zero: true}, Y: plot.Axis{Label: "committed", Unit: "transactions/s", Log: true}}
	for _, of := range readers {
		line := plot.Series{Name: of.name, Marks: true}
		for _, share := range readShares {
			if v := r.readRate(of, share); v > 0 {
				line.Points = append(line.Points, plot.Point{X: float64(share), Y: v})
			}
		}
		if len(line.Points) > 0 {
			panel.Series = append(panel.Series, line)
		}
	}
	res := &experiment.Result{
		Setup:   fmt.Sprintf("Five regions, limit 5,000; %d clients in each ask again once answered.", readClients),
		Goals:   readsGoals(r),
		Tables:  []experiment.Table{r.table(readsPlays(r.setting), byReads, bySystem, byExact)},
		Notes:   []string{"No token moves here, so all variants of samya do the same: the paper's two lines coincide."},
		Figures: []experiment.Figure{picture("", "Figure 15: throughput against the share of reads, medians over the seeds.", &panel)},
	}
	for _, c := range []struct {
		of, rival reader
		paper     *float64
		why       string
	}{
		{readExact, readOne, new(paperCrossover), "The crossing depends on the cost of a write for MultiPaxSys, a round, and on how many clients are near its leader."},
		{readExact, readBatched, nil, "Not in the paper: a write costs no more than the way to the leader and a round that many share."},
	} {
		at := r.crossover(c.of, c.rival)
		if math.IsNaN(at) {
			res.Notes = append(res.Notes, fmt.Sprintf("%s is never behind %s.", c.of.name, c.rival.name))
			continue
		}
		res.Compared = append(res.Compared, experiment.Comparison{What: fmt.Sprintf("%s: behind %s beyond a share of reads of", c.of.name, c.rival.name), Unit: "%", Paper: c.paper, Ours: at, Why: c.why})
	}
	return res
}
