package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/lab/transports"
)

// transportsCommand is `samya-lab transports`.
func (l *lab) transportsCommand() *cobra.Command {
	o := transports.Default()
	var asJSON bool
	var markdown string
	cmd := &cobra.Command{
		Use:   "transports",
		Short: "Measure ways to carry the stream of operations: gRPC, drpc and samya's frames",
		Long: `Starts a server for each way to carry the stream of operations, and has 1, 64 and 1,024
callers make acquires over a stream, as in the Go client. Each caller asks again once
answered. The servers answer each message of calls at once with one message: neither
a site nor a disk takes part.

The ways are gRPC as it was before frames, gRPC with larger buffers and fixed windows,
storj.io/drpc, and frames. gRPC and frames are also measured over TLS 1.3.

Rounds alternate between all ways. Prints medians over the rounds. Processor time is
µs an operation, of the server and of this program, which makes the load.

All that is started is stopped, also on Ctrl-C.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.Rounds < 1 || o.Rounds > 1000:
				return &usageError{errors.New("--rounds must be within 1 and 1000")}
			case o.Time < 100*time.Millisecond || o.Time > 10*time.Minute || o.Warmup < 0 || o.Warmup > 10*time.Minute:
				return &usageError{errors.New("--duration must be within 100ms and 10m, --warmup within 0s and 10m")}
			}
			// An unreadable page fails before the minutes of measuring.
			before, err := os.ReadFile(markdown)
			if markdown != "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("--markdown: %w", err)
			}
			if o.Self, err = os.Executable(); err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			began := time.Now()
			o.Progress = func(what string) {
				_, _ = fmt.Fprintf(l.stderr, "%6.1fs %s\n", time.Since(began).Seconds(), what) // progress may be lost
			}
			r, err := transports.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if err := write(markdown, func(w io.Writer) error { return tables(w, before, cmd.Name(), r.WriteMarkdown) }); err != nil {
				return err
			}
			if asJSON {
				err = json.NewEncoder(l.stdout).Encode(r)
			} else {
				err = r.WriteText(l.stdout)
			}
			if err != nil {
				return fmt.Errorf("print the results: %w", err)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "how often to measure each")
	f.DurationVar(&o.Time, "duration", o.Time, "how long to measure each")
	f.DurationVar(&o.Warmup, "warmup", o.Warmup, "how long to make load before")
	f.BoolVar(&asJSON, "json", false, "print JSON, one line on stdout")
	f.StringVar(&markdown, "markdown", "", "also write the tables to this file, or to their place in it if it is a page such as docs/performance.md")
	return cmd
}

// transportsServeCommand serves a way of transports.
func (l *lab) transportsServeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    transports.ServeCommand + " ADDR WAY [CERTIFICATE KEY]",
		Short:  "Answer operations at once: a server of transports",
		Hidden: true,
		Args:   cobra.RangeArgs(2, 4),
		RunE:   func(cmd *cobra.Command, args []string) error { return transports.Serve(cmd.Context(), args) },
	}
}
