package coreslab

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/samya-db/samya/lab/compare"
)

// table is rows of cells, the first of them heads.
type table [][]string

func fixed2(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 0, 64) + " %" }

// costs lists the costs, a column for each number of entities.
func (r *Report) costs() table {
	heads := []string{"ns"}
	for _, c := range r.Costs {
		heads = append(heads, compare.Thousands(float64(c.Entities))+" entities")
	}
	t := table{heads}
	of := reflect.TypeFor[Costs]()
	for i := range of.NumField() {
		if of.Field(i).Type.Kind() != reflect.Float64 {
			continue
		}
		line := []string{strings.ReplaceAll(of.Field(i).Tag.Get("json"), "_", " ")}
		for _, c := range r.Costs {
			line = append(line, compare.Thousands(math.Round(reflect.ValueOf(c).Elem().Field(i).Float())))
		}
		t = append(t, line)
	}
	for _, q := range []struct {
		name string
		at   float64
	}{{"sync, median", .5}, {"sync, p99", .99}} {
		line := []string{q.name}
		for _, c := range r.Costs {
			line = append(line, compare.Thousands(c.Syncs[int(q.at*float64(len(c.Syncs)-1))]))
		}
		t = append(t, line)
	}
	return t
}

// rows lists the rates of designs, a column for each number of cores.
func (r *Report) rows() table {
	var cores []int
	for _, row := range r.Rows {
		if len(cores) == 0 || row.Cores > cores[len(cores)-1] {
			cores = append(cores, row.Cores)
		}
	}
	heads := []string{"entities", "callers", "design"}
	for _, n := range cores {
		heads = append(heads, strconv.Itoa(n))
	}
	t := table{append(heads, "bottleneck at "+strconv.Itoa(cores[len(cores)-1]), "busy", "p99 ms", "ns/op")}
	lines := make(map[string]int)
	for _, row := range r.Rows {
		key := fmt.Sprint(row.Entities, row.Callers, row.Design)
		at, known := lines[key]
		if !known {
			at = len(t)
			lines[key] = at
			t = append(t, []string{compare.Thousands(float64(row.Entities)), compare.Thousands(float64(row.Callers)), row.Design})
		}
		t[at] = append(t[at], compare.Thousands(row.Rate))
		if row.Cores == cores[len(cores)-1] {
			t[at] = append(t[at], row.Bottleneck, percent(row.Busy), fixed2(row.P99/1e3), compare.Thousands(row.Nanos))
		}
	}
	return t
}

// checks lists the comparisons.
func (r *Report) checks() table {
	t := table{{"entities", "cores", "partitions", "callers", "real", "model", "error", "real ns/op", "model ns/op", "error", "taken", "real used", "model used", "real ops/message", "model ops/message", "real p50 ms", "model p50 ms"}}
	for i := range r.Checks {
		c := &r.Checks[i]
		t = append(t, []string{
			compare.Thousands(float64(c.Entities)), strconv.Itoa(c.Real.Cores), strconv.Itoa(c.Partitions), compare.Thousands(float64(c.Real.Callers)),
			compare.Thousands(c.Real.Rate), compare.Thousands(c.Model.Rate), fmt.Sprintf("%+.0f %%", 100*c.Error),
			compare.Thousands(c.Real.Nanos), compare.Thousands(c.Model.Nanos), fmt.Sprintf("%+.0f %%", 100*(c.Model.Nanos/max(1, c.Real.Nanos)-1)),
			percent(c.Real.Taken), percent(c.Real.Used), percent(c.Model.Used), fixed2(c.Real.PerMessage), fixed2(c.Model.PerMessage), fixed2(c.Real.P50 / 1e3), fixed2(c.Model.P50 / 1e3),
		})
	}
	return t
}

// titles stand above the tables.
func (r *Report) titles() []string {
	n := 0
	var sum float64
	for i := range r.Checks {
		sum += math.Abs(r.Checks[i].Error)
		n++
	}
	return []string{
		"Costs measured here, in nanoseconds of a core; syncs in nanoseconds of the disk.",
		"The model: operations a second by the number of cores of the site.",
		fmt.Sprintf("Real sites, with their clients on the same cores, beside the model. The mean error is %s.", percent(sum/float64(max(1, n)))),
	}
}

// WriteText writes the tables for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	for i, t := range []table{r.costs(), r.rows(), r.checks()} {
		if len(t) < 2 {
			continue
		}
		_, _ = fmt.Fprintf(w, "%s\n\n", r.titles()[i]) // Flush tells the error
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, line := range t {
			_, _ = fmt.Fprintln(tw, strings.Join(line, "\t"))
		}
		_, _ = fmt.Fprintln(tw)
		if err := tw.Flush(); err != nil {
			return fmt.Errorf("write the tables: %w", err)
		}
	}
	return nil
}

// WriteMarkdown writes the tables for a page.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	for i, t := range []table{r.rows(), r.checks(), r.costs()} {
		if len(t) < 2 {
			continue
		}
		b.WriteString(r.titles()[[]int{1, 2, 0}[i]] + "\n\n")
		for j, line := range t {
			b.WriteString("| " + strings.Join(line, " | ") + " |\n")
			if j == 0 {
				b.WriteString(strings.Repeat("|--:", len(line)) + "|\n")
			}
		}
		b.WriteString("\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	return nil
}
