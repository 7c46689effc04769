package kvlab

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/samya-db/samya/lab/plot"
)

// Report is the printed result of a run. Times of operations are in µs.
type Report struct {
	Store     string  `json:"store"` // strategy and backend
	Policy    string  `json:"policy"`
	Workload  string  `json:"workload"`
	Clients   int     `json:"clients"`
	ValueSize int     `json:"value_size"`
	Parts     int     `json:"partitions"`
	Preloaded int64   `json:"preloaded"`
	Count     int64   `json:"operations"`
	NotFound  int64   `json:"not_found"`
	Seconds   float64 `json:"seconds"`
	Rate      float64 `json:"operations_per_second"`
	Processor float64 `json:"processor_us"` // an operation, the clients included
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	P999      float64 `json:"p999_us"`
	Multi     float64 `json:"multi_partition_share"`
	LastMulti float64 `json:"multi_partition_share_at_end"` // of the last third of the samples

	Computed    int64    `json:"cuts_computed"`
	Applied     int64    `json:"cuts_applied"`
	Skipped     int64    `json:"cuts_skipped"`
	Moved       int64    `json:"keys_moved"`
	Tracked     int64    `json:"tracked"`
	Dropped     int64    `json:"dropped"`
	Tracking    float64  `json:"tracking_seconds"` // of processor time, as Cutting
	Cutting     float64  `json:"cutting_seconds"`
	Vertices    int      `json:"vertices"`
	Edges       int      `json:"edges"`
	LastCut     float64  `json:"last_cut"`
	LastBalance float64  `json:"last_balance"`
	Hubs        []string `json:"hubs,omitempty"`
	Pauses      int64    `json:"pauses"`
	PauseP99    float64  `json:"pause_p99_us"`
	PauseMax    float64  `json:"pause_max_us"`
	// CPU and Written are the largest processor time, and the most bytes written, of a
	// partition over the mean; 0 if not measured.
	CPU         float64 `json:"cpu_most_over_mean,omitempty"`
	Written     float64 `json:"written_most_over_mean,omitempty"`
	Followed    int64   `json:"values_followed,omitempty"`
	Keys        int     `json:"keys"`
	Generations int     `json:"generations,omitempty"`
	Memory      int64   `json:"memory_bytes"`
	Disk        int64   `json:"disk_bytes"`
}

// Report returns a report of the result. The caller adds the description of the
// run.
func (r *Result) Report() *Report {
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	quantile := func(q float64) float64 { return us(time.Duration(r.Latency.ValueAtQuantile(q))) }
	last := r.Samples[len(r.Samples)-1]
	from := r.Samples[(len(r.Samples)-1)*2/3]
	report := &Report{
		Count: r.Operations, NotFound: r.NotFound, Seconds: r.Elapsed.Seconds(), Rate: r.Rate(), Processor: r.PerOperation(),
		P50: quantile(50), P99: quantile(99), P999: quantile(99.9), Multi: r.MultiShare(),
		LastMulti: float64(last.Multi-from.Multi) / float64(max(last.Ran-from.Ran, 1)),
		Computed:  r.Store.Computed, Applied: r.Store.Applied, Skipped: r.Store.Skipped, Moved: r.Store.Moved,
		Tracked: r.Store.Tracked, Dropped: r.Store.Dropped, Tracking: r.Store.TrackingTime.Seconds(), Cutting: r.Store.CuttingTime.Seconds(),
		Vertices: r.Store.Vertices, Edges: r.Store.Edges, LastCut: r.Store.LastCut, LastBalance: r.Store.LastBalance, Hubs: r.Store.Hubs,
		Pauses: r.Store.Pause.Count, PauseP99: us(r.Store.Pause.P99), PauseMax: us(r.Store.Pause.Max),
		Keys: r.Store.Keys, Generations: r.Store.Generations, Memory: last.Memory, Disk: last.Disk,
		Followed: r.Store.Followed,
	}
	if len(r.Store.CPU) > 0 {
		report.CPU = mostOverMean(r.Store.CPU)
	}
	if len(r.Store.Written) > 1 {
		report.Written = mostOverMean(r.Store.Written)
	}
	return report
}

