// Package demo runs a whole cluster on this machine, five regions with the latencies
// between them, makes load on the cluster and checks the outcome; its numbers do not
// serve for comparisons with other systems.
//
// The check is independent of the cluster: the load generators keep a ledger of the
// answers. The demo fails if the tokens out by the ledger ever exceeded the limit, or if
// ledger and books differ in the end.
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

// Regions are the regions of the demo, as in the evaluation in Samya (Maiyya et al.),
// Table 5. Each region has a site of the same name and an app manager.
func Regions() []string { return []string{"us", "as", "eu", "au", "sa"} }

// Options configure a demo. A field must be set unless its comment gives a default.
type Options struct {
	// Bin is the path of the samya program.
	Bin string
	// Duration is the time for which the demo makes load, above 0.
	Duration time.Duration
	// Day is the length of a compressed day, above 0.
	Day time.Duration
	// Workload is a name of [Workloads]; empty: OneEntity.
	Workload string
	// Entity is the name of the entity to create and load under OneEntity.
	Entity string
	// Limit is the limit of the entity, or of each organisation, at least 1.
	Limit int64
	// Rate is the requests per second of all regions together, above 0.
	Rate float64
	// Seed makes the load repeatable.
	Seed uint64
	// Protocol is the protocol of redistributions between sites; empty: the sites'
	// default.
	Protocol string
	// HA runs each site at two nodes, with the log in an etcd of three processes, and kills
	// the active node of a site in the middle of the load.
	HA bool
	// Dir is the directory for data and logs. It must be empty or not exist. Empty: a
	// temporary directory, removed at the end unless Keep is set, a process died or the
	// verdict is an error.
	Dir string
	// Keep leaves the cluster up after the load, until the context ends.
	Keep bool
	// JSON prints the result as a line of JSON on Stdout, and all else on Stderr.
	JSON bool
	// Stdout and Stderr receive the output.
	Stdout, Stderr io.Writer
	// Terminal returns the size of the terminal, in characters, for a live table. Nil,
	// or ok false: the demo prints plain lines.
	Terminal func() (width, height int, ok bool)
	// Hurry is closed to kill the processes instead of waiting for an orderly stop; nil:
	// never.
	Hurry <-chan struct{}
}

// Check returns an error that names the field if an option is missing or out of range.
func (o *Options) Check() error {
	switch {
	case o.Duration <= 0:
		return fmt.Errorf("duration: %s, must be above 0s", o.Duration)
	case o.Day <= 0:
		return fmt.Errorf("day: %s, must be above 0s", o.Day)
	case !(o.Rate > 0) || math.IsInf(o.Rate, 0):
		return fmt.Errorf("load: %v, must be above 0", o.Rate)
	case o.Limit < 1:
		return fmt.Errorf("limit: %d, at least 1", o.Limit)
	case o.Workload != "" && !slices.Contains(Workloads(), o.Workload):
		return fmt.Errorf("workload: %q, must be one of %s", o.Workload, strings.Join(Workloads(), ", "))
	}
	return errors.Join(name.Limit("limit", o.Limit), name.Entity("entity", o.Entity))
}

// progress receives all output but the result.
func (o *Options) progress() io.Writer {
	if o.JSON {
		return o.Stderr
	}
	return o.Stdout
}
