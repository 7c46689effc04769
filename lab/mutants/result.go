package mutants

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/samya-db/samya/lab/mutants/finding"
)

// Result holds the outcomes of all bugs and of the control.
type Result struct {
	options Options
	// bugs is how many there were to judge.
	bugs     int
	control  Outcome
	outcomes []Outcome
}

// Uncaught names the bugs that no invariant found.
func (r *Result) Uncaught() []string {
	names := []string{}
	for i := range r.outcomes {
		if how, _ := r.outcomes[i].CaughtBy(); how == "" {
			names = append(names, r.outcomes[i].Bug.Name)
		}
	}
	return names
}

// Alone counts the bugs that were compiled alone.
func (r *Result) Alone() int {
	n := 0
	for i := range r.outcomes {
		if r.outcomes[i].Alone != "" {
			n++
		}
	}
	return n
}

// ByExplore counts the bugs that the exhaustive search finds alone.
func (r *Result) ByExplore() int {
	n := 0
	for i := range r.outcomes {
		if f := r.outcomes[i].byExplore(); f.Violations > 0 {
			n++
		}
	}
	return n
}

// ControlViolations counts the failures of the unchanged code: violations, panics and
// hashes that differ.
func (r *Result) ControlViolations() int {
	n := 0
	for i := range r.control.Found {
		f := &r.control.Found[i]
		n += f.Violations + f.Panics + f.Hashes
	}
	return n
}

// OK reports whether all bugs were caught and the unchanged code passes.
func (r *Result) OK() bool { return len(r.Uncaught()) == 0 && r.ControlViolations() == 0 }

// Summary is the result as a single JSON object.
type Summary struct {
	// Bugs is how many were judged, Selected how many there were to judge: more if
	// the budget of time was up, in an order drawn from Order.
	Bugs      int      `json:"bugs"`
	Selected  int      `json:"selected"`
	Order     uint64   `json:"order,omitempty"`
	Caught    int      `json:"caught"`
	Uncaught  []string `json:"uncaught"`
	ByExplore int      `json:"by_explore"`
	// Alone is how many were compiled alone, not with others.
	Alone int `json:"alone"`
	// Kinds and Variants count the bugs.
	Kinds    map[string]int `json:"kinds"`
	Variants map[string]int `json:"variants"`
	Seeds    uint64         `json:"seeds"`
	Control  ControlSummary `json:"control"`
	Results  []BugSummary   `json:"results"`
}

// ControlSummary is about the unchanged code.
type ControlSummary struct {
	Violations int     `json:"violations"`
	Found      []Found `json:"found"`
}

// BugSummary is about a single bug.
type BugSummary struct {
	Name    string `json:"name"`
	Says    string `json:"says"`
	Rule    string `json:"rule"`
	Variant string `json:"variant"`
	Kind    string `json:"kind"`
	Judge   string `json:"judge"`
	Caught  bool   `json:"caught"`
	// Alone tells why the bug was compiled alone, if it was.
	Alone string `json:"alone,omitempty"`
	// Seconds is how long it took to find out.
	Seconds float64 `json:"seconds"`
	// How is the way that catches it, see [Found].
	How string `json:"how,omitempty"`
	finding.Finding
	// ExploreInvariant is the invariant by which the search finds the bug.
	ExploreInvariant string `json:"explore_invariant,omitempty"`
	// Error says why nothing could be found out.
	Error string `json:"error,omitempty"`
}

// Summary sums up.
func (r *Result) Summary() Summary {
	s := Summary{
		Bugs: len(r.outcomes), Selected: r.bugs, Order: r.options.Order, Uncaught: r.Uncaught(), ByExplore: r.ByExplore(), Alone: r.Alone(), Seeds: r.options.Seeds,
		Kinds: make(map[string]int), Variants: make(map[string]int), Results: []BugSummary{},
		Control: ControlSummary{Violations: r.ControlViolations(), Found: r.control.Found},
	}
	s.Caught = s.Bugs - len(s.Uncaught)
	for i := range r.outcomes {
		o := &r.outcomes[i]
		s.Kinds[o.Bug.Kind]++
		s.Variants[o.Bug.Variant]++
		s.Results = append(s.Results, o.summary())
	}
	return s
}

func (o *Outcome) summary() BugSummary {
	b := BugSummary{Name: o.Bug.Name, Says: o.Bug.Says, Rule: o.Bug.Rule, Variant: o.Bug.Variant, Kind: o.Bug.Kind, Judge: o.Bug.Judge, Alone: o.Alone}
	b.Seconds = o.Took.Round(100 * time.Millisecond).Seconds()
	b.How, b.Finding = o.CaughtBy()
	b.Caught = b.How != ""
	b.ExploreInvariant = o.byExplore().Invariant
	if o.Err != nil {
		b.Error = o.Err.Error()
	}
	if !b.Caught {
		for i := range o.Found {
			f := &o.Found[i]
			b.Seeds, b.Events, b.States, b.Tests = b.Seeds+f.Seeds, b.Events+f.Events, b.States+f.States, b.Tests+f.Tests
			b.Panics, b.Hashes, b.Closed = b.Panics+f.Panics, b.Hashes+f.Hashes, f.Closed
			if f.Panic != "" {
				b.Panic = f.Panic
			}
		}
	}
	return b
}

