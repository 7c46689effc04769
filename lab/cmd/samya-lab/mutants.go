package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/lab/mutants"
)

// mutantsOptions are the flags of mutants.
type mutantsOptions struct {
	names   []string
	options mutants.Options
	judge   string
	sample  int
	list    bool
	json    bool
}

// mutantsCommand is `samya-lab mutants`.
func (l *lab) mutantsCommand() *cobra.Command {
	var o mutantsOptions
	cmd := &cobra.Command{
		Use:   "mutants [bug...]",
		Short: "Seed known bugs and see that the tests find them",
		Long: `Builds the simulator and the search with known bugs, switches on one after the
other, and tells which invariant catches it, after how many events; or, for bugs in what
the simulator does not run, has the tests named in the file of the bug run, and tells
which test fails. A bug that does not compile with others, or that is not caught among
others, is compiled alone. Bugs in the order of kvpart's requests are judged by its oracle,
which names an invariant. A panic, a hash that differs, a time-out or a failed build does
not count. The unchanged code has to pass the same seeds and tests. It needs the go
command and the source tree, and changes nothing there. Name bugs to look for those
only. With --budget, bugs are judged in a fresh order until the time is up; bugs that
are compiled together follow each other.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return l.mutants(cmd, &o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.options.Root, "root", "", "root of the source tree; empty for that of the working directory")
	f.Uint64Var(&o.options.First, "first", 1, "the first seed")
	f.Uint64Var(&o.options.Seeds, "seeds", 400, "how many seeds to run, of each mode that a bug may take")
	f.StringVar(&o.options.Bound, "bound", "default", "bounds: see explore")
	f.IntVar(&o.options.MaxStates, "max-states", 60_000, "give up after so many states, in a search; 0 for never")
	f.IntVar(&o.options.Jobs, "workers", 2, "how many run at a time: bugs")
	f.DurationVar(&o.options.Budget, "budget", 0, "begin no more after this time, in an order that is drawn; 0 for all bugs")
	f.Uint64Var(&o.options.Order, "order", 0, "draw the order for --budget from this number; 0 for a fresh one, which is printed")
	f.StringVar(&o.judge, "judge", "", "bugs that are found by this only: sim, test or order; empty for all")
	f.IntVar(&o.sample, "sample", 0, "so many only, evenly spread; 0 for all")
	f.DurationVar(&o.options.Timeout, "timeout", 10*time.Minute, "how long to wait at most, for one build or one look")
	f.BoolVar(&o.options.SkipSearch, "no-search", false, "simulate only")
	f.BoolVar(&o.options.SkipSim, "search-only", false, "search only, for the bugs that a search may find")
	f.BoolVar(&o.options.Alone, "alone", false, "compile each bug alone, not with others")
	f.StringVar(&o.options.Record, "resume", "", "a file of verdicts, which grows: bugs with a verdict on the same source are not judged again")
	f.BoolVar(&o.list, "list", false, "list them and do nothing else")
	f.BoolVar(&o.json, "json", false, "print JSON, one line on stdout")
	return cmd
}

// mutants runs the bugs that the arguments name.
func (l *lab) mutants(cmd *cobra.Command, o *mutantsOptions) error {
	bugs, err := mutants.Catalogue()
	if err != nil {
		return fmt.Errorf("read the bugs: %w", err)
	}
	if bugs, err = mutants.Select(bugs, o.names); err != nil {
		return &usageError{err}
	}
	if o.judge != "" && !slices.Contains(mutants.Judges(), o.judge) {
		return &usageError{fmt.Errorf("--judge is %q, must be one of %q", o.judge, mutants.Judges())}
	}
	bugs = mutants.Sample(mutants.JudgedBy(bugs, o.judge), o.sample)
	if o.list {
		for _, b := range bugs {
			if _, err := fmt.Fprintf(l.stdout, "%-34s %-13s %-12s %s\n", b.Name, b.Variant, b.Kind, b.Says); err != nil {
				return fmt.Errorf("print the bugs: %w", err)
			}
		}
		return nil
	}
	if o.options.Seeds == 0 || o.options.Jobs < 1 || o.options.MaxStates < 0 || o.options.Timeout <= 0 || o.sample < 0 || o.options.Budget < 0 {
		return &usageError{errors.New("--seeds, --workers and --timeout must be above zero, --max-states, --sample and --budget not below")}
	}
	if o.options.Budget > 0 && o.options.Order == 0 {
		o.options.Order = rand.Uint64N(1 << 32)
	}
	if o.options.SkipSim {
		bugs = slices.DeleteFunc(bugs, func(b mutants.Bug) bool { return b.Explore == "" })
	}
	if o.options.Root == "" {
		out, err := exec.CommandContext(cmd.Context(), "go", "env", "GOMOD").Output()
		if err != nil {
			return fmt.Errorf("find the source tree: %w", err)
		}
		o.options.Root = filepath.Dir(strings.TrimSpace(string(out)))
		// The laboratory is a module within the source tree.
		if above := filepath.Dir(o.options.Root); filepath.Base(o.options.Root) == "lab" {
			o.options.Root = above
		}
	}
	if o.options.Budget > 0 {
		_, _ = fmt.Fprintf(l.stderr, "for %v, in the order %d\n", o.options.Budget, o.options.Order)
	}
	done, began := 0, time.Now()
	o.options.Progress = func(outcome mutants.Outcome) {
		line := outcome.Line()
		if l.isTerminal() {
			line = "\r\x1b[K" + line
		}
		_, _ = fmt.Fprintf(l.stderr, "%d/%d %v %s\n", done, len(bugs), time.Since(began).Round(time.Second), line)
		done++
	}
	r, err := mutants.Run(cmd.Context(), bugs, o.options)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(l.stderr, "%d bugs in %v\n", r.Summary().Bugs, time.Since(began).Round(time.Second))
	if o.json {
		err = json.NewEncoder(l.stdout).Encode(r.Summary())
	} else {
		err = r.Print(l.stdout)
	}
	if err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	if !r.OK() {
		return errViolated
	}
	return nil
}
