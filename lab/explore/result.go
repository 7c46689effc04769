package explore

import (
	"fmt"
	"strings"
	"time"
)

// Progress is how far a search has come.
type Progress struct {
	States, Frontier int
	Transitions      int64
	Elapsed          time.Duration
}

// String describes a search under way in a line.
func (p Progress) String() string {
	return fmt.Sprintf("%d states, %d to expand, %d transitions, %.0f states/s",
		p.States, p.Frontier, p.Transitions, float64(p.States)/max(p.Elapsed.Seconds(), 1e-9))
}

// Result is the result of a search.
type Result struct {
	Variant string `json:"variant"`
	// States are the distinct states of the whole system that were found, each
	// of them checked; Transitions are the steps between them that were taken.
	States      int   `json:"states"`
	Transitions int64 `json:"transitions"`
	// Depth is the largest number of steps by which a state was found, not counting steps
	// of sites that only answer.
	Depth int `json:"depth"`
	// Violations counts the invariants found broken: a search ends with the first state
	// or step that breaks any.
	Violations int         `json:"violations"`
	Broken     []Violation `json:"broken,omitempty"`
	// Trace leads from the start to the violation.
	Trace []string `json:"trace,omitempty"`
	// SiteStates and Messages are the distinct states of single sites and the
	// distinct messages among them; Steps are calls of the real state machine.
	SiteStates int `json:"site_states"`
	Messages   int `json:"messages"`
	Steps      int `json:"steps"`
	// Healed states were let run on and came to rest.
	Healed  int     `json:"healed"`
	Seconds float64 `json:"seconds"`
	// Memory is the memory that the process had from the system at the end, in bytes.
	Memory uint64 `json:"memory_bytes"`
	Bounds Bounds `json:"bounds"`
	// Closed says that no state within the bounds was left out.
	Closed bool `json:"closed"`
}

// String is a summary for people.
func (r *Result) String() string {
	var s strings.Builder
	b := r.Bounds
	fmt.Fprintf(&s, "%s: %d sites, instances %d, leaders %d with %d %s each, crashes %d, acquires %d, releases %d",
		r.Variant, Sites, b.Instances, b.Leaders, b.Ballots, ballots(r.Variant), b.Crashes, b.Acquires, b.Releases)
	if b.View != "" && r.Variant == "majority" {
		fmt.Fprintf(&s, ", change of the view: %s", b.View)
	}
	s.WriteByte('\n')
	fmt.Fprintf(&s, "  %d distinct states, %d transitions, depth %d, %.1f s, %d MiB\n",
		r.States, r.Transitions, r.Depth, r.Seconds, r.Memory>>20)
	fmt.Fprintf(&s, "  %d distinct states of a site, %d distinct messages, %d steps of the state machine\n", r.SiteStates, r.Messages, r.Steps)
	fmt.Fprintf(&s, "  %d states healed: all instances ended, no offer stuck\n", r.Healed)
	for _, line := range r.Trace {
		fmt.Fprintf(&s, "    %s\n", line)
	}
	for _, v := range r.Broken {
		fmt.Fprintf(&s, "  VIOLATION of %s: %s\n", v.Invariant, v.Detail)
	}
	switch {
	case r.Violations > 0:
	case r.Closed:
		s.WriteString("  closed: no violation in any schedule within these bounds\n")
	default:
		s.WriteString("  NOT CLOSED: no violation found so far\n")
	}
	return s.String()
}

// ballots returns the variant's name for the attempts of a leader.
func ballots(variant string) string {
	if variant == "star" {
		return "counters"
	}
	return "ballots"
}

// Joined is the sum of several results.
type Joined struct {
	*Result
	Variants []*Result `json:"variants"`
}

// Join adds up results of the same bounds; there must be at least a single result. It
// returns a single result as it is.
func Join(results []*Result) any {
	if len(results) == 1 {
		return results[0]
	}
	sum := Result{Variant: "all", Bounds: results[0].Bounds, Closed: true}
	for _, r := range results {
		sum.States += r.States
		sum.Transitions += r.Transitions
		sum.Depth = max(sum.Depth, r.Depth)
		sum.Violations += r.Violations
		sum.SiteStates += r.SiteStates
		sum.Messages += r.Messages
		sum.Steps += r.Steps
		sum.Healed += r.Healed
		sum.Seconds += r.Seconds
		sum.Memory = max(sum.Memory, r.Memory)
		sum.Closed = sum.Closed && r.Closed
	}
	return Joined{&sum, results}
}
