package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/samya-db/samya/lab/replay"
	"github.com/samya-db/samya/lab/replay/sites"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/input"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

// replayOptions are the flags of replay.
type replayOptions struct {
	workloads, settings []string
	first, seeds        uint64
	minutes             int
	limit               int64
	workers             int
	untrained           bool
	goals               string
	json                bool
}

// replayCommand is `samya-lab replay`.
func (l *lab) replayCommand() *cobra.Command {
	var o replayOptions
	var about strings.Builder
	for _, s := range replay.Settings() {
		_, _ = fmt.Fprintf(&about, "  %-18s %s\n", s.Name, s.About) // a builder does not fail
	}
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Play an hour of demand from five regions, and measure what clients feel",
		Long: `Plays demand to the real cores of five sites in virtual time, without faults,
under one setting after the other. Prints medians over the seeds, and below those
of each further setting their ratios to the first.

  refused        acquires refused; beyond oracle: less those that one global
                 counter without latency refuses too
  waited %       acquires that waited for tokens from other sites
  p50 … max      latency of acquires in ms, from when they were due
  plenty …       of the acquires alone that came while a twentieth of the limit
                 was free: latency, and how many were refused all the same
  begun, failed  redistributions; gave up: times a site found that all was out
  messages       between sites, for redistributions
  moved          tokens that sites got from others

A run fails if more than the limit is out, a request has no answer, or the books
do not balance in the end. Settings:
` + about.String(),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.replay(cmd.Context(), &o) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.workloads, "workload", replay.Workloads(), "workload: "+strings.Join(replay.Workloads(), ", "))
	f.Uint64Var(&o.seeds, "seeds", 5, "how many seeds to run")
	f.Uint64Var(&o.first, "first", 1, "the first seed")
	f.StringSliceVar(&o.settings, "settings", []string{"paper", "reactive", "instance", "transfer", "refuse"}, "settings; the first is what the others are compared to")
	f.IntVar(&o.minutes, "minutes", 60, "how many minutes to play: the first of the hour")
	f.Int64Var(&o.limit, "limit", int64(replay.Limit), "limit of the entity")
	f.IntVar(&o.workers, "workers", 2, "how many run at a time: seeds")
	f.BoolVar(&o.untrained, "untrained", false, "forecasts have not seen the days before the hour")
	f.StringVar(&o.goals, "goals-of", "", "setting to hold against the goals, which fail the command if they are not met; plays what they need")
	f.BoolVar(&o.json, "json", false, "print JSON, one line on stdout")
	return cmd
}

// replayed is the output of replay.
type replayed struct {
	Minutes   int              `json:"minutes"`
	Limit     int64            `json:"limit"`
	Seeds     []uint64         `json:"seeds"`
	Summaries []replay.Summary `json:"summaries"`
	Results   []*replay.Result `json:"results"`
	Goals     []replay.Goal    `json:"goals,omitempty"`
}

// replay plays the workloads under all settings.
func (l *lab) replay(ctx context.Context, o *replayOptions) error {
	const binsAMinute = int(time.Minute / replay.Bin)
	most := replay.MaxBins / binsAMinute
	if o.seeds < 1 || o.seeds > maxSeeds {
		return &usageError{fmt.Errorf("--seeds must be within 1 and %d", maxSeeds)}
	}
	seeds := make([]uint64, o.seeds)
	for i := range seeds {
		seeds[i] = o.first + uint64(i)
	}
	for _, w := range o.workloads {
		if !slices.Contains(replay.Workloads(), w) {
			return &usageError{fmt.Errorf("--workload: no %q, known are %s", w, strings.Join(replay.Workloads(), ", "))}
		}
	}
	if o.goals != "" {
		o.workloads, o.minutes = replay.Workloads(), replay.MaxBins/binsAMinute
		o.settings = append(replay.GoalSettings(), o.goals)
	}
	var settings []replay.Setting
	for _, name := range o.settings {
		s, err := replay.SettingByName(name)
		if err != nil {
			return &usageError{fmt.Errorf("--settings: %w", err)}
		}
		settings = append(settings, s)
	}
	switch {
	case len(o.workloads) == 0 || len(settings) == 0:
		return &usageError{errors.New("--workload and --settings must not be empty")}
	case o.minutes < 1 || o.minutes > most:
		return &usageError{fmt.Errorf("--minutes must be within 1 and %d", most)}
	case o.limit < 1 || o.limit > int64(input.MaxTokens):
		return &usageError{fmt.Errorf("--limit must be within 1 and %d", input.MaxTokens)}
	case o.workers < 1 || o.workers > 256:
		return &usageError{errors.New("--workers must be within 1 and 256")}
	}
	told := replayed{Minutes: o.minutes, Limit: o.limit, Seeds: seeds}
	plays := o.plays(settings)
	for i := range plays {
		plays[i].first = len(told.Results)
		told.Results = append(told.Results, make([]*replay.Result, len(plays[i].settings)*len(seeds))...)
	}
	// Little is live at any time: rare collections cost memory only.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var mu sync.Mutex
	done := 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.workers)
	for _, p := range plays {
		for i, seed := range seeds {
			group.Go(func() error {
				// All settings play the same demand.
				demand, err := replay.DrawPlaces(p.Workload, seed, p.Bins, p.Places)
				if err != nil {
					return err
				}
				if !o.untrained {
					if err := demand.Recall(); err != nil {
						return err
					}
				}
				var training sites.Training
				for s, setting := range p.settings {
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					r, err := replay.Run(replay.Options{Demand: demand, Limit: p.Limit}, sites.New(setting.Configure).Share(&training))
					if err != nil {
						return fmt.Errorf("setting %s: %w", setting.Name, err)
					}
					r.Workload, r.Setting = p.Name, setting.Name
					mu.Lock()
					told.Results[p.first+s*len(seeds)+i] = r
					if done++; l.isTerminal() {
						_, _ = fmt.Fprintf(l.stderr, "\r\x1b[K%d of %d runs, last %s, seed %d, %s",
							done, len(told.Results), p.Name, seed, setting.Name)
					}
					mu.Unlock()
				}
				return nil
			})
		}
	}
	err := group.Wait()
	l.progressDone()
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	told.Summaries = replay.Summarize(told.Results)
	if o.goals != "" {
		if told.Goals, err = replay.Goals(told.Summaries, o.goals); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	if o.json {
		err = json.NewEncoder(l.stdout).Encode(told)
	} else {
		err = l.tellReplays(&told)
	}
	if err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	for _, g := range told.Goals {
		if !g.Met {
			return errGoals
		}
	}
	return nil
}

