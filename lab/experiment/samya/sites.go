package samya

import (
	"math"
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// sitesStudy is Figure 14.
var sitesStudy = study{
	name:  "sites",
	short: "Figure 14: from 5 to 20 sites, with one limit and with one that grows with them",
	long: `Plays ten minutes to 5, 10, 15 and 20 sites, several in a region, each with clients
of its own: with a limit of 5,000, and with 1,000 a site.`,
	span:   10 * time.Minute,
	plays:  sitesPlays,
	result: sitesResult,
}

func sitesPlays(s *setting) []play {
	var all []play
	for _, n := range s.siteCounts() {
		for _, limit := range siteLimits(n) {
			all = append(all, across(play{span: s.span, sites: n, limit: limit}, siteSystems, []string{fit})...)
		}
	}
	return all
}

var siteSystems = []string{transfers, majority, star, unlimited, oracle}

// siteCounts returns the numbers of sites, for a run each.
func (s *setting) siteCounts() []int {
	if s.quick {
		return []int{regions, 20}
	}
	return []int{regions, 10, 15, 20}
}

const (
	// paperLimit is the paper's limit for five sites.
	paperLimit = 5000
	limitASite = paperLimit / regions
)

// siteLimits returns the limits for a number of sites: the paper's, and a limit in
// proportion to the sites.
func siteLimits(sites int) []int {
	if sites == regions {
		return []int{paperLimit}
	}
	return []int{paperLimit, limitASite * sites}
}

// scaled returns the run of a system with a number of sites and a limit in
// proportion.
func (r *runs) scaled(system string, sites int) play {
	p := r.on(system, fit)
	p.sites, p.limit = sites, limitASite*sites
	return p
}

// The bounds of the goals.
const (
	mostNonLinear   = 5.0 // % of difference between the throughput of a site and its throughput with five sites
	mostMeanLatency = 2.0 // ms
)

// nonLinear returns the largest difference in percent to five sites. It compares
// the committed share of the demand of a site, which No Constraint commits in full:
// each site draws its own demand, so sites differ in demand.
func (r *runs) nonLinear(system string) float64 {
	served := func(n int) float64 {
		return median(r.ratios(r.scaled(system, n), r.scaled(unlimited, n), (*outcome).committed))
	}
	worst := 0.0
	for _, n := range r.siteCounts() {
		worst = max(worst, 100*math.Abs(ratio(served(n), served(regions))-1))
	}
	return worst
}

// rateASite returns the largest difference in percent between the throughput of a
// site and its throughput with five sites.
func (r *runs) rateASite(system string) float64 {
	of := func(n int) float64 { return r.median(r.scaled(system, n), (*outcome).rate) / float64(n) }
	worst := 0.0
	for _, n := range r.siteCounts() {
		worst = max(worst, 100*math.Abs(ratio(of(n), of(regions))-1))
	}
	return worst
}

func sitesGoals(r *runs) []experiment.Goal {
	slowest := 0.0
	for _, n := range r.siteCounts() {
		slowest = max(slowest, r.median(r.scaled(transfers, n), mean))
	}
	return []experiment.Goal{
		r.judged(experiment.AtMost("throughput of a site, of what is asked for there, differs from that with five sites, most of 10, 15 and 20", r.nonLinear(transfers), mostNonLinear, "%")),
		r.judged(experiment.Below("mean latency, most of 5 to 20 sites", slowest, mostMeanLatency, "ms")),
	}
}

func mean(o *outcome) float64 { return o.all.mean }

func sitesResult(r *runs) *experiment.Result {
	plays := sitesPlays(r.setting)
	res := &experiment.Result{
		Setup:  "Sites in five regions, each with its own clients and its own draw of the demand; open load.",
		Goals:  sitesGoals(r),
		Tables: []experiment.Table{r.table(plays, bySites, byLimit, bySystem)},
	}
	fixed := func(system string, n int) play {
		p := r.on(system, fit)
		p.sites, p.limit = n, paperLimit
		return p
	}
	for _, s := range variants {
		res.Compared = append(
			res.Compared,
			experiment.Comparison{What: "mean latency with 20 sites, " + title(s), Unit: "ms", Paper: new(paperMeanLatency), Ours: r.median(r.scaled(s, 20), mean), Why: "The paper gives an upper bound; ours includes 1 ms to the site and back."},
			experiment.Comparison{What: "mean latency with 20 sites and a limit of 5,000, " + title(s), Unit: "ms", Paper: new(paperMeanLatency), Ours: r.median(fixed(s, 20), mean), Why: "Not reproduced if the paper's limit is the same: demand quadruples, and the oracle refuses as well."},
			experiment.Comparison{What: "throughput of a site differs from five sites by at most, " + title(s), Unit: "%", Ours: r.rateASite(s), Why: "The paper says roughly linear; each site draws its own demand, and No Constraint differs as much."},
			experiment.Comparison{What: "the same, relative to the site's demand, " + title(s), Unit: "%", Ours: r.nonLinear(s), Why: "As above, without the difference between draws."},
		)
	}
	res.Compared = append(res.Compared, experiment.Comparison{
		What: "throughput of a site differs from five sites by at most, " + title(unlimited), Unit: "%", Ours: r.rateASite(unlimited), Why: "The difference between draws of the demand.",
	})
	systems := []string{transfers, majority, star, oracle}
	sitesAxis := plot.Axis{Label: "sites", Zero: true}
	res.Figures = []experiment.Figure{picture(
		"", "Figure 14: throughput and mean latency, medians over the seeds.",
		r.against(&plot.Lines{Title: "Throughput, limit of 1,000 a site", X: sitesAxis, Y: rateAxis}, systems, r.siteCounts(), r.scaled, (*outcome).rate),
		r.against(&plot.Lines{Title: "Mean latency, limit of 1,000 a site", X: sitesAxis, Y: plot.Axis{Label: "latency", Unit: "ms", Zero: true}}, systems[:3], r.siteCounts(), r.scaled, mean),
		r.against(&plot.Lines{Title: "Throughput, limit of 5,000", X: sitesAxis, Y: rateAxis}, systems, r.siteCounts(), fixed, (*outcome).rate),
		r.against(&plot.Lines{Title: "Mean latency, limit of 5,000", X: sitesAxis, Y: plot.Axis{Label: "latency", Unit: "ms", Zero: true}}, systems[:3], r.siteCounts(), fixed, mean),
	)}
	return res
}
