// Package experiment reruns the experiments of the papers that samya stands on
// and reports the paper's numbers beside ours: a CSV file and figures of each, a
// report of all, goals that are met or missed. An experiment is a value of type
// Experiment in a package below this one; samya-lab lists them. This package
// refuses to know what an experiment measures, and to call a goal met that was
// not measured.
package experiment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/lab/plot"
)

// ErrOptions says that a flag of an experiment is out of its range. Nothing was
// measured.
var ErrOptions = errors.New("bad option")

// Experiment is something that can be rerun.
type Experiment struct {
	// Name is its argument to `samya-lab experiment`: small letters, digits and
	// dashes. Its files begin with it.
	Name string
	// Short says in one line what is shown; Long tells how.
	Short, Long string
	// Brief says that a quick run is not expected to measure all goals: what it has not
	// measured is not missed.
	Brief bool
	// New declares the experiment's own flags, and returns what runs it with their
	// values as they are then.
	New func(flags *pflag.FlagSet) Run
}

// Run runs an experiment. It fails with ErrOptions before it measures anything if
// a flag is wrong, and with the cause of ctx if that ends.
type Run func(ctx context.Context, env *Env) (*Result, error)

// Group is experiments that are rerun together under one name, and share flags and
// what they have measured.
type Group struct {
	// Name, Short and Long are as those of an Experiment.
	Name, Short, Long string
	// New declares the flags of all, and returns what runs each with their values as
	// they are then.
	New func(flags *pflag.FlagSet) []Member
}

// Member is an experiment of a group and what runs it.
type Member struct {
	*Experiment
	Run Run
}

// Env is what an experiment runs in.
type Env struct {
	// Quick asks for as few rounds and as little time as show that it works.
	Quick bool
	// Seed decides all that is left to chance.
	Seed uint64
	// Now tells the time.
	Now func() time.Time
	// Progress is told what is being done, as step of steps.
	Progress func(step, steps int, what string)
}

// Result is what an experiment found.
type Result struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Quick says that it was measured too briefly to be held against a paper.
	Quick bool `json:"quick,omitempty"`
	// brief is set if it was not expected to measure all goals either.
	brief bool
	// Cores is how many processors it ran on, Seconds how long it took.
	Cores   int     `json:"cores"`
	Seconds float64 `json:"seconds"`
	// Setup says in a few sentences what was run.
	Setup    string       `json:"setup"`
	Compared []Comparison `json:"compared,omitempty"`
	Goals    []Goal       `json:"goals"`
	// Spreads are tables that the report shows. Their names are their captions.
	Spreads []Table `json:"-"`
	// Tables are written as CSV files, the first as NAME.csv.
	Tables []Table `json:"-"`
	// Figures are drawn as SVG files, the first as NAME.svg.
	Figures []Figure `json:"-"`
	// Notes are what a reader has to know beside: a sentence or a few each.
	Notes []string `json:"notes,omitempty"`
}

// Met tells whether all goals are met. One that was not measured is not, unless the
// run was not expected to measure all.
func (r *Result) Met() bool {
	return !slices.ContainsFunc(r.Goals, func(g Goal) bool { return !g.Met && (g.Measured || !r.brief) })
}

// Comparison is a number of a paper beside ours.
type Comparison struct {
	What string `json:"what"`
	Unit string `json:"unit,omitempty"`
	// Paper is nil where the paper gives no number.
	Paper *float64 `json:"paper,omitempty"`
	Ours  float64  `json:"ours"`
	// Why says in one sentence why they differ, or that they do not.
	Why string `json:"why"`
}

// Goal is something to be shown, and what was.
type Goal struct {
	What string `json:"what"`
	// Bound is the least that Got may be, with AtMost the most, with Below what it
	// must be below.
	Bound  float64 `json:"bound"`
	AtMost bool    `json:"at_most,omitempty"`
	Below  bool    `json:"below,omitempty"`
	Unit   string  `json:"unit,omitempty"`
	// Got is what was measured, if anything was.
	Got      float64 `json:"got"`
	Measured bool    `json:"measured"`
	Met      bool    `json:"met"`
}

// AtLeast judges a goal that got is at least bound.
func AtLeast(what string, got, bound float64, unit string) Goal {
	return Goal{What: what, Bound: bound, Unit: unit, Got: got, Measured: true, Met: got >= bound}
}

// AtMost judges a goal that got is at most bound.
func AtMost(what string, got, bound float64, unit string) Goal {
	return Goal{What: what, Bound: bound, AtMost: true, Unit: unit, Got: got, Measured: true, Met: got <= bound}
}

// Below judges a goal that got is below bound.
func Below(what string, got, bound float64, unit string) Goal {
	return Goal{What: what, Bound: bound, Below: true, Unit: unit, Got: got, Measured: true, Met: got < bound}
}

// Unmeasured makes g a goal that was not measured, so not met.
func Unmeasured(g Goal) Goal {
	g.Got, g.Measured, g.Met = 0, false, false
	return g
}

// Table is rows of a CSV file.
type Table struct {
	// Name is what follows the experiment's name in that of the file; "" for nothing.
	Name  string
	Heads []string
	Rows  [][]string
}

// Figure is a picture of an experiment.
type Figure struct {
	Name    string // as in Table
	Caption string
	*plot.Figure
}

// Do runs one experiment and fills in what is known of each.
func Do(ctx context.Context, e *Experiment, run Run, env *Env) (*Result, error) {
	began := env.Now()
	r, err := run(ctx, env)
	if err != nil {
		return nil, fmt.Errorf("experiment %s: %w", e.Name, err)
	}
	r.Name, r.Title, r.Quick, r.brief = e.Name, e.Short, env.Quick, env.Quick && e.Brief
	r.Cores, r.Seconds = runtime.GOMAXPROCS(0), env.Now().Sub(began).Round(time.Millisecond).Seconds()
	if len(r.Tables) == 0 || len(r.Figures) == 0 {
		return nil, fmt.Errorf("experiment %s: no table or no figure", e.Name)
	}
	return r, nil
}
