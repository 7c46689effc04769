package failuretest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// hits counts where sites were hit, over all victims.
type hits struct {
	mu    sync.Mutex
	began time.Time
	done  int
	all   int
	at    [phases][points]int
	open  int
	// transfers are the hits with tokens under way to another site.
	transfers int
	counts    victimCounts
}

func (h *hits) add(t *testing.T, got hit) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done++
	h.at[got.phase][got.point]++
	if got.open {
		h.open++
	}
	if got.transfer {
		h.transfers++
	}
	if h.done%50 == 0 {
		t.Logf("%d of %d hits, %d with an open instance, %s", h.done, h.all, h.open, time.Since(h.began).Round(time.Second))
	}
}

func (h *hits) finish(v *victim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts.add(v.counts)
}

// missing names the points and phases without a hit.
func (h *hits) missing() []string {
	var names []string
	for p := range points {
		n := 0
		for ph := range phases {
			n += h.at[ph][p]
		}
		if n == 0 {
			names = append(names, p.String())
		}
	}
	for ph := range phases {
		n := 0
		for p := range points {
			n += h.at[ph][p]
		}
		if n == 0 {
			names = append(names, ph.String())
		}
	}
	if h.open == 0 {
		names = append(names, "open instance")
	}
	if h.transfers == 0 {
		names = append(names, "transfer under way")
	}
	return names
}

// String is the table of the hits.
func (h *hits) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-18s", "")
	for p := range points {
		fmt.Fprintf(&b, "%13s", p)
	}
	fmt.Fprintf(&b, "%10s\n", "all")
	var columns [points]int
	sum := 0
	for ph := range phases {
		fmt.Fprintf(&b, "%-18s", ph)
		row := 0
		for p := range points {
			fmt.Fprintf(&b, "%13d", h.at[ph][p])
			columns[p] += h.at[ph][p]
			row += h.at[ph][p]
		}
		fmt.Fprintf(&b, "%10d\n", row)
		sum += row
	}
	fmt.Fprintf(&b, "%-18s", "all")
	for p := range points {
		fmt.Fprintf(&b, "%13d", columns[p])
	}
	fmt.Fprintf(&b, "%10d\nwith an open instance at the site: %d, with a transfer under way from it: %d\n", sum, h.open, h.transfers)
	c := h.counts
	fmt.Fprintf(&b, "acknowledged %d: granted %d, released %d, catalogue changes %d; refused %d; unknown and settled %d; lost %d",
		c.acknowledged(), c.granted, c.released, c.changed, c.refused, c.unknown, c.lost)
	return b.String()
}

// figures are the figures of the table's summary line.
func (h *hits) figures() figures {
	c := h.counts
	return figures{
		{"hits", h.done},
		{"open", h.open},
		{"transfers under way", h.transfers},
		{"acknowledged", c.acknowledged()},
		{"unknown", c.unknown},
		{"lost", c.lost},
	}
}

// plan is a hit to be made.
type plan struct {
	load phase
	in   injection
}

// killPlans returns n plans that walk over the calls of each thread, for each kind of
// call and each load. Call numbers are small at a start, which makes few calls. The other
// loads begin where most starts have ended.
func killPlans(n int) []plan {
	loads := []phase{redistributions, acquires, changes, redistributions, startUp, releases, acquires, redistributions}
	// Two a load. Names change once or twice a checkpoint.
	calls := []string{"pwrite64", "fdatasync", "pwrite64", "fdatasync", "renameat", "fsync"}
	var plans []plan
	for i := range n {
		p := plan{load: loads[i/2%len(loads)], in: injection{call: calls[i%len(calls)]}}
		walk := i / (2 * len(loads))
		// In steps, so that a short run sees all. A commit makes a write and a sync, a
		// checkpoint some ten and five, each in any of about six threads.
		number := 3 + 7*walk%60
		switch p.in.call {
		case "fdatasync":
			number = 3 + 5*walk%40
		case "renameat", "fsync":
			number = 2 + walk%5
		}
		if p.load == startUp {
			number = 1 + walk%4
		}
		p.in.when = fmt.Sprint(number)
		plans = append(plans, p)
	}
	return plans
}

// threeSites are the sites of a victim's cluster.
var threeSites = []string{"us", "eu", "as"}

// bootstraps hits the first start, on an empty directory, at each of its calls, as far as
// a single thread makes all of them.
func bootstraps() []plan {
	var plans []plan
	for n := 1; n <= pick(2, 3); n++ {
		for _, call := range []string{"pwrite64", "fdatasync"} {
			plans = append(plans, plan{in: injection{call: call, when: fmt.Sprint(n)}})
		}
	}
	for _, call := range []string{"renameat", "fsync"} {
		plans = append(plans, plan{in: injection{call: call, when: "1"}})
	}
	return plans
}

// TestKillAtAnyWriteOrSync kills sites over and over, as they begin a write or a sync of
// their log or database, or of the names of their files. Callers meanwhile make the sites
// redistribute and change the catalogue. After each restart on the data on disk, the
// callers ask again for all requests acknowledged since the kill before.
func TestKillAtAnyWriteOrSync(t *testing.T) {
	needStrace(t)
	setups := pick(fewSetups, allSetups)
	plans := killPlans(pick(24, 1000))
	h := &hits{began: time.Now(), all: len(plans) + len(bootstraps())}
	t.Run("victims", func(t *testing.T) {
		t.Run("first starts", func(t *testing.T) {
			t.Parallel()
			v := newVictim(t, fewSetups[0], "us")
			for n, p := range bootstraps() {
				h.add(t, v.first(n, p.in))
			}
		})
		for i, setup := range setups {
			t.Run(setup.String(), func(t *testing.T) {
				t.Parallel()
				v := newVictim(t, setup, threeSites...)
				v.begin()
				// Pairs of plans have the same load, and another call each.
				for n, p := range plans {
					if n/2%len(setups) == i && !t.Failed() {
						got, _ := v.round(n, p.load, p.in)
						h.add(t, got)
					}
				}
				v.end()
				h.finish(v)
			})
		}
	})
	t.Logf("%d kills in %s\n%s", h.done, time.Since(h.began).Round(time.Second), h)
	report(t, h.figures())
	if missing := h.missing(); long() && len(missing) > 0 {
		t.Errorf("never hit: %s", strings.Join(missing, ", "))
	}
}
