package replay

import (
	"fmt"
	"time"

	"github.com/samya-db/samya/site/core"
)

// Goal is one thing that our policies have to show against others.
type Goal struct {
	Workload string `json:"workload"`
	// What says what is measured, Got what came out, Most what may at most.
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
	// The share of requests that wait, and the redistributions, as parts of those
	// under the paper's policies: fewer of these on the paper's own workload.
	mostWaits, mostBegun, mostBegunOfPaper = 0.25, 1.5, 0.8
	// mostBeyondLocal is how many milliseconds the 99.9th percentile may be above
	// that of sites that only ever answer from what they hold, where tokens are
	// plenty.
	mostBeyondLocal = 2
	// mostPerSecond is how many redistributions a second may be begun over all sites
	// where tokens are short all the time.
	mostPerSecond = 1
	// mostOfConstant is the part of waits that forecasts of the timing of demand may
	// leave of those under forecasts that are the same at all times, with instances
	// alone: by transfers a site has tokens as soon as it sees a burst begin, so that
	// when one comes need not be known.
	mostOfConstant = 0.5
	// mostWaitsInBatches is as mostWaits, where demand comes all at once.
	mostWaitsInBatches = 0.022
	// mostInCrowd is how many redistributions a second may be begun over all sites of a
	// crowd, however many these are: one each crowdStep of the core.
	mostInCrowd = 4
)

// Crowd is a limit of which many sites want more than there is, so that most are short
// at any time.
type Crowd struct {
	// Name stands for the workload in results.
	Name string
	// Workload is what places ask for, as many as there are Places, for so many Bins.
	Workload     string
	Places, Bins int
	Limit        core.Tokens
}

// Crowds are those that goals are judged by: a quarter of what all sites want.
func Crowds() []Crowd {
	return []Crowd{
		{Name: "crowd-20", Workload: "fit", Places: 20, Bins: 36, Limit: 4800},
		{Name: "crowd-50", Workload: "fit", Places: 50, Bins: 24, Limit: 12_000},
	}
}

// GoalSettings are the settings that Goals needs the summaries of, beside the one
// to be judged.
func GoalSettings() []string { return []string{goalControl, goalLocal, goalTimed, goalConstant} }

// Goals judges a setting by medians over seeds. Its error names what is missing.
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

// seconds is the length of a whole run, which goals are judged by.
const seconds = 3600

// part is a of b; of nothing, all is above any bound.
func part(a, b float64) float64 {
	switch {
	case b > 0:
		return a / b
	case a > 0:
		return 1
	}
	return 0
}
