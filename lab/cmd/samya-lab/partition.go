package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/kvpart/cut"
	"github.com/samya-db/samya/kvpart/cut/graphs"
	"github.com/samya-db/samya/kvpart/cut/metis"
	"github.com/samya-db/samya/lab/cutcheck"
)

// partitionOptions are the flags of partition.
type partitionOptions struct {
	graph, generate, save string
	vertices              int
	start, out            string
	options               cut.Options
	weights               bool
	gpmetis               string
	json                  bool
	suite                 bool
	sample                int
	suiteOptions          cutcheck.Options
}

// partitionCommand is `samya-lab partition`.
func (l *lab) partitionCommand() *cobra.Command {
	var o partitionOptions
	var known []string
	for _, f := range graphs.Families() {
		known = append(known, fmt.Sprintf("  %-14s %s", f.Name, f.Says))
	}
	cmd := &cobra.Command{
		Use:   "partition",
		Short: "Cut a graph into parts, beside gpmetis",
		Long: `Cuts a graph, read in METIS's format (--graph) or drawn from a seed (--generate),
into parts of about equal weight such that the edges between them weigh little.
It prints what is cut, the balance (the heaviest part divided by the mean) and the
time, and the same of gpmetis where that is installed: its direct k-way cut with
seed 1, and its recursive bisection where the former is out of balance.

--suite cuts graphs of all families into 2, 4, 8 and 16 parts and fails if a bound
against gpmetis does not hold: the cut at most 1.10 times its, or .2 % of all edges
more where that is next to nothing, the balance at most 1.05, the processor time
at most 3 times its; after a change of 5 % of the load a warm start moves less
than a fifth of what a cold one does, at 1.05 times its cut. docs/papers/partitioning.md
tells more.

The families:
` + strings.Join(known, "\n"),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.suite {
				return l.partitionSuite(cmd, &o)
			}
			return l.partition(cmd.Context(), &o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.graph, "graph", "", "file of the graph, - for stdin")
	f.StringVar(&o.generate, "generate", "", "draw a graph of this family instead")
	f.IntVar(&o.vertices, "vertices", 0, "about how many vertices to draw; 0 for what the family is judged at")
	f.StringVar(&o.save, "save", "", "write the graph that was drawn to this file")
	f.IntVarP(&o.options.Parts, "parts", "k", 8, "into how many parts")
	f.Uint64Var(&o.options.Seed, "seed", 1, "what is left to chance: the cut and what is drawn")
	f.Float64Var(&o.options.Imbalance, "imbalance", .03, "how much the heaviest part may weigh above the mean, as a share of it")
	f.Float64Var(&o.options.Stretch, "stretch", .05, "the same where a third less is cut; -1 for never")
	f.StringVar(&o.start, "start", "", "file of the present parts, one a line, -1 for none: move little")
	f.StringVar(&o.out, "out", "", "write the parts to this file, one a line")
	f.BoolVar(&o.weights, "weights", false, "tell the weight of each part")
	f.StringVar(&o.gpmetis, "gpmetis", "gpmetis", "name or path of gpmetis; empty to leave it out")
	f.BoolVar(&o.json, "json", false, "print JSON, one line on stdout")
	f.BoolVar(&o.suite, "suite", false, "hold all families against gpmetis")
	f.StringSliceVar(&o.suiteOptions.Families, "families", nil, "these only, with --suite; separated by commas")
	f.IntVar(&o.sample, "sample", 0, "so many only, of the families, with --suite, drawn by --seed; 0 for all")
	f.IntVar(&o.suiteOptions.Seeds, "seeds", 3, "how many seeds to run, with --suite: graphs of each family")
	f.IntVar(&o.suiteOptions.Runs, "rounds", 5, "how often to measure each, with --suite: the time is the median; 0 for no times")
	return cmd
}

// partitionResult is what --json prints, on one line.
type partitionResult struct {
	Vertices   int     `json:"vertices"`
	Edges      int     `json:"edges"`
	EdgeWeight int64   `json:"edge_weight"`
	Parts      int     `json:"parts"`
	Seed       uint64  `json:"seed"`
	Imbalance  float64 `json:"imbalance"`
	// Score is the score of samya's partitioner. Its fields are at the top level:
	// cut, cut_share, balance, balances, empty.
	cutcheck.Score
	// Seconds is processor time, as in gpmetis's report; Elapsed is wall-clock time.
	Seconds float64 `json:"seconds"`
	Elapsed float64 `json:"elapsed_seconds"`
	// Hubs are the vertices, numbered from 1, that alone outweigh a part.
	Hubs []hub `json:"hubs"`
	// Moved is the number of vertices that left the part of their start; nil for a
	// cold start.
	Moved *int `json:"moved,omitempty"`
	// Weights are the weights of the parts, by dimension, with --weights.
	Weights [][]int64 `json:"weights,omitempty"`
	// Metis is the direct cut of gpmetis, Bisect its cut by recursive bisection.
	Metis  *cutcheck.Figures `json:"gpmetis,omitempty"`
	Bisect *cutcheck.Figures `json:"gpmetis_rb,omitempty"`
	// Without is the reason for a missing cut of gpmetis.
	Without string `json:"gpmetis_error,omitempty"`
}

// hub is a vertex that alone outweighs a part.
type hub struct {
	Vertex int32 `json:"vertex"`
	// Parts is the vertex's weight, in means of a part.
	Parts float64 `json:"parts"`
}

// partition cuts a graph.
func (l *lab) partition(ctx context.Context, o *partitionOptions) error {
	if o.options.Parts < 1 || o.options.Parts > cut.MaxParts {
		return &usageError{fmt.Errorf("--parts %d, want 1 to %d", o.options.Parts, cut.MaxParts)}
	}
	g, err := o.load()
	if err != nil {
		return err
	}
	if o.start != "" {
		if o.options.Start, err = readParts(o.start, g); err != nil {
			return err
		}
	}
	figures, result, err := cutcheck.Ours(ctx, g, o.options)
	switch {
	case errors.Is(err, cut.ErrOptions):
		return &usageError{err}
	case err != nil:
		return fmt.Errorf("cut the graph: %w", err)
	}
	r := newPartitionResult(g, o, figures, result)
	if o.out != "" {
		if err := writeFile(o.out, func(w io.Writer) error { return metis.WriteParts(w, result.Parts) }); err != nil {
			return err
		}
	}
	if err := r.beside(ctx, g, o); err != nil {
		return err
	}
	if o.json {
		if err := json.NewEncoder(l.stdout).Encode(r); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
		return nil
	}
	return r.print(l.stdout)
}

// load reads or draws the graph.
func (o *partitionOptions) load() (*cut.Graph, error) {
	switch {
	case (o.graph == "") == (o.generate == ""):
		return nil, &usageError{errors.New("which graph? one of --graph FILE and --generate FAMILY")}
	case o.graph != "" && (o.vertices != 0 || o.save != ""):
		return nil, &usageError{errors.New("--vertices and --save are for graphs that are drawn (--generate)")}
	case o.graph == "-":
		return readGraph(os.Stdin)
	case o.graph != "":
		f, err := os.Open(o.graph)
		if err != nil {
			return nil, &usageError{fmt.Errorf("--graph: %w", err)}
		}
		g, err := readGraph(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("--graph %s: %w", o.graph, err)
		}
		return g, nil
	}
	family, err := graphs.ByName(o.generate)
	if err != nil {
		return nil, &usageError{fmt.Errorf("--generate: %w", err)}
	}
	if o.vertices == 0 {
		o.vertices = family.Vertices
	}
	g, err := family.Draw(o.vertices, o.options.Seed)
	if err != nil {
		return nil, &usageError{fmt.Errorf("--vertices: %w", err)}
	}
	if o.save == "" {
		return g, nil
	}
	return g, writeFile(o.save, func(w io.Writer) error { return metis.Write(w, g, nil) })
}

func readGraph(from io.Reader) (*cut.Graph, error) {
	g, _, err := metis.Read(from)
	return g, err
}

func readParts(name string, g *cut.Graph) ([]int32, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &usageError{fmt.Errorf("--start: %w", err)}
	}
	parts, err := metis.ReadParts(f, len(g.Offsets)-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("--start %s: %w", name, err)
	}
	return parts, nil
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return &usageError{err}
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func newPartitionResult(g *cut.Graph, o *partitionOptions, figures *cutcheck.Figures, of *cut.Result) *partitionResult {
	r := &partitionResult{
		Vertices: len(g.Offsets) - 1, Edges: len(g.Neighbors) / 2, EdgeWeight: cutcheck.EdgeWeight(g),
		Parts: o.options.Parts, Seed: o.options.Seed, Imbalance: o.options.Imbalance,
		Score: figures.Score, Seconds: figures.Seconds, Elapsed: figures.Elapsed, Hubs: []hub{},
	}
	for _, v := range of.Hubs {
		r.Hubs = append(r.Hubs, hub{v + 1, cutcheck.PartsOf(g, v, o.options.Parts)})
	}
	if o.start != "" {
		r.Moved = &of.Moved
	}
	if o.weights {
		r.Weights = cutcheck.Weights(g, of.Parts, o.options.Parts)
	}
	return r
}

// beside adds the cuts of g by gpmetis, or the reason that gpmetis made none.
func (r *partitionResult) beside(ctx context.Context, g *cut.Graph, o *partitionOptions) error {
	if o.gpmetis == "" || r.Parts < 2 {
		return nil
	}
	metis, err := cutcheck.FindMetis(o.gpmetis)
	if err == nil {
		r.Metis, r.Bisect, err = metis.Beside(ctx, g, cutcheck.MetisOptions{Parts: r.Parts, Seed: 1, Imbalance: r.Imbalance})
	}
	if errors.Is(err, cutcheck.ErrMetis) && ctx.Err() == nil {
		r.Without, err = err.Error(), nil
	}
	return err
}

// print writes the result as text.
func (r *partitionResult) print(to io.Writer) error {
	out := bufio.NewWriter(to)
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) } // Flush returns the error
	say("%d vertices, %d edges of weight %d, into %d parts\n\n", r.Vertices, r.Edges, r.EdgeWeight, r.Parts)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, s cutcheck.Score, seconds float64) {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%.3f %%\t%.3f\t%.3f\t\n", name, s.Cut, 100*s.Share, s.Balance, seconds)
	}
	_, _ = fmt.Fprint(w, "\tcut\tof all\tbalance\tCPU s\t\n")
	row("samya", r.Score, r.Seconds)
	if r.Metis != nil {
		row("gpmetis", r.Metis.Score, r.Metis.Seconds)
	}
	if r.Bisect != nil {
		row("gpmetis, bisecting", r.Bisect.Score, r.Bisect.Seconds)
	}
	_ = w.Flush() // into memory
	say("\n%.3f s on the clock\n", r.Elapsed)
	if r.Without != "" {
		say("\nwithout gpmetis: %s\n", r.Without)
	}
	if len(r.Balances) > 1 {
		say("\nbalance by weight: %.3f\n", r.Balances)
	}
	if r.Empty > 0 {
		say("\n%d parts are empty\n", r.Empty)
	}
	if r.Moved != nil {
		say("\n%d vertices moved, %.2f %%\n", *r.Moved, 100*float64(*r.Moved)/float64(max(1, r.Vertices)))
	}
	if len(r.Hubs) > 0 {
		say("\n%d hubs outweigh a part alone: replicate or split them, no placement balances them\n", len(r.Hubs))
		for _, h := range r.Hubs[:min(10, len(r.Hubs))] {
			say("  vertex %d: %.2f parts\n", h.Vertex, h.Parts)
		}
	}
	for d, weights := range r.Weights {
		say("\nweight %d of the parts: %d\n", d+1, weights)
	}
	return out.Flush()
}

