package sim

import (
	"fmt"
	"strings"
)

// Report counts what happened in a run, or in many.
type Report struct {
	// Hash is a hash of all events: the same for the same seed.
	Hash uint64

	Grants, Waits, Refusals, Releases, Repeats, Reused, Cancels, Overloads int
	Instances, CatchUps, Recoveries                                        int
	Creates, Deletes, Limits, Raises, Lowerings, Unknown, NoQuorum         int
	Crashes, MidBatch, Drops, Duplicates, Partitions, ClockJumps           int
}

type count struct {
	name string
	n    *int
}

func (r *Report) counts() []count {
	return []count{
		{"grants", &r.Grants},
		{"waits", &r.Waits},
		{"refusals", &r.Refusals},
		{"releases", &r.Releases},
		{"repeats", &r.Repeats},
		{"reused", &r.Reused},
		{"cancels", &r.Cancels},
		{"overloads", &r.Overloads},
		{"instances", &r.Instances},
		{"catch-ups", &r.CatchUps},
		{"recoveries", &r.Recoveries},
		{"creates", &r.Creates},
		{"deletes", &r.Deletes},
		{"limits", &r.Limits},
		{"raises", &r.Raises},
		{"lowerings", &r.Lowerings},
		{"unknown", &r.Unknown},
		{"no quorum", &r.NoQuorum},
		{"crashes", &r.Crashes},
		{"mid-batch", &r.MidBatch},
		{"drops", &r.Drops},
		{"duplicates", &r.Duplicates},
		{"partitions", &r.Partitions},
		{"clock jumps", &r.ClockJumps},
	}
}

// Add adds the counts of another run.
func (r *Report) Add(o Report) {
	mine := r.counts()
	for i, c := range o.counts() {
		*mine[i].n += *c.n
	}
}

// Missing names what never happened.
func (r *Report) Missing() []string {
	var none []string
	for _, c := range r.counts() {
		if *c.n == 0 {
			none = append(none, c.name)
		}
	}
	return none
}

// Trivial reports whether the run did so little that it shows nothing.
func (r *Report) Trivial() bool {
	return r.Grants+r.Refusals+r.Releases < 10 || r.Instances+r.Limits < 2 || r.Creates == 0
}

// String lists the counts.
func (r *Report) String() string {
	var b strings.Builder
	for i, c := range r.counts() {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", c.name, *c.n)
	}
	return b.String()
}
