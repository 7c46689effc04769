package kvlab

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/samya-db/samya/lab/plot"
)

// WriteText writes the costs as text.
func (b *Bench) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "store and workload\tµs/operation\tclients alone\trepartitioning\tnet\t×bare engine\tRepart-KV µs\toperations/s\tcuts/s\ton several partitions\tpause p99 µs\t")
	for _, c := range b.Costs {
		_, _ = fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%s\t%.2f\t%s\t%s\t%s\t%s\t%.1f %%\t%s\t\n", c.Case, c.Processor, c.Processor-c.Net, orNone(c.Map), c.Net,
			orNone(c.Bare), orNone(c.Peer), plot.Number(c.Rate), orNone(c.Cuts), 100*c.Multi, orNone(c.PauseP99))
	}
	if err := t.Flush(); err != nil { // Flush returns the errors of all writes before
		return fmt.Errorf("print the results: %w", err)
	}
	return writeGoals(w, b.Goals)
}

// orNone formats a number; "-" for 0.
func orNone(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

// WriteText writes the cost of repartitioning as text.
func (o *Overhead) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "uniform reads, µs/operation\twithout\tby default\tmore\tcuts/s\ta cut each second\tmore\tcuts/s\t")
	for i, r := range o.Turns {
		_, _ = fmt.Fprintf(t, "turn %d\t%.3f\t%.3f\t%+.1f %%\t%.1f\t%.3f\t%+.1f %%\t%.1f\t\n", i+1, r.Off, r.Usual, 100*(r.Usual/r.Off-1), r.Usually,
			r.Always, 100*(r.Always/r.Off-1), r.Cuts)
	}
	_, _ = fmt.Fprintf(t, "median\t\t\t%+.1f %%\t\t\t%+.1f %%\t\t\n", 100*o.Usual, 100*o.Always)
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "\ntracking and cutting, a cut each 10 ms wanted\tshare of a core at most\tgot\tcuts\t")
	for _, s := range o.Shares {
		_, _ = fmt.Fprintf(t, "%s\t%.0f %%\t%.1f %%\t%d\t\n", s.Workload, 100*s.Bound, 100*s.Got, s.Cuts)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	return writeGoals(w, o.Goals)
}

// writeGoals writes the goals and whether they are met.
func writeGoals(w io.Writer, goals []Goal) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "\ngoal\tbound\tgot\t")
	for _, g := range goals {
		sign, met := "at most", "met"
		if g.Least {
			sign = "at least"
		}
		if !g.Met {
			met = "MISSED"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s %.2f %s\t%.2f %s\t%s\n", g.What, sign, g.Bound, g.Unit, g.Got, g.Unit, met)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	return nil
}
