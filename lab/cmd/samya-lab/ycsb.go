package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/lab/kvlab"
	"github.com/samya-db/samya/lab/ycsb"
)

// ycsbOptions are the flags of ycsb.
type ycsbOptions struct {
	workload, distribution, lengths string
	records, clients                int
	operations                      int64
	seed                            uint64
	out                             string
	json                            bool
}

// ycsbCommand is `samya-lab ycsb`.
func (l *lab) ycsbCommand() *cobra.Command {
	var o ycsbOptions
	cmd := &cobra.Command{
		Use:   "ycsb",
		Short: "Write a workload of YCSB, A to F, as files of Repart-KV",
		Long: `Writes a folder that samya-lab kv --workload-dir runs: ` + kvlab.LoadFile + `, which writes all
records, and a file of operations for each client, a line each:

  0,key        read
  1,key        write
  2,key,limit  scan of so many keys from there

The workloads are YCSB's: A half updates, B 5 % updates, C reads alone, D 5 %
inserts and reads of the latest, E 5 % inserts and scans, F half reads and half
read-modify-writes, each as a read and a write. The same flags give the same files.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.ycsb(cmd.Context(), &o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.workload, "workload", "A", "workload: A to F")
	o.mixFlags(cmd)
	f.Int64Var(&o.operations, "operations", 1_000_000, "operations of all clients together")
	f.IntVar(&o.clients, "clients", 8, "clients, each with a file of its own")
	f.StringVar(&o.out, "out", "", "folder to write to; it must be empty, or not be there")
	f.BoolVar(&o.json, "json", false, "print JSON, one line on stdout")
	return cmd
}

// mixFlags adds the flags that ycsb shares with kv.
func (o *ycsbOptions) mixFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&o.records, "records", 100_000, "records that are there before")
	f.StringVar(&o.distribution, "distribution", "", "which keys are wanted: zipfian, latest or uniform (default: the workload's)")
	f.StringVar(&o.lengths, "scan-length", "1-100", "shortest and longest scan")
	f.Uint64Var(&o.seed, "seed", 1, "what is left to chance")
}

// make makes the workload that the flags name.
func (o *ycsbOptions) make() (*ycsb.Workload, error) {
	mix, err := ycsb.MixOf(o.workload)
	if err != nil {
		return nil, err
	}
	if o.distribution != "" {
		mix.Distribution = ycsb.Distribution(o.distribution)
	}
	y := ycsb.Options{Mix: mix, Records: o.records, Clients: o.clients, Seed: o.seed}
	if y.ScanMin, y.ScanMax, err = parseRange(o.lengths); err != nil {
		return nil, fmt.Errorf("--scan-length: %w", err)
	}
	return ycsb.New(y)
}

// parseRange reads "2-8", or "5" for 5 to 5.
func parseRange(s string) (low, high int, err error) {
	first, last, found := strings.Cut(s, "-")
	if !found {
		last = first
	}
	low, err = strconv.Atoi(first)
	if err == nil {
		high, err = strconv.Atoi(last)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%q is no range such as 2-8", s)
	}
	return low, high, nil
}

// written is the output of ycsb.
type written struct {
	Dir        string           `json:"dir"`
	Files      int              `json:"files"`
	Records    int              `json:"records"`
	Operations int64            `json:"operations"`
	Lines      map[string]int64 `json:"lines"`
}

// ycsb writes the workload.
func (l *lab) ycsb(ctx context.Context, o *ycsbOptions) error {
	switch {
	case o.out == "":
		return &usageError{errors.New("--out: no folder")}
	case o.operations < 1 || o.operations > 1e11:
		return &usageError{errors.New("--operations must be within 1 and 100000000000")}
	}
	w, err := o.make()
	if err != nil {
		return &usageError{err}
	}
	if err := os.MkdirAll(o.out, 0o777); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	switch there, err := os.ReadDir(o.out); {
	case err != nil:
		return fmt.Errorf("--out: %w", err)
	case len(there) > 0:
		return &usageError{fmt.Errorf("--out: %s is not empty", o.out)}
	}
	told := written{Dir: o.out, Files: o.clients + 1, Records: o.records, Operations: o.operations, Lines: map[string]int64{}}
	loaded := 0
	err = writeOps(ctx, filepath.Join(o.out, kvlab.LoadFile), int64(o.records), nil, func() ycsb.Op {
		loaded++
		return ycsb.Op{Kind: ycsb.Write, Key: w.Names()[loaded-1]}
	})
	if err != nil {
		return err
	}
	for c := range o.clients {
		g := w.Client(c)
		share := (o.operations + int64(o.clients-1-c)) / int64(o.clients)
		if err := writeOps(ctx, filepath.Join(o.out, fmt.Sprintf("client-%04d.csv", c)), share, told.Lines, g.Next); err != nil {
			return err
		}
	}
	if o.json {
		err = json.NewEncoder(l.stdout).Encode(told)
	} else {
		_, err = fmt.Fprintf(l.stdout, "%s: %d records, %d operations of %d clients: %d reads, %d writes, %d scans\n", o.out, o.records,
			o.operations, o.clients, told.Lines["read"], told.Lines["write"], told.Lines["scan"])
	}
	if err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	return nil
}

// writeOps writes n operations to a file and counts its lines by kind of operation.
func writeOps(ctx context.Context, name string, n int64, lines map[string]int64, next func() ycsb.Op) error {
	return write(name, func(to io.Writer) error {
		w := bufio.NewWriterSize(to, 1<<18)
		var line []byte
		for i := range n {
			if i%4096 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			op := next()
			var err error
			if line, err = ycsb.Append(line[:0], op); err != nil {
				return fmt.Errorf("write %s: %w", name, err)
			}
			if _, err := w.Write(line); err != nil {
				return fmt.Errorf("write %s: %w", name, err)
			}
			switch {
			case lines == nil:
			case op.Kind == ycsb.Modify:
				lines[ycsb.Read.String()]++
				lines[ycsb.Write.String()]++
			default:
				lines[op.Kind.String()]++
			}
		}
		if err := w.Flush(); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		return nil
	})
}
