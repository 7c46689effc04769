package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/kvpart/engine"
	"github.com/samya-db/samya/lab/backends"
	"github.com/samya-db/samya/lab/kvlab"
)

// The defaults of --dual. A balance is found in a few seconds, for the policy looks once a
// second.
const (
	dualBackend = "bbolt"
	dualTime    = 4 * time.Second
	dualSettle  = 40 * time.Second
	dualKeys    = 400
	dualValue   = 64 << 10
)

// kvDual measures balances of two loads.
func (l *lab) kvDual(cmd *cobra.Command, o *kvOptions) (err error) {
	began := time.Now()
	given := cmd.Flags().Changed
	d := &kvlab.DualOptions{
		Rounds: o.rounds, Clients: o.load.clients, Keys: dualKeys, Value: dualValue, Time: dualTime, Settle: dualSettle,
		Backend: dualBackend, Seed: o.load.seed,
		Progress: func(s string) { _, _ = fmt.Fprintf(l.stderr, "%6.1fs %s\n", time.Since(began).Seconds(), s) }, // may be lost
	}
	if given("backend") {
		d.Backend = o.backend
	}
	if given("value-size") {
		d.Value = o.valueSize
	}
	if given("records") {
		d.Keys = o.load.records
	}
	if o.duration > 0 {
		d.Time = o.duration
	}
	f, err := engine.Lookup(d.Backend)
	switch {
	case err != nil:
		return &usageError{fmt.Errorf("--backend: %w", err)}
	case !f.Durable:
		return &usageError{fmt.Errorf("--backend: %s keeps nothing on disks, --dual wants bbolt or pebble", d.Backend)}
	case !(o.bandwidth >= 0 && o.bandwidth <= 1e6):
		return &usageError{errors.New("--disk-mib must be within 0 and 1000000")}
	case d.Value < 1 || d.Keys < 2:
		return &usageError{errors.New("--value-size must be at least 1, --records at least 2 with --dual")}
	}
	if d.Engine = f; o.bandwidth > 0 {
		d.Engine = backends.Paced(f, o.bandwidth*(1<<20))
	}
	root := ""
	if len(o.dirs) > 0 {
		root = o.dirs[0]
	}
	if d.Dir, err = os.MkdirTemp(root, "samya-kv-*"); err != nil {
		return fmt.Errorf("make a folder for the data: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.Dir)) }()
	r, err := kvlab.RunDual(cmd.Context(), d)
	if err != nil {
		return err
	}
	return l.tell(o.json, r)
}
