package samya

import (
	"fmt"
	"math"
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// crashStudy is Figure 10.
var crashStudy = study{
	name:  "crash",
	short: "Figure 10: a region crashes every ten minutes, until one is alive",
	long: `Crashes a region with its site and its clients every ten minutes of an hour, until
one is alive. Those that are alive go on with what they hold, and with what of it they
can share: the majority variant while three of five are alive, star and auto always.`,
	span: time.Hour,
	plays: func(s *setting) []play {
		return across(play{span: s.span, fault: crashes}, failureSystems, failureWorkloads)
	},
	result: crashResult,
}

// partitionStudy is Figure 11.
var partitionStudy = study{
	name:  "partition",
	short: "Figure 11: three regions are cut off from the other two",
	long: `Parts US, AS and EU from AU and SA for most of half an hour; clients go on asking the
sites of their own region on both sides.`,
	span: 30 * time.Minute,
	plays: func(s *setting) []play {
		return across(play{span: s.span, fault: cut}, failureSystems, failureWorkloads)
	},
	result: partitionResult,
}

var (
	failureSystems   = []string{transfers, majority, star, auto, transfersAuto, oneRound, batched}
	failureWorkloads = []string{fit, tight}
)

// failed returns the run of a system on a workload under a fault.
func (r *runs) failed(system, workload string, f fault) play {
	p := r.on(system, workload)
	p.fault = f
	return p
}

// regions is the number of regions, crashed the number of regions that crash in a
// run of crashes.
const (
	regions = 5
	crashed = regions - 1
)

// eras is the number of equal parts of a run of crashes. A region crashes at the
// end of each part but the last two.
const eras = 6

// aliveIn returns the number of regions alive at the start of a minute of a run of
// crashes. whole reports whether the number holds for the whole minute.
func aliveIn(minute, minutes int) (alive int, whole bool) {
	at := func(m float64) int {
		return regions - min(crashed, int(math.Floor(m*eras/float64(minutes)+1e-9)))
	}
	first, last := at(float64(minute)), at(float64(minute+1)-1e-6)
	return first, first == last
}

// ofBetter returns the transactions that auto commits in each minute, as a ratio to
// the better of majority and star under the same demand: medians over the seeds.
func (r *runs) ofBetter(workload string, f fault) []float64 {
	minutes := make([]float64, r.minutes())
	for m := range minutes {
		minutes[m] = median(r.by(func(of func(play) *outcome) float64 {
			in := func(system string) float64 { return of(r.failed(system, workload, f)).inMinute(m) }
			return ratio(in(auto), max(in(majority), in(star)))
		}))
	}
	return minutes
}

// betterOfMedians returns the ratios of the medians over the seeds instead.
func (r *runs) betterOfMedians(workload string, f fault) []float64 {
	minutes := func(system string) []float64 {
		return r.perMinute(r.failed(system, workload, f), func(o *outcome) []float64 { return o.byMinute })
	}
	ours, a, b := minutes(auto), minutes(majority), minutes(star)
	for i := range ours {
		ours[i] = ratio(ours[i], max(a[i], b[i]))
	}
	return ours
}

// howCompared describes the comparison of auto in the goals, and gives the result
// of the other comparison.
func (r *runs) howCompared(f fault) string {
	return fmt.Sprintf("The goals compare runs under equal demand, and take the median ratio. "+
		"Medians of each system may be of different hours: there auto has %.3g of the better in its lowest minute on fit, and %.3g on tight.",
		least(r.betterOfMedians(fit, f)), least(r.betterOfMedians(tight, f)))
}

// leastOfBetter is the least ratio of auto to the better of majority and star in
// each minute.
const leastOfBetter = .98

// crashGoals judges Figure 10.
func crashGoals(r *runs) []experiment.Goal {
	var goals []experiment.Goal
	for _, w := range failureWorkloads {
		of := r.ofBetter(w, crashes)
		lowest := make(map[int]float64)
		for m, v := range of {
			alive, whole := aliveIn(m, r.minutes())
			if !whole {
				continue // a minute with a crash, in a brief run
			}
			if alive > 2 {
				alive = 3
			}
			if was, ok := lowest[alive]; !ok || !(v >= was) {
				lowest[alive] = v
			}
		}
		for _, a := range []struct {
			alive int
			what  string
		}{{3, "three or more alive"}, {2, "two alive"}, {1, "one alive"}} {
			goals = append(goals, r.judged(experiment.AtLeast(
				fmt.Sprintf("%s: auto, of the better of majority and star, lowest minute, %s", w, a.what), lowest[a.alive], leastOfBetter, "×",
			)))
		}
		alone := math.Inf(1)
		for m, v := range r.perMinute(r.failed(auto, w, crashes), func(o *outcome) []float64 { return o.byMinute }) {
			if alive, whole := aliveIn(m, r.minutes()); alive == 1 && whole {
				alone = min(alone, v)
			}
		}
		goals = append(goals, r.judged(experiment.AtLeast(w+": auto commits with one alive, lowest minute", alone, 1, "/min")))
	}
	return goals
}

func crashResult(r *runs) *experiment.Result {
	plays := across(play{span: r.span, fault: crashes}, failureSystems, failureWorkloads)
	res := &experiment.Result{
		Setup:    fmt.Sprintf("Five regions, limit 5,000, open load; every %.2g minutes a region crashes with its site and its clients, until a single region is alive.", float64(r.minutes())/eras),
		Goals:    crashGoals(r),
		Tables:   failureTables(r, plays),
		Figures:  failureFigures(r, plays, "Figure 10"),
		Compared: failureCompared(r, crashes),
		Notes: []string{
			r.howCompared(crashes),
			"Tokens held by clients of a crashed region stay out: nobody releases them, nor could a site that is down take them back.",
			"Earlier crashes decide how many tokens the remaining sites hold together. Nobody can know which site holds them at the next crash.",
		},
	}
	return res
}

// cutSpan returns the begin and the end of the cut of a run, in minutes.
func cutSpan(minutes float64) (from, to float64) { return cutFrom * minutes, cutTo * minutes }

// cutFrom and cutTo are the begin and the end of a cut, as shares of the run.
const cutFrom, cutTo = .1, .9

func partitionGoals(r *runs) []experiment.Goal {
	var goals []experiment.Goal
	for _, w := range failureWorkloads {
		goals = append(goals, r.judged(experiment.AtLeast(w+": auto, of the better of majority and star, lowest minute", least(r.ofBetter(w, cut)), leastOfBetter, "×")))
	}
	return goals
}

func partitionResult(r *runs) *experiment.Result {
	plays := across(play{span: r.span, fault: cut}, failureSystems, failureWorkloads)
	from, to := cutSpan(r.span.Minutes())
	figures := failureFigures(r, plays, "Figure 11")
	for _, f := range figures {
		for _, p := range f.Panels {
			l := p.(*plot.Lines)
			l.Spans, l.Spanned = []plot.Span{{From: from, To: to}}, "cut"
		}
	}
	return &experiment.Result{
		Setup:    fmt.Sprintf("Five regions, limit 5,000, open load; US, AS and EU are cut off from AU and SA from minute %.2g to minute %.3g.", from, to),
		Goals:    partitionGoals(r),
		Tables:   failureTables(r, plays),
		Figures:  figures,
		Compared: failureCompared(r, cut),
		Notes: []string{
			r.howCompared(cut),
			"The paper's cut lasts the whole run; ours heals before the end, to show the time after it as well.",
		},
	}
}

func failureTables(r *runs, plays []play) []experiment.Table {
	return []experiment.Table{
		r.table(plays, byWorkload, bySystem),
		r.minuteTable("minutes", plays, func(p play) string { return p.workload + " " + p.system }, func(o *outcome) []float64 { return o.byMinute }),
	}
}

func failureFigures(r *runs, plays []play, what string) []experiment.Figure {
	var panels []plot.Panel
	for _, w := range failureWorkloads {
		var of []play
		for _, p := range plays {
			if p.workload == w {
				of = append(of, p)
			}
		}
		panels = append(panels, r.rateLines("Throughput, "+w, of, 1))
	}
	return []experiment.Figure{picture("", what+": throughput of each minute, medians over the seeds.", panels...)}
}

// failureCompared reports the throughput of all systems. The paper gives it in
// figures alone.
func failureCompared(r *runs, f fault) []experiment.Comparison {
	var all []experiment.Comparison
	for _, w := range failureWorkloads {
		for _, s := range failureSystems {
			all = append(all, experiment.Comparison{
				What: w + ": throughput, " + title(s), Unit: "/s", Ours: r.median(r.failed(s, w, f), (*outcome).rate), Why: whyFailure(s),
			})
		}
	}
	return all
}

// whyFailure compares the behaviour of a system with the paper's description.
func whyFailure(system string) string {
	switch system {
	case oneRound:
		return "As in the paper: far less than samya while a majority is reached, then nothing."
	case batched:
		return "Not in the paper; serves as long as the line above."
	case majority:
		return "As in the paper: without a majority its sites serve their escrow, and move nothing."
	case star:
		return "As in the paper: it keeps moving tokens among the remaining sites."
	case auto:
		return "Not in the paper: majority while possible, star otherwise."
	}
	return "Direct transfers are not in the paper."
}
