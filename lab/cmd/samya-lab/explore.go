package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/samya-db/samya/lab/explore"
)

// exploreOptions are the flags of explore.
type exploreOptions struct {
	variant, bound string
	bounds         explore.Bounds
	options        explore.Options
	json           bool
}

// exploreCommand is `samya-lab explore`.
func (l *lab) exploreCommand() *cobra.Command {
	var o exploreOptions
	cmd := &cobra.Command{
		Use:   "explore",
		Short: "Search all schedules of three sites, to closure",
		Long: `Runs the real state machines of three sites through every schedule within the
bounds: messages in any order, each any number of times or never, time-outs at
any time, crashes that lose what is not durable, an acquire and a release in
between. Every state is checked. A violation is told as the schedule that leads
to it.

--bound names a set of bounds; the other flags change single ones:
  small     two rival leaders, one ballot or counter each: a second
  sequence  one leader, two ballots or counters; majority: in each of two
            instances: half a minute
  default   two rival leaders, two ballots or counters each, one crash: minutes,
            4 GiB
  join      as sequence; the first site has the last join the voters: seconds
  leave     as sequence; the first site has the last leave the voters: seconds
  drain     one ballot, counter or round; the last site leaves and hands all
            over: seconds
  loss      one leader, one ballot, counter or round; any site is written off
            at any time; majority: twice, and a view of the others: half a minute
  large     the same with two crashes: a quarter of an hour, 8 GiB`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.explore(cmd, &o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.variant, "protocol", "all", "how redistributions are agreed: "+strings.Join(explore.Variants(), ", ")+" or all")
	f.StringVar(&o.bound, "bound", "default", "bounds: "+strings.Join(explore.BoundsNames(), ", "))
	f.IntVar(&o.bounds.Instances, "instances", 0, "redistributions after each other")
	f.IntVar(&o.bounds.Leaders, "leaders", 0, "sites that may lead")
	f.IntVar(&o.bounds.Ballots, "ballots", 0, "ballots or counters of a leader in an instance")
	f.IntVar(&o.bounds.Crashes, "crashes", 0, "crashes in all")
	f.IntVar(&o.bounds.Acquires, "acquires", 0, "acquires in all")
	f.IntVar(&o.bounds.Releases, "releases", 0, "releases in all")
	f.BoolVar(&o.bounds.Anywhere, "anywhere", false, "clients go to any site, not to one each")
	f.Int64Var(&o.bounds.Tokens, "tokens", 0, "tokens of each site at the start")
	f.IntVar(&o.bounds.Losses, "written-off", 0, "sites that are written off: 0 or 1, any site at any time")
	f.BoolVar(&o.bounds.Plain, "plain", false, "without the reductions that rest on the protocol")
	f.IntVar(&o.options.MaxStates, "max-states", 50_000_000, "give up after so many states, and fail; 0 for never")
	f.DurationVar(&o.options.Budget, "budget", 0, "begin no more after this time, of states of a protocol, and do not fail; 0 for never")
	f.StringSliceVar(&o.options.Ignore, "ignore", nil, "invariants not to check")
	f.BoolVar(&o.json, "json", false, "print JSON, one line on stdout")
	return cmd
}

// explore searches the variants in turn.
func (l *lab) explore(cmd *cobra.Command, o *exploreOptions) error {
	bounds, err := explore.BoundsByName(o.bound)
	if err != nil {
		return &usageError{fmt.Errorf("--bound: %w", err)}
	}
	for flag, set := range map[string]func(){
		"instances":   func() { bounds.Instances = o.bounds.Instances },
		"leaders":     func() { bounds.Leaders = o.bounds.Leaders },
		"ballots":     func() { bounds.Ballots = o.bounds.Ballots },
		"crashes":     func() { bounds.Crashes = o.bounds.Crashes },
		"acquires":    func() { bounds.Acquires = o.bounds.Acquires },
		"releases":    func() { bounds.Releases = o.bounds.Releases },
		"anywhere":    func() { bounds.Anywhere = o.bounds.Anywhere },
		"written-off": func() { bounds.Losses = o.bounds.Losses },
		"tokens":      func() { bounds.Tokens = o.bounds.Tokens },
		"plain":       func() { bounds.Plain = o.bounds.Plain },
	} {
		if cmd.Flags().Changed(flag) {
			set()
		}
	}
	if err := bounds.Validate(); err != nil {
		return &usageError{fmt.Errorf("bounds: %w", err)}
	}
	if o.options.Budget < 0 {
		return &usageError{errors.New("--budget must not be below zero")}
	}
	variants := explore.Variants()
	if o.variant != "all" {
		variants = []string{o.variant}
	}
	// Nearly all of the heap is live.
	defer debug.SetGCPercent(debug.SetGCPercent(40))
	var results []*explore.Result
	violated, closed := false, true
	for _, name := range variants {
		v, err := explore.New(name, bounds)
		if err != nil {
			return &usageError{fmt.Errorf("--protocol: %w", err)}
		}
		options := o.options
		options.Bounds, options.HealEvery, options.HealMost = bounds, 997, 5000
		options.Progress = l.progress(name)
		r, err := explore.Run(cmd.Context(), v, options)
		l.progressDone()
		if err != nil {
			return fmt.Errorf("explore %s: %w", name, err)
		}
		results = append(results, r)
		late := options.Budget > 0 && r.Seconds >= options.Budget.Seconds()
		violated, closed = violated || r.Violations > 0, closed && (r.Closed || late)
		if !o.json {
			if _, err := fmt.Fprint(l.stdout, r); err != nil {
				return fmt.Errorf("print the result: %w", err)
			}
		}
	}
	if o.json {
		if err := json.NewEncoder(l.stdout).Encode(explore.Join(results)); err != nil {
			return fmt.Errorf("print the results: %w", err)
		}
	}
	switch {
	case violated:
		return errViolated
	case !closed:
		return fmt.Errorf("not closed within %d states (--max-states)", o.options.MaxStates)
	default:
		return nil
	}
}

// isTerminal reports whether stderr is a terminal.
func (l *lab) isTerminal() bool {
	f, ok := l.stderr.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// progress returns a function that prints the progress of a search: a line that it
// overwrites on a terminal, elsewhere a line every five seconds.
func (l *lab) progress(variant string) func(explore.Progress) {
	if l.isTerminal() {
		return func(p explore.Progress) {
			_, _ = fmt.Fprintf(l.stderr, "\r\x1b[K%s: %v", variant, p)
		}
	}
	var last time.Duration
	return func(p explore.Progress) {
		if p.Elapsed-last >= 5*time.Second {
			last = p.Elapsed
			_, _ = fmt.Fprintf(l.stderr, "%s: %v\n", variant, p)
		}
	}
}

func (l *lab) progressDone() {
	if l.isTerminal() {
		_, _ = fmt.Fprint(l.stderr, "\r\x1b[K")
	}
}
