package replay

import (
	"fmt"
	"time"

	"github.com/samya-db/samya/site/core"
)

// Goal is a comparison that our policies have to win.
type Goal struct {
	Workload string `json:"workload"`
	// What names the figure, Got is its value, Most its bound.
	What string  `json:"what"`
	Got  float64 `json:"got"`
	Most float64 `json:"most"`
	Met  bool    `json:"met"`
}

// The settings that goals compare.
const (
	goalControl  = "paper"
	goalLocal    = "refuse"
	goalTimed    = "instance"
	goalConstant = "instance-constant"
)

const (
	// mostWaits and mostBegun bound the share of requests that wait, and the
	// redistributions, as parts of the figures under the paper's policies.
	// mostBegunOfPaper bounds the redistributions on fit and tight.
	mostWaits, mostBegun, mostBegunOfPaper = 0.25, 1.5, 0.8
	// mostBeyondLocal bounds the 99.9th percentile on fit and, while tokens are
	// plenty, the 99th percentile on tight. Both are in milliseconds above the
	// percentile of sites that only answer from their own tokens.
	mostBeyondLocal = 2
	// mostPerSecond bounds the redistributions begun a second, over all sites, with
	// tokens short all the time.
	mostPerSecond = 1
	// mostOfConstant bounds the waits under forecasts of the timing of demand, as a
	// part of the waits under constant forecasts, with instances alone. With
	// transfers a site gets tokens as soon as it sees a burst begin, and needs no
	// forecast of its time.
	mostOfConstant = 0.5
	// mostWaitsInBatches is mostWaits for demand that comes all at once.
	mostWaitsInBatches = 0.022
	// mostInCrowd bounds the redistributions begun a second over all sites of a
	// crowd of any size: a redistribution each crowdStep of the core.
	mostInCrowd = 4
)

// Crowd is a limit too small for the demand of many sites: most sites are short at
// any time.
type Crowd struct {
	// Name is the name of the workload in results.
	Name string
	// Workload is the demand of a number of Places for a number of Bins.
	Workload     string
	Places, Bins int
	Limit        core.Tokens
}

// Crowds returns the crowds of the goals, with limits of a quarter of the demand of
// all sites.
func Crowds() []Crowd {
	return []Crowd{
		{Name: "crowd-20", Workload: "fit", Places: 20, Bins: 36, Limit: 4800},
		{Name: "crowd-50", Workload: "fit", Places: 50, Bins: 24, Limit: 12_000},
	}
}

// GoalSettings returns the settings that Goals needs in the summaries, beside the
// setting on trial.
func GoalSettings() []string { return []string{goalControl, goalLocal, goalTimed, goalConstant} }

// Goals judges a setting by medians over seeds. Its error names a missing summary.
func Goals(summaries []Summary, setting string) ([]Goal, error) {
	var goals []Goal
	var err error
	value := func(workload, setting, key string) float64 {
		for i := range summaries {
			if s := &summaries[i]; s.Workload == workload && s.Setting == setting {
				return s.Median[key]
			}
		}
		if err == nil {
			err = fmt.Errorf("judging %s: no summary of %s on %s", setting, setting, workload)
		}
		return 0
	}
	add := func(workload, what string, got, most float64) {
		goals = append(goals, Goal{Workload: workload, What: what, Got: got, Most: most, Met: got <= most})
	}
	for _, w := range []string{"fit", "tight", "burst", "over"} {
		add(w, "requests that wait, of those under the paper's policies",
			part(value(w, setting, "waited_percent"), value(w, goalControl, "waited_percent")), mostWaits)
		most := mostBegun
		if w == "fit" || w == "tight" {
			most = mostBegunOfPaper
		}
		add(w, "redistributions, of those under the paper's policies",
			part(value(w, setting, "begun"), value(w, goalControl, "begun")), most)
	}
	for _, w := range []string{"fit", "tight", "burst"} {
		add(w, "refused while a twentieth of the limit was free", value(w, setting, "plenty_refused"), 0)
	}
	add("tight", "p99 beyond that of local answers while a twentieth of the limit is free, ms",
		value("tight", setting, "plenty_p99_ms")-value("tight", goalLocal, "p99_ms"), mostBeyondLocal)
	add("fit", "p99.9 beyond that of local answers, ms", value("fit", setting, "p999_ms")-value("fit", goalLocal, "p999_ms"), mostBeyondLocal)
	add("over", "redistributions a second over all sites", value("over", setting, "begun")/seconds, mostPerSecond)
	add("batch", "requests that wait, of those under the paper's policies",
		part(value("batch", setting, "waited_percent"), value("batch", goalControl, "waited_percent")), mostWaitsInBatches)
	add("batch", "requests that wait with instances alone, of those without the timing of demand",
		part(value("batch", goalTimed, "waited_percent"), value("batch", goalConstant, "waited_percent")), mostOfConstant)
	for _, c := range Crowds() {
		add(c.Name, "redistributions a second over all sites", value(c.Name, setting, "begun")/(time.Duration(c.Bins)*Bin).Seconds(), mostInCrowd)
		add(c.Name, "acquires that time out", value(c.Name, setting, "timed_out"), 0)
	}
	return goals, err
}

// seconds is the length of a whole run.
const seconds = 3600

// beyond stands for the ratio of a figure to a control of 0: it is above every bound.
const beyond = 1e9

// part returns a/b; for b = 0 it returns beyond if a is above 0, else 0.
func part(a, b float64) float64 {
	switch {
	case b > 0:
		return a / b
	case a > 0:
		return beyond
	}
	return 0
}
