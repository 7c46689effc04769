// Package experiment reruns the experiments of the papers behind samya and reports
// the paper's numbers beside ours: CSV files and figures of each, a report of all,
// and goals met or missed. An experiment is a value of type Experiment in a package
// below; samya-lab lists them. This package does not know the measurements of an
// experiment, and never calls an unmeasured goal met.
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

// ErrOptions says that a flag of an experiment is out of range. Nothing was
// measured.
var ErrOptions = errors.New("bad option")

// Experiment is an experiment that can be rerun.
type Experiment struct {
	// Name is its argument to `samya-lab experiment`: small letters, digits and
	// dashes. The names of its files begin with it.
	Name string
	// Short describes the experiment in a line; Long describes the method.
	Short, Long string
	// Brief says that a quick run need not measure all goals: it misses no goal that
	// it has not measured.
	Brief bool
	// New declares the experiment's flags, and returns a Run that reads their values
	// when called.
	New func(flags *pflag.FlagSet) Run
}

// Run runs an experiment. If a flag is wrong it fails with ErrOptions before
// measuring. It fails with the cause of ctx if ctx ends.
type Run func(ctx context.Context, env *Env) (*Result, error)

// Group is experiments that run together under a single name. They share flags and
// measurements.
type Group struct {
	// Name, Short and Long are as in Experiment.
	Name, Short, Long string
	// New declares the flags of the group, and returns the members. Their Runs read
	// the values of the flags when called.
	New func(flags *pflag.FlagSet) []Member
}

// Member is an experiment of a group and its Run.
type Member struct {
	*Experiment
	Run Run
}

// Env is the environment of an experiment.
type Env struct {
	// Quick asks for the fewest rounds and the least time that show that the
	// experiment works.
	Quick bool
	// Seed decides all random choices.
	Seed uint64
	// Now returns the time.
	Now func() time.Time
	// Progress is called with the current step, up to steps, and its name.
	Progress func(step, steps int, what string)
}

// Result is the result of an experiment.
type Result struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Quick says that the measurement was too brief to compare with a paper.
	Quick bool `json:"quick,omitempty"`
	// brief says that the run need not measure all goals.
	brief bool
	// Cores is the number of processors, Seconds the time taken.
	Cores   int     `json:"cores"`
	Seconds float64 `json:"seconds"`
	// Setup describes the run in a few sentences.
	Setup    string       `json:"setup"`
	Compared []Comparison `json:"compared,omitempty"`
	Goals    []Goal       `json:"goals"`
	// Spreads are tables in the report; their names are their captions.
	Spreads []Table `json:"-"`
	// Tables become CSV files, the first NAME.csv.
	Tables []Table `json:"-"`
	// Figures become SVG files, the first NAME.svg.
	Figures []Figure `json:"-"`
	// Notes tell the reader more, in a sentence or a few each.
	Notes []string `json:"notes,omitempty"`
}

// Met reports whether all goals are met. An unmeasured goal is not met, unless the
// run need not measure all goals.
func (r *Result) Met() bool {
	return !slices.ContainsFunc(r.Goals, func(g Goal) bool { return !g.Met && (g.Measured || !r.brief) })
}

// Comparison is a number of a paper beside ours.
type Comparison struct {
	What string `json:"what"`
	Unit string `json:"unit,omitempty"`
	// Paper is nil if the paper gives no number.
	Paper *float64 `json:"paper,omitempty"`
	Ours  float64  `json:"ours"`
	// Why explains the difference in a sentence, or says that there is none.
	Why string `json:"why"`
}

// Goal is a figure to reach, and the figure measured.
type Goal struct {
	What string `json:"what"`
	// Bound is the least value of Got. With AtMost it is the most, with Below the
	// value to stay below.
	Bound  float64 `json:"bound"`
	AtMost bool    `json:"at_most,omitempty"`
	Below  bool    `json:"below,omitempty"`
	Unit   string  `json:"unit,omitempty"`
	// Got is the measured value if Measured is set.
	Got      float64 `json:"got"`
	Measured bool    `json:"measured"`
	Met      bool    `json:"met"`
}

// AtLeast judges the goal that got is at least bound.
func AtLeast(what string, got, bound float64, unit string) Goal {
	return Goal{What: what, Bound: bound, Unit: unit, Got: got, Measured: true, Met: got >= bound}
}

// AtMost judges the goal that got is at most bound.
func AtMost(what string, got, bound float64, unit string) Goal {
	return Goal{What: what, Bound: bound, AtMost: true, Unit: unit, Got: got, Measured: true, Met: got <= bound}
}

// Below judges the goal that got is below bound.
func Below(what string, got, bound float64, unit string) Goal {
	return Goal{What: what, Bound: bound, Below: true, Unit: unit, Got: got, Measured: true, Met: got < bound}
}

// Unmeasured returns g as an unmeasured goal, which is not met.
func Unmeasured(g Goal) Goal {
	g.Got, g.Measured, g.Met = 0, false, false
	return g
}

// Table is the rows of a CSV file.
type Table struct {
	// Name follows the experiment's name in the name of the file; it may be empty.
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

// Do runs an experiment and fills in the fields common to all results.
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
