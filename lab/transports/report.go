package transports

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/samya-db/samya/lab/compare"
)

// Report is the result.
type Report struct {
	Rounds int `json:"rounds"`
	// Seconds is the length of a measurement, Cores the number of processors of the load.
	Seconds float64 `json:"seconds"`
	Cores   int     `json:"cores"`
	Rows    []Row   `json:"rows"`
}

// Row is the result of a way with a number of callers.
type Row struct {
	Way     string   `json:"way"`
	TLS     bool     `json:"tls"`
	Callers int      `json:"callers"`
	Samples []Sample `json:"samples"`
	// Rate is operations a second, from Lowest to Highest over the rounds.
	Rate    float64 `json:"rate"`
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
	// Times is the rate over the rate of GRPC, with as many callers.
	Times float64 `json:"times_grpc"`
	// Latencies are in µs, processor time is µs an operation.
	P50        float64 `json:"p50_us"`
	P99        float64 `json:"p99_us"`
	P999       float64 `json:"p999_us"`
	ServerCPU  float64 `json:"server_cpu_us"`
	ClientCPU  float64 `json:"client_cpu_us"`
	PerMessage float64 `json:"operations_per_message"`
}

// name is the name of a way, with its security.
func (r *Row) name() string {
	if r.TLS {
		return r.Way + ", TLS"
	}
	return r.Way
}

// figures returns a figure of all rounds.
func (r *Row) figures(figure func(*Sample) float64) []float64 {
	all := make([]float64, len(r.Samples))
	for i := range r.Samples {
		all[i] = figure(&r.Samples[i])
	}
	return all
}

// summarize works out medians, ranges and ratios.
func (r *Report) summarize() {
	for i := range r.Rows {
		row := &r.Rows[i]
		median := func(figure func(*Sample) float64) float64 { return compare.Median(row.figures(figure)) }
		rates := row.figures(func(s *Sample) float64 { return s.Rate })
		if len(rates) == 0 {
			continue
		}
		row.Rate, row.Lowest, row.Highest = compare.Median(rates), slices.Min(rates), slices.Max(rates)
		row.P50 = median(func(s *Sample) float64 { return s.P50 })
		row.P99 = median(func(s *Sample) float64 { return s.P99 })
		row.P999 = median(func(s *Sample) float64 { return s.P999 })
		row.ServerCPU = median(func(s *Sample) float64 { return s.ServerCPU })
		row.ClientCPU = median(func(s *Sample) float64 { return s.ClientCPU })
		row.PerMessage = median(func(s *Sample) float64 { return s.PerMessage })
		row.Times = r.ratio(row)
	}
}

// ratio returns the median, over the rounds, of the rate of a row over the rate of GRPC.
func (r *Report) ratio(row *Row) float64 {
	at := slices.IndexFunc(r.Rows, func(base Row) bool {
		return base.Way == GRPC && base.TLS == row.TLS && base.Callers == row.Callers
	})
	if at < 0 {
		return 0
	}
	ratios := make([]float64, min(len(row.Samples), len(r.Rows[at].Samples)))
	for i := range ratios {
		ratios[i] = row.Samples[i].Rate / r.Rows[at].Samples[i].Rate
	}
	return compare.Median(ratios)
}

// title tells the settings of the measurement.
func (r *Report) title() string {
	return fmt.Sprintf("Medians of %d alternated rounds of %g s, %d cores.", r.Rounds, r.Seconds, r.Cores)
}

var heads = []string{
	"callers", "over", "a second", "lowest … highest", "× gRPC", "p50 µs", "p99 µs", "p99.9 µs", "server µs", "client µs", "ops/message",
}

// cells returns the cells of a row.
func (r *Row) cells() []string {
	fixed := func(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }
	return []string{
		compare.Thousands(float64(r.Callers)), r.name(), compare.Thousands(r.Rate),
		compare.Thousands(r.Lowest) + " … " + compare.Thousands(r.Highest), fixed(r.Times, 2),
		compare.Thousands(r.P50), compare.Thousands(r.P99), compare.Thousands(r.P999),
		fixed(r.ServerCPU, 1), fixed(r.ClientCPU, 1), fixed(r.PerMessage, 1),
	}
}

// WriteText writes the table for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(t, "%s\n\n%s\n", r.title(), strings.Join(heads, "\t")) // Flush tells the error
	for i := range r.Rows {
		_, _ = fmt.Fprintln(t, strings.Join(r.Rows[i].cells(), "\t"))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// WriteMarkdown writes the table for a page.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString(r.title() + "\n\n| " + strings.Join(heads, " | ") + " |\n|--:|---|" + strings.Repeat("--:|", len(heads)-2) + "\n")
	for i := range r.Rows {
		b.WriteString("| " + strings.Join(r.Rows[i].cells(), " | ") + " |\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}