// WriteText writes the report as text.
func (r *Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(what, format string, args ...any) { _, _ = fmt.Fprintf(t, what+"\t"+format+"\n", args...) } // Flush returns the error
	n := plot.Number
	line("store", "%s, %d partitions, %s, %d keys before, %d after", r.Store, r.Parts, r.Policy, r.Preloaded, r.Keys)
	line("load", "%s, %d clients, values of %d bytes", r.Workload, r.Clients, r.ValueSize)
	line("operations", "%s in %.2f s: %s a second", n(float64(r.Count)), r.Seconds, n(r.Rate))
	if r.NotFound > 0 {
		line("", "%s reads of keys that were not there", n(float64(r.NotFound)))
	}
	line("processor", "%.2f µs an operation, clients included", r.Processor)
	line("latency", "p50 %s µs, p99 %s µs, p99.9 %s µs", n(r.P50), n(r.P99), n(r.P999))
	line("on several partitions", "%.1f %% of requests, %.1f %% in the last third", 100*r.Multi, 100*r.LastMulti)
	line("cuts", "%d computed, %d applied, %d not worth it; %s keys moved", r.Computed, r.Applied, r.Skipped, n(float64(r.Moved)))
	if r.Computed > 0 {
		line("last cut", "%.2f %% of the weight of %s edges between %s keys; heaviest part %.2f of the mean", 100*r.LastCut,
			n(float64(r.Edges)), n(float64(r.Vertices)), r.LastBalance)
	}
	if len(r.Hubs) > 0 {
		line("hubs", "%d keys outweigh a partition: %s", len(r.Hubs), strings.Join(r.Hubs[:min(len(r.Hubs), 5)], ", "))
	}
	if r.CPU > 0 {
		line("loads", "processor of the busiest partition %.2f of the mean, in the whole run", r.CPU)
	}
	if r.Written > 0 {
		line("written", "most bytes of a partition %.2f of the mean; %s values followed their keys", r.Written, n(float64(r.Followed)))
	}
	line("pauses", "%d, p99 %s µs, longest %s µs", r.Pauses, n(r.PauseP99), n(r.PauseMax))
	line("tracking", "%.3f s of processor time: %s requests tracked, %s dropped", r.Tracking, n(float64(r.Tracked)), n(float64(r.Dropped)))
	line("cutting", "%.3f s of processor time; with tracking %.1f %% of a core", r.Cutting, 100*(r.Tracking+r.Cutting)/r.Seconds)
	line("memory", "%s MiB, on disks %s MiB", n(float64(r.Memory>>20)), n(float64(r.Disk>>20)))
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	return nil
}

// WriteCSV writes samples with a heading: times in seconds, memory and disk in bytes.
func WriteCSV(w io.Writer, samples []Sample) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"elapsed", "operations", "memory", "disk", "tracking", "repartitioning", "multi", "applied"}}
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, s := range samples {
		rows = append(rows, []string{
			seconds(s.Elapsed), count(s.Operations), count(s.Memory), count(s.Disk), seconds(s.Tracking), seconds(s.Repartitioning),
			count(s.Multi), count(s.Applied),
		})
	}
	if err := c.WriteAll(rows); err != nil {
		return fmt.Errorf("write samples: %w", err)
	}
	return nil
}

// Figure draws samples over time: throughput, the share on several partitions, the
// time of tracking and cutting, and memory. It needs two samples.
func Figure(title string, samples []Sample) *plot.Figure {
	x := plot.Axis{Label: "time", Unit: "s", Zero: true}
	const mega = 1 << 20
	var rate, multi, tracking, cutting, memory, disk []plot.Point
	var applied []plot.Span
	for i, s := range samples {
		at := s.Elapsed.Seconds()
		memory = append(memory, plot.Point{X: at, Y: float64(s.Memory) / mega})
		disk = append(disk, plot.Point{X: at, Y: float64(s.Disk) / mega})
		if i == 0 {
			continue
		}
		before := samples[i-1]
		took := (s.Elapsed - before.Elapsed).Seconds()
		if took <= 0 {
			continue
		}
		operations := float64(s.Operations - before.Operations)
		rate = append(rate, plot.Point{X: at, Y: operations / took / 1e3})
		multi = append(multi, plot.Point{X: at, Y: 100 * float64(s.Multi-before.Multi) / float64(max(s.Ran-before.Ran, 1))})
		tracking = append(tracking, plot.Point{X: at, Y: 100 * (s.Tracking - before.Tracking).Seconds() / took})
		cutting = append(cutting, plot.Point{X: at, Y: 100 * (s.Repartitioning - before.Repartitioning).Seconds() / took})
		if s.Applied > before.Applied {
			applied = append(applied, plot.Span{From: before.Elapsed.Seconds(), To: at})
		}
	}
	return plot.New(
		&plot.Lines{
			Title: title, X: x, Y: plot.Axis{Label: "throughput", Unit: "1,000 operations/s", Zero: true},
			Series: []plot.Series{{Name: "operations", Points: rate}}, Spans: applied, Spanned: "new map",
		},
		&plot.Lines{
			Title: "Requests on several partitions, and what repartitioning takes", X: x, Y: plot.Axis{Label: "share", Unit: "%", Zero: true},
			Series: []plot.Series{
				{Name: "on several partitions", Points: multi}, {Name: "tracking, of a core", Points: tracking}, {Name: "cutting, of a core", Points: cutting},
			},
		},
		&plot.Lines{
			Title: "Memory and disk", X: x, Y: plot.Axis{Label: "size", Unit: "MiB", Zero: true},
			Series: []plot.Series{{Name: "memory", Points: memory}, {Name: "disk", Points: disk}},
		},
	)
}
