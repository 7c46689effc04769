package mutants

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// way is a way to look for a bug.
type way struct {
	// explore is a variant to search; else seeds of the mode are simulated.
	explore, mode string
	// strategy is the strategy of all sites.
	strategy string
	// members are the changes of the members, with commas between them.
	members string
	// rates says that clusters have rate quotas.
	rates bool
	// sites is the size of the cluster, 0 if the seeds choose it.
	sites int
	// hungry has the clients ask for all there is while nothing fails.
	hungry bool
	// tests are packages with spaces between them, and run is a regular expression for
	// the names of their tests. timeout bounds the tests. hangs says that they may find a
	// deadlock.
	tests, run string
	timeout    time.Duration
	hangs      bool
	// subject is a store that the oracle of kvpart's order judges with so many seeds.
	// deadlock says that the oracle's watchdog finds the bug.
	subject  string
	seeds    uint64
	deadlock bool
}

// String names the way in reports.
func (w way) String() string {
	name := "sim " + w.mode
	if w.strategy != instances {
		name += " " + w.strategy
	}
	if w.members != "" {
		name += " " + w.members
	}
	if w.rates {
		name += " rates"
	}
	switch {
	case w.subject != "":
		return "order " + w.subject
	case w.tests != "":
		return "test " + w.tests
	case w.explore != "":
		return "explore " + w.explore
	case w.hungry:
		return name + " hungry"
	case w.sites > 0:
		return fmt.Sprintf("%s sites %d", name, w.sites)
	}
	return name
}

// ways lists how the simulator looks for a bug, in this order.
func (b *Bug) ways() []way {
	var list []way
	if b.Judge != JudgeSim {
		return nil
	}
	for _, mode := range b.Modes {
		list = append(list, way{mode: mode, strategy: b.Strategy, members: strings.Join(b.Members, ","), rates: b.Rates, sites: b.Sites})
	}
	for _, mode := range b.Modes {
		// Between variants, tokens may be set aside in the instance of another. Without
		// failures the members stay, and there are no rate quotas.
		if mode != switching && len(b.Members) == 0 && !b.Rates {
			list = append(list, way{mode: mode, strategy: b.Strategy, hungry: true})
		}
	}
	if b.Explore != "" {
		list = append(list, way{explore: b.Explore})
	}
	return list
}

// mostSeeds returns how many seeds bugs ask for in each way.
func mostSeeds(bugs []Bug) map[way]uint64 {
	most := make(map[way]uint64)
	for i := range bugs {
		for _, w := range bugs[i].ways() {
			most[w] = max(most[w], bugs[i].Seeds)
		}
	}
	return most
}

// waysOf lists all ways in which the simulator looks for any of the bugs.
func waysOf(bugs []Bug) []way {
	var list []way
	for i := range bugs {
		for _, w := range bugs[i].ways() {
			if !slices.Contains(list, w) {
				list = append(list, w)
			}
		}
	}
	return list
}

// cluster returns the flags for the clusters in which a way simulates seeds.
func (w way) cluster() []string {
	return []string{"-mode", w.mode, "-strategy", w.strategy, "-members", w.members, "-rates=" + strconv.FormatBool(w.rates), "-sites", strconv.Itoa(w.sites), "-hungry=" + strconv.FormatBool(w.hungry)}
}

// hungryPart is how many ordinary seeds there are for each seed with hungry clients: such
// a seed only tells of the rules of refusing.
const hungryPart = 4

func join(seeds []uint64) string {
	text := make([]string, len(seeds))
	for i, seed := range seeds {
		text[i] = strconv.FormatUint(seed, 10)
	}
	return strings.Join(text, ",")
}
