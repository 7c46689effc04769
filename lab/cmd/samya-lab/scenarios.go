package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/samya-db/samya/lab/sim"
)

// scenarioOptions are the flags of scenarios.
type scenarioOptions struct {
	mode    string
	first   uint64
	seeds   int
	workers int
	list    bool
	json    bool
}

// scenariosCommand is `samya-lab scenarios`.
func (l *lab) scenariosCommand() *cobra.Command {
	var o scenarioOptions
	cmd := &cobra.Command{
		Use:   "scenarios [name...]",
		Short: "Play named failures and tell what was expected and what happened",
		Long: `Plays failures by a script, on the cores, disks and links of sim and under all its
invariants: partitions, crashes and cuts at a moment of an instance, a site that
is down for long. Each is played in every mode that it speaks of, over some
seeds, which choose the delays and the sites that fail. It ends with a table of
what was expected, what happened and what was measured. Name scenarios to play
those only.`,
		RunE: func(cmd *cobra.Command, args []string) error { return l.scenarios(cmd.Context(), &o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.mode, "protocol", "", "how redistributions are agreed: majority, star or auto; empty: all that a scenario has")
	f.Uint64Var(&o.first, "first", 1, "the first seed")
	f.IntVar(&o.seeds, "seeds", 0, "how many seeds to run, of each scenario and mode; 0 for as many as it has by itself")
	f.IntVar(&o.workers, "workers", 2, "how many run at a time: scenarios")
	f.BoolVar(&o.list, "list", false, "list them and do nothing else")
	f.BoolVar(&o.json, "json", false, "print JSON, one line on stdout")
	return cmd
}

// scenariosResult is the line that --json prints.
type scenariosResult struct {
	Scenarios []sim.ScenarioResult `json:"scenarios"`
	Failed    int                  `json:"failed"`
}

// scenarios plays the scenarios that the arguments name.
func (l *lab) scenarios(ctx context.Context, o *scenarioOptions, names []string) error {
	list, err := chosen(names)
	switch {
	case err != nil:
		return &usageError{err}
	case o.seeds < 0 || o.workers < 1 || o.workers > 256:
		return &usageError{errors.New("--seeds must be at least 0, --workers within 1 and 256")}
	case o.list:
		for _, sc := range list {
			if _, err := fmt.Fprintf(l.stdout, "%-31s%s (%s)\n", sc.Name, sc.About, strings.Join(sc.Modes(), ", ")); err != nil {
				return fmt.Errorf("print the list: %w", err)
			}
		}
		return nil
	}
	r := scenariosResult{Scenarios: []sim.ScenarioResult{}}
	var group errgroup.Group
	group.SetLimit(o.workers)
	played := make([]sim.ScenarioResult, 0, 3*len(list))
	for _, sc := range list {
		for _, mode := range sc.Modes() {
			if o.mode != "" && o.mode != mode {
				continue
			}
			played = append(played, sim.ScenarioResult{})
			to := &played[len(played)-1]
			group.Go(func() error {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				*to = sc.Play(mode, o.first, o.seeds)
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("scenarios: %w", err)
	}
	if len(played) == 0 {
		return &usageError{fmt.Errorf("--protocol: no scenario named says anything about %q", o.mode)}
	}
	for i := range played {
		r.Scenarios = append(r.Scenarios, played[i])
		if !played[i].OK {
			r.Failed++
		}
	}
	if o.json {
		err = json.NewEncoder(l.stdout).Encode(&r)
	} else {
		err = r.tell(l.stdout)
	}
	switch {
	case err != nil:
		return fmt.Errorf("print the result: %w", err)
	case r.Failed > 0:
		return errViolated
	}
	return nil
}

// chosen returns the scenarios of the names, or all scenarios for no names.
func chosen(names []string) ([]sim.Scenario, error) {
	all := sim.Scenarios()
	if len(names) == 0 {
		return all, nil
	}
	var list []sim.Scenario
	for _, name := range names {
		i := slices.IndexFunc(all, func(sc sim.Scenario) bool { return sc.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown scenario %q; --list tells them", name)
		}
		list = append(list, all[i])
	}
	return list, nil
}

// The widths of the columns of text.
const (
	expectedWidth = 44
	happenedWidth = 66
)

// tell prints the result as a table.
func (r *scenariosResult) tell(w io.Writer) error {
	var b strings.Builder
	row := func(name, mode, ok, expected, happened string) {
		line := fmt.Sprintf("%-30s %-9s %-5s %-*s %s", name, mode, ok, expectedWidth, expected, happened)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	row("SCENARIO", "MODE", "OK", "EXPECTED", "HAPPENED")
	for i := range r.Scenarios {
		sc := &r.Scenarios[i]
		expected := wrap(sc.Expected, expectedWidth)
		happened := wrap(fmt.Sprintf("%d seeds: %s", sc.Seeds, sc.Happened), happenedWidth)
		ok := "ok"
		if !sc.OK {
			ok = "FAILS"
		}
		row(sc.Name, sc.Mode, ok, expected[0], happened[0])
		for k := 1; k < max(len(expected), len(happened)); k++ {
			row("", "", "", at(expected, k), at(happened, k))
		}
		for _, problem := range sc.Problems {
			fmt.Fprintf(&b, "  %s\n", problem)
		}
	}
	fmt.Fprintf(&b, "\n%d of %d as expected\n", len(r.Scenarios)-r.Failed, len(r.Scenarios))
	_, err := io.WriteString(w, b.String())
	return err
}

func at(lines []string, k int) string {
	if k < len(lines) {
		return lines[k]
	}
	return ""
}

// wrap cuts a text into lines between words; it returns at least a line.
func wrap(text string, width int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
