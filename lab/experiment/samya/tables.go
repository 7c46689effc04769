package samya

import (
	"strconv"

	"github.com/samya-db/samya/lab/experiment"
)

// column is a column of a CSV file: a figure of a run.
type column struct {
	head   string
	digits int
	of     figure
}

// columns are the columns of every file of runs.
var columns = []column{
	{"tps", 3, (*outcome).rate},
	{"requests", 0, func(o *outcome) float64 { return float64(o.requests) }},
	{"granted", 0, func(o *outcome) float64 { return float64(o.granted) }},
	{"released", 0, func(o *outcome) float64 { return float64(o.releases) }},
	{"read", 0, func(o *outcome) float64 { return float64(o.reads) }},
	{"refused", 0, func(o *outcome) float64 { return float64(o.refused) }},
	{"oracle_refused", 0, func(o *outcome) float64 { return float64(o.oracleRefused) }},
	{"refused_while_free", 0, func(o *outcome) float64 { return float64(o.falsely) }},
	{"beyond_limit", 0, beyondLimit},
	{"granted_beyond_limit", 0, func(o *outcome) float64 { return float64(o.grantedBeyond) }},
	{"timed_out", 0, func(o *outcome) float64 { return float64(o.timedOut) }},
	{"waited_percent", 4, (*outcome).waits},
	{"mean_ms", 3, func(o *outcome) float64 { return o.all.mean }},
	{"p50_ms", 3, func(o *outcome) float64 { return o.all.p50 }},
	{"p90_ms", 3, func(o *outcome) float64 { return o.all.p90 }},
	{"p95_ms", 3, func(o *outcome) float64 { return o.all.p95 }},
	{"p99_ms", 3, func(o *outcome) float64 { return o.all.p99 }},
	{"p999_ms", 3, func(o *outcome) float64 { return o.all.p999 }},
	{"max_ms", 3, func(o *outcome) float64 { return o.all.max }},
	{"refused_p50_ms", 3, func(o *outcome) float64 { return o.refusals.p50 }},
	{"refused_p99_ms", 3, func(o *outcome) float64 { return o.refusals.p99 }},
	{"p99_while_free_ms", 3, func(o *outcome) float64 { return o.plenty.p99 }},
	{"redistributions", 0, (*outcome).redistributions},
	{"messages", 0, func(o *outcome) float64 { return o.messages }},
	{"bytes", 0, func(o *outcome) float64 { return o.bytes }},
}

// key is a column that distinguishes runs.
type key struct {
	head string
	of   func(play) string
}

var (
	byWorkload = key{"workload", func(p play) string { return p.workload }}
	bySystem   = key{"system", func(p play) string { return p.system }}
	byLimit    = key{"limit", func(p play) string { return strconv.Itoa(p.limit) }}
	bySites    = key{"sites", func(p play) string { return strconv.Itoa(p.sites) }}
	byClients  = key{"clients_a_region", func(p play) string { return strconv.Itoa(p.clients) }}
	byReads    = key{"read_percent", func(p play) string { return strconv.Itoa(p.reads) }}
	byExact    = key{"exact", func(p play) string { return strconv.FormatBool(p.exact) }}
	byStretch  = key{"bin_s", func(p play) string { return strconv.Itoa(binSeconds * max(p.stretch, 1)) }}
)

// table has a row for each run and seed.
func (r *runs) table(plays []play, keys ...key) experiment.Table {
	t := experiment.Table{}
	for _, k := range keys {
		t.Heads = append(t.Heads, k.head)
	}
	t.Heads = append(t.Heads, "seed")
	for _, c := range columns {
		t.Heads = append(t.Heads, c.head)
	}
	for _, p := range plays {
		for _, seed := range r.seedsOf(p) {
			o := r.at(p, seed)
			var row []string
			for _, k := range keys {
				row = append(row, k.of(p))
			}
			row = append(row, strconv.FormatUint(seed, 10))
			for _, c := range columns {
				row = append(row, decimal(c.of(o), c.digits))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// minuteTable has a row for each minute, and a column for each run with its median
// over the seeds.
func (r *runs) minuteTable(name string, plays []play, head func(play) string, f func(*outcome) []float64) experiment.Table {
	t := experiment.Table{Name: name, Heads: []string{"minute"}}
	for _, p := range plays {
		t.Heads = append(t.Heads, head(p))
		for m, v := range r.perMinute(p, f) {
			if m == len(t.Rows) {
				t.Rows = append(t.Rows, []string{strconv.Itoa(m + 1)})
			}
			t.Rows[m] = append(t.Rows[m], decimal(v, 1))
		}
	}
	return t
}

// decimal formats a number with at most `digits` digits after the point.
func decimal(v float64, digits int) string {
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if digits == 0 {
		return s
	}
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	if s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}
