package hierarchy

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
	"github.com/samya-db/samya/site/partitions"
)

// cell is a setup and its measurements.
type cell struct {
	setup
	Settling
	subject subject
	runs    []Run // by round
	end     partitions.Stats
}

// measured is all measurements.
type measured struct {
	Options
	cells []*cell
}

// Line is the result of a setup: medians over the rounds.
type Line struct {
	setup
	Run
	Settling Settling `json:"settling"`
	// OverHash is the median over the rounds of its rate over the rate of hash
	// placement with the same load and way; nil if hash placement was not measured.
	OverHash *float64 `json:"over_hash,omitempty"`
	// Computed, Applied and Skipped count maps since the start, Moved counts
	// entities.
	Computed int64 `json:"computed"`
	Applied  int64 `json:"applied"`
	Skipped  int64 `json:"skipped"`
	Moved    int64 `json:"moved"`
	// PauseP50, PauseP99 and PauseMax are the times that requests stood still for a
	// map, in microseconds.
	PauseP50 float64  `json:"pause_p50_us"`
	PauseP99 float64  `json:"pause_p99_us"`
	PauseMax float64  `json:"pause_max_us"`
	Split    []string `json:"split,omitempty"`
}

// Report is the result of the experiment.
type Report struct {
	*experiment.Result
	Setups []Line `json:"setups"`
}

// Name begins the names of the files.
const Name = "hierarchy"

// The bounds of the goals.
const (
	mostCross    = 5.0 // % of requests of a leaf, its team and organisation
	overHash     = 1.2
	overWithRoot = .8
)

func (m *measured) report() *Report {
	r := &Report{Result: &experiment.Result{
		Name: Name, Title: "partitions under the requests of a hierarchy", Setup: m.setupText(), Goals: m.goals(),
		Tables: []experiment.Table{m.table(), m.runTable()}, Figures: m.figures(), Notes: m.notes(),
		Quick: m.Quick,
	}}
	for _, c := range m.cells {
		r.Setups = append(r.Setups, m.line(c))
	}
	return r
}

func (m *measured) setupText() string {
	return fmt.Sprintf("%d organisations of %d teams of %d leaves at one site, in %d partitions; acquires of one token of a leaf, drawn at random, "+
		"and their releases, each under an id of its own and charging leaf, team and organisation, by %d generators with %d requests under way; "+
		"medians of %d alternated rounds of %v, ratios within a round.",
		m.Orgs, m.Teams, m.Leaves, m.Partitions, m.Generators, m.Window, m.Rounds, m.Time)
}

// find returns the cell of a setup, or nil for a setup not measured.
func (m *measured) find(su setup) *cell {
	for _, c := range m.cells {
		if c.setup == su {
			return c
		}
	}
	return nil
}

// of returns the median of a figure over the rounds of a cell; NaN for no rounds.
func (c *cell) of(figure func(*Run) float64) float64 {
	if c == nil {
		return math.NaN()
	}
	var all []float64
	for i := range c.runs {
		all = append(all, figure(&c.runs[i]))
	}
	return median(all)
}

