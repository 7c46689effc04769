package libra

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/samya-db/samya/kvpart/libra"
	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// result makes the report.
func (m *measured) result() *experiment.Result {
	return &experiment.Result{
		Setup:    m.setup(),
		Goals:    m.goals(),
		Compared: m.compared(),
		Spreads:  m.spreads(),
		Tables:   []experiment.Table{m.runsTable(), m.splitsTable(), m.timeTable(), m.regionsTable()},
		Figures:  m.figures(),
		Notes:    m.notes(),
	}
}

func (m *measured) spreads() []experiment.Table {
	if m.env.Quick {
		return []experiment.Table{m.lineupTable(skewed), m.sizesTable()}
	}
	return []experiment.Table{m.lineupTable(skewed), m.lineupTable(published), m.sizesTable()}
}

func (m *measured) setup() string {
	return fmt.Sprintf("Virtual time, %d nodes, %d seeds from %d; 3,000 ranges of keys in regions of 96 MiB with three replicas; "+
		"measurements every 10 s that err by up to %v %%, and a cost of writes that errs by %v %%; "+
		"policies begin after %d min and are measured in the last %d of %d min.",
		m.nodes, m.seeds, m.env.Seed, 100*m.noise, 100*m.drift, beginMinutes, lastMinutes, beginMinutes+staticMinutes)
}

func (m *measured) notes() []string {
	barred := m.barred()
	return []string{
		"Loads are computed, and requests are not simulated. Rates of saturation are a model: in proportion to 1 over the largest load. Latency is left out.",
		fmt.Sprintf("Skew: the hottest of 3,000 ranges has 33 %% of the requests, as the paper's public code runs its workload (a = 1.418). The published skew (a = 14.18) gives it 78 %%, more than six nodes' worth. "+
			"There regions may change roles with a replica. Where they may not, parts of the hottest region have only six nodes to be on, and Libra without noise ends at %s to %s.",
			ratio(m.least(barred, worse)), ratio(m.worst(barred, worse))),
		"2D-ISO is two schedulers at once that do not know of each other's moves in flight. All policies know the same measurements, and split by load unless stated. A store's splits: at the middle request, above 3,000 requests/s.",
		"A move takes 2 s and the time to copy at 50 MiB/s; a node is the source of a single move at a time, and the destination of a single move. A split needs a sample of 10 s, and its parts a measurement. Up to four pairs of cold regions a minute merge, where hot spots move.",
	}
}

// lineupTable has all policies.
func (m *measured) lineupTable(workload string) experiment.Table {
	name := "Skew as run (a = 1.418)"
	if workload == published {
		name = "Skew as published (a = 14.18), regions may change roles with a replica"
	}
	t := experiment.Table{
		Name:  name + ": Max/Mean at the end, mean of the seeds, least to greatest; and means of moves, copied GiB and splits.",
		Heads: []string{"policy", "CPU", "disk", "moves", "GiB", "splits"},
	}
	for _, p := range lineup() {
		r := m.static(workload, p)
		row := []string{p.Name}
		for _, d := range libra.Dimensions() {
			row = append(row, fmt.Sprintf("%s, %s–%s", ratio(m.mean(r, in(d))), ratio(m.least(r, in(d))), ratio(m.worst(r, in(d)))))
		}
		for _, of := range []func(*outcome) float64{
			func(o *outcome) float64 { return float64(o.Moves) },
			func(o *outcome) float64 { return o.Moved / (1 << 30) },
			splitsOf,
		} {
			row = append(row, plot.Number(math.Round(10*m.mean(r, of))/10))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// sizesTable has numbers of nodes.
func (m *measured) sizesTable() experiment.Table {
	t := experiment.Table{
		Name:  "Figure 19: Max/Mean of the worse dimension at the end by nodes, mean of the seeds, least to greatest.",
		Heads: []string{"nodes", ours.Name, isolated.Name, weighted.Name},
	}
	for _, n := range m.sizes {
		row := []string{strconv.Itoa(n)}
		for _, name := range t.Heads[1:] {
			for _, p := range lineup() {
				if r := m.scale(p, n); p.Name == name {
					row = append(row, fmt.Sprintf("%s, %s–%s", ratio(m.mean(r, worse)), ratio(m.least(r, worse)), ratio(m.worst(r, worse))))
				}
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// runsTable has a row for each run and seed.
func (m *measured) runsTable() experiment.Table {
	t := experiment.Table{Heads: []string{
		"workload", "policy", "weight", "nodes", "lambda", "hot_spot_minutes", "minutes", "noise", "seed",
		"cpu_max_over_mean", "disk_max_over_mean", "over_time", "minutes_to_balance", "moves", "moved_bytes", "splits", "rounds", "merges", "regions",
	}}
	for _, r := range m.cells() {
		for k, o := range m.runs[r] {
			t.Rows = append(t.Rows, []string{
				r.workload, r.policy.Name, decimal(r.policy.Weight), strconv.Itoa(r.nodes), decimal(cmp.Or(r.lambda, libra.DefaultTolerance)),
				strconv.Itoa(r.shift), strconv.Itoa(r.minutes), decimal(r.noise), strconv.FormatUint(m.env.Seed+uint64(k), 10),
				decimal(o.last[libra.CPU]), decimal(o.last[libra.Disk]), decimal(overTime(o)), decimal(o.balanced), strconv.Itoa(o.Moves), decimal(o.Moved),
				strconv.Itoa(o.Splits), strconv.Itoa(o.Rounds), strconv.Itoa(o.Merges), strconv.Itoa(o.Points[len(o.Points)-1].Regions),
			})
		}
	}
	return t
}

// splitsTable has the accuracy of splits.
func (m *measured) splitsTable() experiment.Table {
	t := experiment.Table{Name: "accuracy", Heads: []string{"workload", "share", "dimension", "error_by_load", "error_by_size"}}
	for _, name := range []string{skewed, "E"} {
		for i, a := range m.accuracy[name] {
			for _, d := range libra.Dimensions() {
				t.Rows = append(t.Rows, []string{name, decimal(shares[i]), d.String(), decimal(a.Load[d]), decimal(a.Size[d])})
			}
		}
	}
	return t
}

// timeTable has the balance over time of Figure 17.
func (m *measured) timeTable() experiment.Table {
	t := experiment.Table{Name: "over-time", Heads: []string{"policy", "seed", "second", "cpu_max_over_mean", "disk_max_over_mean", "cpu_with_moves", "disk_with_moves", "regions"}}
	for _, p := range splitPolicies {
		for k, o := range m.runs[m.split(p)] {
			for i := range o.Points {
				at := &o.Points[i]
				t.Rows = append(t.Rows, []string{
					p.Name, strconv.FormatUint(m.env.Seed+uint64(k), 10), strconv.Itoa(at.Second),
					decimal(at.Served[libra.CPU]), decimal(at.Served[libra.Disk]), decimal(at.Busy[libra.CPU]), decimal(at.Busy[libra.Disk]), strconv.Itoa(at.Regions),
				})
			}
		}
	}
	return t
}

// regionsTable has the regions of Figure 18.
func (m *measured) regionsTable() experiment.Table {
	t := experiment.Table{Name: "rounds", Heads: []string{"hot_spot", "lazy", "not_lazy"}}
	lazy, not := m.ends(m.round(ours), regionsOf), m.ends(m.round(eager), regionsOf)
	for i := range lazy {
		t.Rows = append(t.Rows, []string{strconv.Itoa(i + 1), decimal(lazy[i]), decimal(not[i])})
	}
	return t
}

// ratio formats a ratio for people, decimal a number for a file. NaN gives no digits.
func ratio(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func decimal(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
