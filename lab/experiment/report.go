package experiment

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/samya-db/samya/lab/plot"
)

// ReportFile is the name of the report in the directory of the results.
const ReportFile = "report.md"

// Write writes the files of all results and the report to dir. It makes dir.
func Write(dir string, results []*Result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of the results: %w", err)
	}
	for _, r := range results {
		for _, t := range r.Tables {
			if err := create(filepath.Join(dir, r.file(t.Name, "csv")), t.write); err != nil {
				return err
			}
		}
		for _, f := range r.Figures {
			if err := create(filepath.Join(dir, r.file(f.Name, "svg")), f.WriteSVG); err != nil {
				return err
			}
		}
	}
	return create(filepath.Join(dir, ReportFile), func(w io.Writer) error {
		var b strings.Builder
		b.WriteString("# Experiments\n")
		tellGoals(&b, results)
		for _, r := range results {
			r.section(&b)
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
}

// tellGoals writes the number of goals met, and names the goals missed.
func tellGoals(b *strings.Builder, results []*Result) {
	var met, unmeasured int
	var missed []string
	for _, r := range results {
		for _, g := range r.Goals {
			switch {
			case g.Met:
				met++
			case !g.Measured:
				unmeasured++
			default:
				missed = append(missed, fmt.Sprintf("* %s: %s: %s", r.Name, g.What, with(g.Got, g.Unit)))
			}
		}
	}
	fmt.Fprintf(b, "\nGoals: %d met, %d missed, %d not measured.\n", met, len(missed), unmeasured)
	if len(missed) > 0 {
		b.WriteString("\nMissed:\n\n" + strings.Join(missed, "\n") + "\n")
	}
}

// file returns the name of a file of the result.
func (r *Result) file(name, form string) string {
	if name != "" {
		name = "-" + name
	}
	return r.Name + name + "." + form
}

// create writes a file.
func create(name string, to func(io.Writer) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := to(f); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// write writes the table as CSV.
func (t Table) write(w io.Writer) error {
	c := csv.NewWriter(w)
	return errors.Join(c.Write(t.Heads), c.WriteAll(t.Rows))
}

// show writes the table into the report.
func (t Table) show(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n\n| %s |\n|%s\n", t.Name, strings.Join(t.Heads, " | "), strings.Repeat("---|", len(t.Heads)))
	for _, row := range t.Rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
}

// section writes the result's section of the report.
func (r *Result) section(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s: %s\n\n%s %d cores, %.0f s.\n", r.Name, r.Title, r.Setup, r.Cores, r.Seconds)
	if r.Quick {
		b.WriteString("\nMeasured with `--quick`: too brief to compare with a paper.\n")
	}
	if len(r.Goals) > 0 {
		b.WriteString("\n| goal | bound | measured | met |\n|---|--:|--:|---|\n")
		for _, row := range r.goals() {
			b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		}
	}
	if len(r.Compared) > 0 {
		b.WriteString("\n| | paper | ours | why they differ |\n|---|--:|--:|---|\n")
		for _, c := range r.Compared {
			paper := "–"
			if c.Paper != nil {
				paper = with(*c.Paper, c.Unit)
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", c.What, paper, with(c.Ours, c.Unit), c.Why)
		}
	}
	for _, t := range r.Spreads {
		t.show(b)
	}
	for _, f := range r.Figures {
		fmt.Fprintf(b, "\n![%s](%s)\n\n%s\n", f.Caption, r.file(f.Name, "svg"), f.Caption)
	}
	if len(r.Notes) > 0 {
		b.WriteString("\n")
		for _, note := range r.Notes {
			b.WriteString("* " + note + "\n")
		}
	}
	b.WriteString("\nData: ")
	for i, t := range r.Tables {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(b, "[%[1]s](%[1]s)", r.file(t.Name, "csv"))
	}
	b.WriteString(".\n")
}

// with formats a number with its unit.
func with(v float64, unit string) string {
	if unit == "" {
		return plot.Number(v)
	}
	return plot.Number(v) + " " + unit
}

// goals returns the goals as rows: what, bound, measured, met.
func (r *Result) goals() [][]string {
	rows := make([][]string, 0, len(r.Goals))
	for _, g := range r.Goals {
		bound := "≥ "
		switch {
		case g.AtMost:
			bound = "≤ "
		case g.Below:
			bound = "< "
		}
		bound += with(g.Bound, g.Unit)
		got, met := "not measured", "no"
		if g.Measured {
			got = with(g.Got, g.Unit)
		}
		if g.Met {
			met = "yes"
		}
		rows = append(rows, []string{g.What, bound, got, met})
	}
	return rows
}

// WriteText writes the goals of all results for a terminal.
func WriteText(to io.Writer, results []*Result) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, r := range results {
		if _, err := fmt.Fprintf(w, "%s\tbound\tmeasured\tmet\n", r.Name); err != nil {
			return err
		}
		for _, row := range r.goals() {
			if _, err := fmt.Fprintln(w, "  "+strings.Join(row, "\t")); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}