// Line describes the outcome of a bug, or of the control, in a line.
func (o *Outcome) Line() string {
	if o.Bug == nil {
		var seeds, events uint64
		states, tests := 0, 0
		for i := range o.Found {
			f := &o.Found[i]
			seeds, states, tests = seeds+f.Seeds, states+f.States, tests+f.Tests
			if f.States == 0 {
				events += f.Events
			}
		}
		line := fmt.Sprintf("control: %d seeds, %d events; %d states; %d tests", seeds, events, states, tests)
		if how, f := o.CaughtBy(); how != "" {
			line += fmt.Sprintf(", FAILS: %s by %s, seed %d, event %d: %s", f.Invariant, how, f.Seed, f.Event, f.Detail)
		}
		return line
	}
	b := o.summary()
	line := fmt.Sprintf("%s: %s", b.Name, b.outcome())
	if o.Alone != "" {
		line += " (compiled alone: " + o.Alone + ")"
	}
	return line
}

// outcome tells how a bug was caught, or why it was not.
func (b *BugSummary) outcome() string {
	switch {
	case b.Caught && b.Judge != JudgeSim:
		return fmt.Sprintf("%s in %.1f s", b.Invariant, b.Seconds)
	case b.Caught && b.Seed != 0:
		return fmt.Sprintf("%s by %s, seed %d, event %d", b.Invariant, b.How, b.Seed, b.Event)
	case b.Caught:
		return fmt.Sprintf("%s by %s, state %d", b.Invariant, b.How, b.States)
	case b.Error != "":
		return "NOT CAUGHT: " + b.Error
	case b.Judge == JudgeOrder && b.Detail != "":
		return "NOT CAUGHT: the oracle fails by nothing that was expected: " + b.Detail
	case b.Judge != JudgeSim && b.Panics > 0:
		return "NOT CAUGHT: no test fails but by a panic: " + b.Panic
	case b.Judge != JudgeSim:
		return fmt.Sprintf("NOT CAUGHT: %d tests pass", b.Tests)
	case b.Panics+b.Hashes > 0:
		return fmt.Sprintf("NOT CAUGHT: %d panics, %d hashes that differ, in %d seeds: %s", b.Panics, b.Hashes, b.Seeds, b.Panic)
	default:
		return fmt.Sprintf("NOT CAUGHT in %d seeds, %d states, %d events", b.Seeds, b.States, b.Events)
	}
}

// counts lists the names that occur, with their counts.
func counts(names []string, n map[string]int) string {
	var list []string
	for _, name := range names {
		if n[name] > 0 {
			list = append(list, fmt.Sprintf("%s %d", name, n[name]))
		}
	}
	return strings.Join(list, ", ")
}

// Print writes a table for people.
func (r *Result) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	s := r.Summary()
	row := func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				_, _ = fmt.Fprint(t, "\t") // Flush returns the error
			}
			_, _ = fmt.Fprint(t, c) // Flush returns the error
		}
		_, _ = fmt.Fprintln(t) // Flush returns the error
	}
	row("BUG", "VARIANT", "KIND", "CAUGHT", "SEARCH")
	for i := range s.Results {
		b := &s.Results[i]
		search := b.ExploreInvariant
		if search == "" {
			search = "-"
		}
		row(b.Name, b.Variant, b.Kind, b.outcome(), search)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	if s.Bugs < s.Selected {
		if _, err := fmt.Fprintf(w, "\n%d of %d bugs were judged, until the time was up, in the order %d\n", s.Bugs, s.Selected, s.Order); err != nil {
			return fmt.Errorf("print how many were judged: %w", err)
		}
	}
	_, err := fmt.Fprintf(w, "\n%d of %d bugs caught, %d by the exhaustive search alone; control: %d violations\n",
		s.Caught, s.Bugs, s.ByExplore, s.Control.Violations)
	if err != nil {
		return fmt.Errorf("print the summary: %w", err)
	}
	for _, b := range s.Results {
		if b.Alone == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "compiled alone: %s: %s\n", b.Name, b.Alone); err != nil {
			return fmt.Errorf("print the bugs compiled alone: %w", err)
		}
	}
	if _, err := fmt.Fprintf(w, "%d compiled together, %d alone\n", s.Bugs-s.Alone, s.Alone); err != nil {
		return fmt.Errorf("print how many were compiled together: %w", err)
	}
	if _, err := fmt.Fprintf(w, "by variant: %s; by kind: %s\n", counts(Variants(), s.Variants), counts(Kinds(), s.Kinds)); err != nil {
		return fmt.Errorf("print the counts: %w", err)
	}
	var uncaught []BugSummary
	for _, b := range s.Results {
		if slices.Contains(s.Uncaught, b.Name) {
			uncaught = append(uncaught, b)
		}
	}
	for _, b := range uncaught {
		if _, err := fmt.Fprintf(w, "NOT CAUGHT: %s: %s (%s)\n", b.Name, b.Says, b.Rule); err != nil {
			return fmt.Errorf("print the uncaught: %w", err)
		}
	}
	return nil
}
