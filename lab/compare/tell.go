package compare

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteText writes the figures as tables for a terminal.
func (r *Report) WriteText(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, load := range workloads {
		rows := r.rows(load)
		if len(rows) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s, medians of %d rounds of %gs, %d cores\n%s\n", loadTitles[load], r.Rounds, r.Seconds, r.Cores, strings.Join(heads, "\t")); err != nil {
			return err
		}
		for _, row := range rows {
			if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(w, strings.Join(goalHeads, "\t")); err != nil {
		return err
	}
	for _, row := range r.goalRows() {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// WriteMarkdown writes the tables of the documentation.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	table := func(heads []string, rows [][]string) {
		b.WriteString("| " + strings.Join(heads, " | ") + " |\n|" + strings.Repeat("---|", 2) + strings.Repeat("--:|", len(heads)-2) + "\n")
		for _, row := range rows {
			b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		}
	}
	for _, load := range workloads {
		if rows := r.rows(load); len(rows) > 0 {
			fmt.Fprintf(&b, "%s: medians of %d alternated rounds of %g s, %d cores.\n\n", loadTitles[load], r.Rounds, r.Seconds, r.Cores)
			table(heads, rows)
			b.WriteString("\n")
		}
	}
	table(goalHeads, r.goalRows())
	b.WriteString("\nDurable when a grant is answered:\n\n")
	told := ""
	for _, m := range r.Cells {
		if m.System != told {
			told = m.System
			fmt.Fprintf(&b, "* **%s** (%s): %s%s\n", m.System, m.Kind, m.Promise, withSettings(m.Settings))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	return nil
}

var (
	loadTitles = map[Workload]string{Hot: "One entity", Zipf: "10,000 entities, Zipf 0.99", Even: "100,000 entities, all as often"}
	heads      = []string{"system", "asked by", "a second", "lowest … highest", "× samya unary", "p50 ms", "p99 ms", "p99.9 ms", "server µs", "client µs"}
	goalHeads  = []string{"goal", "", "wanted", "got"}
)

// withSettings tells of settings, if there are any.
func withSettings(settings string) string {
	if settings == "" {
		return ""
	}
	return "; settings `" + settings + "`"
}

// rows returns the figures of a workload's cells.
func (r *Report) rows(load Workload) [][]string {
	unary := r.find(Cell{Samya, WayUnary, load})
	var rows [][]string
	for _, m := range r.Cells {
		if m.Workload != load {
			continue
		}
		times := "-"
		if unary != nil {
			times = fmt.Sprintf("%.2f", ratio(m, rate, unary, rate))
		}
		s := &m.Median
		rows = append(rows, []string{
			m.System, m.Way, thousands(s.Rate), thousands(m.Lowest) + " … " + thousands(m.Highest), times,
			milliseconds(s.P50), milliseconds(s.P99), milliseconds(s.P999), microseconds(s.ServerCPU), microseconds(s.ClientCPU),
		})
	}
	return rows
}

// goalRows returns the goals as rows.
func (r *Report) goalRows() [][]string {
	rows := make([][]string, 0, len(r.Goals))
	for _, g := range r.Goals {
		verdict, bound, got := "MISSED", "≥ ", "not measured"
		if g.Met {
			verdict = "met"
		}
		if g.Below {
			bound = "≤ "
		}
		if g.Measured {
			got = g.figure(g.Got)
		} else {
			verdict = "-"
		}
		rows = append(rows, []string{g.What, verdict, bound + g.figure(g.Bound), got})
	}
	return rows
}

// figure writes a value with the goal's unit.
func (g *Goal) figure(v float64) string {
	if g.Unit == "×" {
		return fmt.Sprintf("%.2f ×", v)
	}
	if g.Unit == micros && v < 100 {
		return fmt.Sprintf("%.1f%s", v, g.Unit)
	}
	return thousands(v) + g.Unit
}

// thousands writes a number rounded to an integer, with its thousands apart.
func thousands(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// milliseconds writes µs as ms; "-" for 0, an unknown value.
func milliseconds(v float64) string {
	if v == 0 {
		return "-"
	}
	return strconv.FormatFloat(v/1000, 'f', 2, 64)
}

// microseconds writes µs; "-" for 0, an unknown value.
func microseconds(v float64) string {
	if v == 0 {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}