// over returns the median over the rounds of the ratio of two rates; NaN for no
// rounds.
func (c *cell) over(d *cell) float64 {
	if c == nil || d == nil {
		return math.NaN()
	}
	var all []float64
	for i := range min(len(c.runs), len(d.runs)) {
		all = append(all, c.runs[i].Rate/d.runs[i].Rate)
	}
	return median(all)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func rate(r *Run) float64  { return r.Rate }
func cross(r *Run) float64 { return 100 * r.Cross }

// goals judges the measurements in memory.
func (m *measured) goals() []experiment.Goal {
	var all []experiment.Goal
	add := func(g experiment.Goal, of ...*cell) {
		for _, c := range of {
			// A setup that did not settle has no learnt map to judge.
			if c == nil || !c.Settled {
				g = experiment.Unmeasured(g)
			}
		}
		if math.IsNaN(g.Got) {
			g = experiment.Unmeasured(g)
		}
		all = append(all, g)
	}
	for _, way := range []Way{Workers, Callers} {
		c := m.find(of(way, Learnt, NoRoot, false))
		add(experiment.Below(fmt.Sprintf("%s: requests across partitions after repartitioning", way), c.of(cross), mostCross, "%"), c)
	}
	hash, flat := m.find(of(Workers, Hash, NoRoot, false)), m.find(of(Workers, Learnt, NoRoot, false))
	add(experiment.AtLeast("workers: throughput, learnt over hash placement", flat.over(hash), overHash, "×"), hash, flat)
	for _, way := range []Way{Workers, Callers} {
		root, none := m.find(of(way, Learnt, SplitRoot, false)), m.find(of(way, Learnt, NoRoot, false))
		add(experiment.AtLeast(fmt.Sprintf("%s: throughput with a root that was split over none", way), root.over(none), overWithRoot, "×"), root, none)
	}
	return all
}

// line returns the result of a cell.
func (m *measured) line(c *cell) Line {
	k, p := &c.end.Control, &c.end.Pause
	l := Line{
		setup: c.setup, Settling: c.Settling,
		Computed: k.Computed, Applied: k.Applied, Skipped: k.Skipped, Moved: k.Moved,
		PauseP50: micros(p.P50), PauseP99: micros(p.P99), PauseMax: micros(p.Max),
		Run: Run{
			Rate: c.of(rate), Cross: c.of(cross) / 100,
			Cores:     c.of(func(r *Run) float64 { return r.Cores }),
			CPU:       c.of(func(r *Run) float64 { return r.CPU }),
			Passed:    c.of(func(r *Run) float64 { return r.Passed }),
			Imbalance: c.of(func(r *Run) float64 { return r.Imbalance }),
		},
	}
	above := c.Above
	if above == SplitRoot {
		above = WholeRoot
	}
	if over := c.over(m.find(of(c.Way, Hash, above, c.Zipf))); !math.IsNaN(over) {
		l.OverHash = &over
	}
	for _, s := range c.end.Split {
		l.Split = append(l.Split, s.Name)
	}
	return l
}

// table has a row for each setup.
func (m *measured) table() experiment.Table {
	t := experiment.Table{Heads: []string{
		"way", "placement", "root", "zipf", "requests_per_second", "over_hash", "cross_share", "cross_share_before", "imbalance", "passed_share",
		"cores", "cpu_us_per_request", "settled", "settle_s", "computed", "applied", "skipped", "moved",
		"pause_p50_us", "pause_p99_us", "pause_max_us", "split",
	}}
	for _, c := range m.cells {
		l := m.line(c)
		over := ""
		if l.OverHash != nil {
			over = decimal(*l.OverHash)
		}
		t.Rows = append(t.Rows, []string{
			string(l.Way), string(l.Placement), string(l.Above), strconv.FormatBool(l.Zipf), decimal(l.Rate), over, decimal(l.Cross),
			decimal(l.Settling.First), decimal(l.Imbalance), decimal(l.Passed), decimal(l.Cores), decimal(l.CPU),
			strconv.FormatBool(l.Settling.Settled), decimal(l.Settling.Seconds),
			whole(l.Computed), whole(l.Applied), whole(l.Skipped), whole(l.Moved),
			decimal(l.PauseP50), decimal(l.PauseP99), decimal(l.PauseMax), strconv.Itoa(len(l.Split)),
		})
	}
	return t
}

// runTable has a row for each setup and round.
func (m *measured) runTable() experiment.Table {
	t := experiment.Table{Name: "rounds", Heads: []string{
		"way", "placement", "root", "zipf", "round", "requests_per_second", "cross_share", "imbalance", "passed_share", "cores", "cpu_us_per_request",
	}}
	for _, c := range m.cells {
		for i := range c.runs {
			r := &c.runs[i]
			t.Rows = append(t.Rows, []string{
				string(c.Way), string(c.Placement), string(c.Above), strconv.FormatBool(c.Zipf), strconv.Itoa(i + 1),
				decimal(r.Rate), decimal(r.Cross), decimal(r.Imbalance), decimal(r.Passed), decimal(r.Cores), decimal(r.CPU),
			})
		}
	}
	return t
}

// figures draws rates and shares across partitions by setup.
func (m *measured) figures() []experiment.Figure {
	var groups []string
	var ways []Way
	for _, c := range m.cells {
		if !slices.Contains(groups, c.load()) {
			groups = append(groups, c.load())
		}
		if !slices.Contains(ways, c.Way) {
			ways = append(ways, c.Way)
		}
	}
	panel := func(title string, y plot.Axis, figure func(*Run) float64) *plot.Bars {
		b := &plot.Bars{Title: title, X: "placement and load", Y: y, Groups: groups}
		for _, way := range ways {
			s := plot.BarSeries{Name: string(way)}
			for _, load := range groups {
				v := math.NaN()
				for _, c := range m.cells {
					if c.Way == way && c.load() == load {
						v = c.of(figure)
					}
				}
				s.Values = append(s.Values, v)
			}
			b.Series = append(b.Series, s)
		}
		return b
	}
	return []experiment.Figure{{
		Caption: "Throughput and requests across partitions, by placement, load and who runs the requests.",
		Figure: &plot.Figure{
			Width: 900,
			Panels: []plot.Panel{
				panel("Throughput", plot.Axis{Label: "throughput", Unit: "1000 requests/s", Zero: true}, func(r *Run) float64 { return r.Rate / 1000 }),
				panel("Requests across partitions", plot.Axis{Label: "across", Unit: "%", Zero: true}, cross),
			},
		},
	}}
}

// notes names the setups that did not settle, and the limits of the rates.
func (m *measured) notes() []string {
	all := []string{"Workers and callers are in memory: what is drained every millisecond is not stored. What makes the load shares the cores."}
	for _, c := range m.cells {
		if !c.Settled {
			all = append(all, fmt.Sprintf("%v: did not settle within %v.", c.setup, m.Settle))
		}
	}
	return all
}

// WriteText writes a line for each setup to a terminal.
func (r *Report) WriteText(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "WAY\tPLACEMENT\tROOT\tLOAD\tREQUESTS/S\t/ HASH\tACROSS\tBEFORE\tIMBALANCE\tPASSED\tCORES\tMAPS\tAPPLIED\tSKIPPED\tPAUSE P50\tP99\tMAX\tSPLIT\t") // into memory
	for i := range r.Setups {
		l := &r.Setups[i]
		load, over := "uniform", "–"
		if l.Zipf {
			load = "Zipf"
		}
		if l.OverHash != nil {
			over = fmt.Sprintf("%.2f", *l.OverHash)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.0f\t%s\t%.1f %%\t%.1f %%\t%.2f\t%.2f %%\t%.2f\t%d\t%d\t%d\t%.0f µs\t%.0f µs\t%.0f µs\t%d\t\n",
			l.Way, l.Placement, l.Above, load, l.Rate, over, 100*l.Cross, 100*l.Settling.First, l.Imbalance, 100*l.Passed, l.Cores,
			l.Computed, l.Applied, l.Skipped, l.PauseP50, l.PauseP99, l.PauseMax, len(l.Split)) // into memory
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the setups: %w", err)
	}
	_, _ = fmt.Fprintln(to)
	return experiment.WriteText(to, []*experiment.Result{r.Result})
}

// number formats a number for people, decimal for a file. NaN gives no digits.
func number(v float64) string { return plot.Number(v) }

func decimal(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