// title describes the plays of a workload.
func (told *replayed) title(workload string) string {
	for _, c := range replay.Crowds() {
		if c.Name == workload {
			return fmt.Sprintf("%s, %s of %d sites, %d minutes, limit %d",
				c.Name, c.Workload, c.Places, time.Duration(c.Bins)*replay.Bin/time.Minute, c.Limit)
		}
	}
	return fmt.Sprintf("%s, %d minutes, limit %d", workload, told.Minutes, told.Limit)
}

// played is a demand and the settings that play it.
type played struct {
	replay.Crowd
	settings []replay.Setting
	// first is the index of the first result.
	first int
}

// plays returns all plays: each workload in five regions, and for goals the crowds
// under the setting on trial.
func (o *replayOptions) plays(settings []replay.Setting) []played {
	var plays []played
	for _, w := range o.workloads {
		plays = append(plays, played{
			Crowd:    replay.Crowd{Name: w, Workload: w, Places: replay.Regions, Bins: o.minutes * int(time.Minute/replay.Bin), Limit: core.Tokens(o.limit)},
			settings: settings,
		})
	}
	if o.goals != "" {
		for _, c := range replay.Crowds() {
			plays = append(plays, played{Crowd: c, settings: settings[len(settings)-1:]})
		}
	}
	return plays
}

var errGoals = errors.New("not all goals are met")

// maxSeeds bounds the seeds of one command.
const maxSeeds = 10_000

// tellReplays prints a table for each workload.
func (l *lab) tellReplays(told *replayed) error {
	w := tabwriter.NewWriter(l.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	measures := replay.Measures()
	var line strings.Builder
	workload := ""
	for i := range told.Summaries {
		s := &told.Summaries[i]
		line.Reset()
		isFirst := s.Workload != workload
		if isFirst {
			if workload != "" {
				line.WriteString("\n")
			}
			workload = s.Workload
			_, _ = fmt.Fprintf(&line, "%s, medians of %d seeds\n\t", told.title(workload), s.Seeds)
			for _, m := range measures {
				line.WriteString(m.Head + "\t")
			}
			line.WriteString("\n")
		}
		line.WriteString(s.Setting + "\t")
		for _, m := range measures {
			line.WriteString(strconv.FormatFloat(s.Median[m.Key], 'f', m.Digits, 64) + "\t")
		}
		line.WriteString("\n")
		if !isFirst {
			line.WriteString("×\t")
			for _, m := range measures {
				ratio, ok := s.Ratio[m.Key]
				told := "-"
				if ok {
					told = strconv.FormatFloat(ratio, 'g', 3, 64)
				}
				line.WriteString(told + "\t")
			}
			line.WriteString("\n")
		}
		if _, err := w.Write([]byte(line.String())); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil || len(told.Goals) == 0 {
		return err
	}
	return l.tellGoals(told.Goals)
}

// tellGoals prints the goals and their results.
func (l *lab) tellGoals(goals []replay.Goal) error {
	w := tabwriter.NewWriter(l.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprint(w, "\nGOAL\t\tGOT\tAT MOST\t\n")
	for _, g := range goals {
		met := "met"
		if !g.Met {
			met = "MISSED"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%.3f\t%g\t%s\n", g.Workload, g.What, g.Got, g.Most, met)
	}
	return w.Flush()
}
