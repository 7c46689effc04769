// Package demo runs a whole cluster on this machine, five regions with the
// latencies between them, makes load on it and checks what came of it; it
// measures nothing that a comparison with other systems could rest on.
//
// The check is independent of the cluster: the load generators keep a ledger
// of what they were told, and the demo fails if the tokens out ever exceeded
// the limit by that ledger, or if ledger and books differ in the end.
package demo

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/samya-db/samya/internal/name"
)

// Regions are the regions of the demo, those of the evaluation in Samya (Maiyya
// et al.), Table 5. Each has one site, of the same name, and one app manager.
func Regions() []string { return []string{"us", "as", "eu", "au", "sa"} }

// Options say what the demo does. All fields without a remark must be set.
type Options struct {
	// Bin is the samya program, started once for each process.
	Bin string
	// Duration is how long load is made.
	Duration time.Duration
	// Day is the length of a compressed day.
	Day time.Duration
	// Workload is one of [Workloads]; empty: OneEntity.
	Workload string
	// Entity is the entity that is created and loaded under OneEntity.
	Entity string
	// Limit is the entity's limit, or that of each organisation, at least 1.
	Limit int64
	// Rate is the requests per second of all regions together.
	Rate float64
	// Seed makes the load repeatable.
	Seed uint64
	// Protocol is how the sites agree on redistributions; empty: their default.
	Protocol string
	// Data is the directory for data and logs, which must be empty or not
	// exist; empty: a temporary one, removed at the end unless Keep is set or
	// something went wrong.
	Data string
	// Keep leaves the cluster up after the load, until the context ends.
	Keep bool
	// JSON prints the result as one line of JSON on Stdout, and all else on
	// Stderr.
	JSON bool
	// Stdout and Stderr are where to print.
	Stdout, Stderr io.Writer
	// Terminal returns the size of the terminal on which a live table may be
	// drawn, in characters; nil, or ok false: plain lines are printed.
	Terminal func() (width, height int, ok bool)
	// Hurry is closed when even an orderly stop would take too long; nil: never.
	Hurry <-chan struct{}
}

// Check returns what is wrong with the options, naming the field.
func (o *Options) Check() error {
	switch {
	case o.Duration <= 0:
		return fmt.Errorf("duration: %s, must be above 0s", o.Duration)
	case o.Day <= 0:
		return fmt.Errorf("day: %s, must be above 0s", o.Day)
	case !(o.Rate > 0) || math.IsInf(o.Rate, 0):
		return fmt.Errorf("rate: %v, must be above 0", o.Rate)
	case o.Limit < 1:
		return fmt.Errorf("limit: %d, at least 1", o.Limit)
	case o.Workload != "" && !slices.Contains(Workloads(), o.Workload):
		return fmt.Errorf("workload: %q, must be one of %s", o.Workload, strings.Join(Workloads(), ", "))
	}
	return errors.Join(name.Limit("limit", o.Limit), name.Entity("entity", o.Entity))
}

// progress is where everything but the result goes.
func (o *Options) progress() io.Writer {
	if o.JSON {
		return o.Stderr
	}
	return o.Stdout
}
