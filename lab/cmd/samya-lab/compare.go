package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/lab/compare"
)

// compareOptions are the flags of compare.
type compareOptions struct {
	peers        []string
	rounds       int
	time, warmup time.Duration
	quick        bool
	dir, bin     string
	only         string
	postgresURL  string
	goals, json  bool
	markdown     string
	chart        string
	soak         time.Duration
}

// peers are the systems that compare measures beside samya, replicated those that it can
// measure too: all keep an operation at two machines or more.
var (
	peers      = []string{"redis", "etcd", "postgres"}
	replicated = []string{"nodes", "etcd-put", "redis-wait"}
)

// compareCommand is `samya-lab compare`.
func (l *lab) compareCommand() *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Measure samya beside redis, etcd and PostgreSQL on this machine",
		Long: `Starts samya and other stores on this machine, each by itself, and measures how
many acquires a second they answer, each under an id that the store remembers.
Every store must keep a limit, answer a repeat as the first time, and have granted
what it told, or the command fails. One redis remembers no ids: what that saves.

In an open loop calls are due at a fixed rate, and latencies count from when a call
was due. Else each caller asks again after its answer.

Rounds alternate between all of them and the controls: a file that is synced, and
servers that answer at once. Prints medians over the rounds. Processor time is µs
an operation, of the servers and of this program, which makes the load.

All that is started is stopped, and all files are removed, also on Ctrl-C.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.quick {
				for flag, quick := range map[string]string{"rounds": "3", "duration": "1s", "warmup": "300ms"} {
					if f := cmd.Flags().Lookup(flag); !f.Changed {
						if err := f.Value.Set(quick); err != nil {
							return fmt.Errorf("--%s: %w", flag, err)
						}
					}
				}
			}
			return l.compare(cmd, &o)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.peers, "peers", peers, "what to compare with: "+strings.Join(peers, ", ")+`; "" for samya and the controls alone. Besides, replicated: `+strings.Join(replicated, ", "))
	f.IntVar(&o.rounds, "rounds", 5, "how often to measure each")
	f.DurationVar(&o.time, "duration", 5*time.Second, "how long to measure each")
	f.DurationVar(&o.warmup, "warmup", time.Second, "how long to make load before")
	f.BoolVar(&o.quick, "quick", false, "measure briefly: 3 times 1s each, which tells little on a busy machine")
	f.StringVar(&o.dir, "dir", ".", "where to keep the data meanwhile: a directory on the disk under test")
	f.StringVar(&o.bin, "samya", "", "the samya program (default: beside this one)")
	f.StringVar(&o.postgresURL, "postgres-url", "", "measure this server instead of a PostgreSQL started here: postgres://user@host:port/database")
	f.StringVar(&o.only, "only", "", "measure what matches this regular expression alone, of names such as samya/gRPC unary, 64 callers/hot")
	f.BoolVar(&o.goals, "goals", false, "fail if a goal is missed, or not measured")
	f.BoolVar(&o.json, "json", false, "print JSON, one line on stdout")
	f.StringVar(&o.markdown, "markdown", "", "also write the tables to this file, or to their place in it if it is a page such as docs/performance.md")
	f.StringVar(&o.chart, "svg", "", "draw to this SVG file: the rates")
	f.DurationVar(&o.soak, "soak", 0, "instead, make load on samya's stream for so long, and fail if the site's memory grows")
	return cmd
}

// echoCommand serves the controls of compare.
func (l *lab) echoCommand() *cobra.Command {
	return &cobra.Command{
		Use:    compare.EchoCommand + " GRPC-ADDR HTTP-ADDR",
		Short:  "Answer acquires at once: the control of compare",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return compare.ServeEcho(cmd.Context(), args[0], args[1])
		},
	}
}

// loadHeap is how far the heap of this program may grow between two collections, in
// per cent. The program makes the load: its own garbage must not count against any
// system.
const loadHeap = 800

// compare measures the systems that the flags name.
func (l *lab) compare(cmd *cobra.Command, o *compareOptions) error {
	began := time.Now()
	progress := func(s string) {
		_, _ = fmt.Fprintf(l.stderr, "%6.1fs %s\n", time.Since(began).Seconds(), s) // progress may be lost
	}
	if o.soak > 0 {
		return l.soak(cmd.Context(), o, progress)
	}
	c, err := o.read()
	if err != nil {
		return &usageError{err}
	}
	// An unreadable page fails before the minutes of measuring.
	before, err := os.ReadFile(o.markdown)
	if o.markdown != "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--markdown: %w", err)
	}
	c.Progress = progress
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(loadHeap)
	}
	report, err := compare.Run(cmd.Context(), c)
	if err != nil {
		return err
	}
	report.Judge()
	if err := write(o.markdown, func(w io.Writer) error { return tables(w, before, cmd.Name(), report.WriteMarkdown) }); err != nil {
		return err
	}
	if err := write(o.chart, report.Figure().WriteSVG); err != nil {
		return err
	}
	if o.json {
		err = json.NewEncoder(l.stdout).Encode(report)
	} else {
		err = report.WriteText(l.stdout)
	}
	if err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	if o.goals && !report.Met() {
		return errGoals
	}
	return nil
}

// write writes a file; an empty name writes none.
func write(name string, to func(io.Writer) error) (err error) {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return to(f)
}

// tableMarks returns the lines of a page that enclose the tables of a command.
func tableMarks(command string) (begin, end string) {
	return "<!-- samya-lab " + command + ": begin -->\n", "<!-- samya-lab " + command + ": end -->\n"
}

// tables writes a page with the tables of a command replaced, or the tables alone if the
// page has no place for them.
func tables(w io.Writer, page []byte, command string, write func(io.Writer) error) error {
	begin, end := tableMarks(command)
	head, rest, found := bytes.Cut(page, []byte(begin))
	_, foot, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		return write(w)
	}
	if _, err := io.WriteString(w, string(head)+begin+"\n"); err != nil {
		return err
	}
	if err := write(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n"+end+string(foot))
	return err
}

// read turns the flags into options of package compare.
func (o *compareOptions) read() (*compare.Options, error) {
	c := &compare.Options{Rounds: o.rounds, Time: o.time, Warmup: o.warmup, Dir: o.dir}
	switch {
	case o.rounds < 1 || o.rounds > 1000:
		return nil, errors.New("--rounds must be within 1 and 1000")
	case o.time < 100*time.Millisecond || o.time > 10*time.Minute:
		return nil, errors.New("--duration must be within 100ms and 10m")
	case o.warmup < 0 || o.warmup > 10*time.Minute:
		return nil, errors.New("--warmup must be within 0s and 10m")
	}
	if o.only != "" {
		pattern, err := regexp.Compile(o.only)
		if err != nil {
			return nil, fmt.Errorf("--only: %w", err)
		}
		c.Wanted = func(cell compare.Cell) bool { return pattern.MatchString(cell.String()) }
	} else if o.quick {
		// To create so many entities takes longer than to measure.
		c.Wanted = func(cell compare.Cell) bool { return cell.Workload != compare.Even }
	}
	for _, p := range o.peers {
		if known := slices.Concat(peers, replicated); !slices.Contains(known, p) {
			return nil, fmt.Errorf("--peers: no %q, known are %s", p, strings.Join(known, ", "))
		}
	}
	self, bin, err := o.programs()
	if err != nil {
		return nil, err
	}
	c.Systems = []compare.System{
		compare.Sync{}, compare.Echo{Bin: self}, compare.SamyaSystem{Bin: bin}, compare.Echo{Bin: self, HTTP: true},
	}
	if slices.Contains(o.peers, "redis") {
		c.Systems = append(c.Systems, compare.Redis{Always: true}, compare.Redis{Always: true, NoIDs: true}, compare.Redis{})
	}
	if slices.Contains(o.peers, "etcd") {
		c.Systems = append(c.Systems, compare.EtcdSystem{})
	}
	if slices.Contains(o.peers, "postgres") {
		c.Systems = append(c.Systems, compare.PostgresSystem{URL: o.postgresURL})
	}
	if slices.Contains(o.peers, "nodes") {
		c.Systems = append(c.Systems, compare.SamyaNodes{Bin: bin})
	}
	if slices.Contains(o.peers, "etcd-put") {
		c.Systems = append(c.Systems, compare.EtcdPuts{})
	}
	if slices.Contains(o.peers, "redis-wait") {
		c.Systems = append(c.Systems, compare.RedisReplica{})
	}
	for _, s := range c.Systems {
		if peer, ok := s.(interface{ Installed() error }); ok {
			if err := peer.Installed(); err != nil {
				return nil, fmt.Errorf("--peers: %w", err)
			}
		}
	}
	return c, nil
}

// programs returns the paths of this program and of samya.
func (o *compareOptions) programs() (self, samya string, err error) {
	if self, err = os.Executable(); err != nil {
		return "", "", fmt.Errorf("find this program: %w", err)
	}
	if samya = o.bin; samya == "" {
		samya = filepath.Join(filepath.Dir(self), "samya")
	}
	if samya, err = filepath.Abs(samya); err != nil {
		return "", "", fmt.Errorf("--samya: %w", err)
	}
	if _, err := os.Stat(samya); err != nil {
		return "", "", fmt.Errorf("--samya: %w (make build makes it)", err)
	}
	return self, samya, nil
}

const (
	// leastSoak is the shortest soak. A site's memory rises and falls with the log
	// of a minute, so each fifth must last a minute.
	leastSoak = 5 * time.Minute
	// soakLook is the interval between two looks at memory.
	soakLook = time.Second
)

var errGrows = errors.New("the site's memory grows")

// soak watches the memory of a site under load.
func (l *lab) soak(ctx context.Context, o *compareOptions, progress func(string)) error {
	_, bin, err := o.programs()
	switch {
	case err != nil:
		return &usageError{err}
	case o.soak < leastSoak || o.soak > 24*time.Hour:
		return &usageError{fmt.Errorf("--soak must be within %s and 24h", leastSoak)}
	}
	s, err := compare.RunSoak(ctx, &compare.SoakOptions{
		// The table of ids is full before the second fifth begins.
		System: compare.SamyaSystem{Bin: bin, Retention: min(o.soak/10, time.Minute)}, Way: compare.WayStream64,
		Time: o.soak, Every: soakLook, Dir: o.dir, Progress: progress,
	})
	if err != nil {
		return err
	}
	if o.json {
		err = json.NewEncoder(l.stdout).Encode(s)
	} else {
		err = s.WriteText(l.stdout)
	}
	if err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	if !s.Flat {
		return errGrows
	}
	return nil
}