// sample draws n families by a seed.
func sample(n int, seed uint64) []string {
	all := graphs.Families()
	names := make([]string, n)
	for i, k := range rand.New(rand.NewPCG(seed, 0)).Perm(len(all))[:n] {
		names[i] = all[k].Name
	}
	return names
}

// partitionSuite measures the partitioner against gpmetis.
func (l *lab) partitionSuite(cmd *cobra.Command, o *partitionOptions) error {
	for _, flag := range []string{"graph", "generate", "save", "parts", "start", "out", "weights", "imbalance", "stretch", "seed"} {
		if cmd.Flags().Changed(flag) && (flag != "seed" || o.sample == 0) {
			return &usageError{fmt.Errorf("--suite takes no --%s", flag)}
		}
	}
	s := o.suiteOptions
	if s.Seeds < 1 || s.Runs < 0 || o.vertices < 0 {
		return &usageError{errors.New("--seeds must be above zero, --rounds and --vertices not below")}
	}
	if o.sample != 0 {
		if most := len(graphs.Families()); o.sample < 0 || o.sample > most || s.Families != nil {
			return &usageError{fmt.Errorf("--sample %d, want 1 to %d, and no --families", o.sample, most)}
		}
		s.Families = sample(o.sample, o.options.Seed)
	}
	metis, err := cutcheck.FindMetis(o.gpmetis)
	if err != nil {
		return err
	}
	began, last := time.Now(), time.Time{}
	s.Vertices = o.vertices
	s.Progress = func(p cutcheck.Progress) {
		line := fmt.Sprintf("%d/%d %v %s", p.Done, p.Of, time.Since(began).Round(time.Second), p.What)
		if len(p.Broken) > 0 {
			line += fmt.Sprintf(": does not hold: %v\n", p.Broken)
		}
		switch {
		case l.isTerminal():
			_, _ = fmt.Fprint(l.stderr, "\r\x1b[K", line)
		case len(p.Broken) > 0 || time.Since(last) >= 5*time.Second:
			last = time.Now()
			_, _ = fmt.Fprintln(l.stderr, strings.TrimSuffix(line, "\n"))
		}
	}
	r, err := cutcheck.Run(cmd.Context(), metis, s)
	l.progressDone()
	switch {
	case errors.Is(err, graphs.ErrFamily) || errors.Is(err, graphs.ErrVertices):
		return &usageError{err}
	case err != nil:
		return err
	}
	if o.json {
		err = json.NewEncoder(l.stdout).Encode(r)
	} else {
		err = r.Print(l.stdout)
	}
	if err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	if r.Broken() > 0 {
		return errViolated
	}
	return nil
}
