package samya

import (
	"math"
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// costStudy measures the cost of a redistribution.
var costStudy = study{
	name:  "cost",
	short: "Messages and bytes of a redistribution, by variant",
	long: `Counts what sites send each other in the hour, for each redistribution: begun, and by
the variant that moves the tokens. Gossip, which tells once a second what each has, is
left out.`,
	span:   time.Hour,
	plays:  func(s *setting) []play { return across(play{span: s.span}, costSystems, latencyWorkloads) },
	result: costResult,
}

var costSystems = []string{transfers, majority, star, auto, paperMajority, paperStar, escrowHalf, escrowExact}

// perRedistribution returns a figure divided by the number of redistributions
// begun.
func perRedistribution(f figure) figure {
	return func(o *outcome) float64 { return ratio(f(o), o.redistributions()) }
}

func costResult(r *runs) *experiment.Result {
	plays := across(play{span: r.span}, costSystems, latencyWorkloads)
	messages := perRedistribution(func(o *outcome) float64 { return o.messages })
	bytes := perRedistribution(func(o *outcome) float64 { return o.bytes })
	res := &experiment.Result{
		Setup:  "Five regions, limit 5,000, open load; bytes of encoded messages.",
		Tables: []experiment.Table{costTable(r, plays, messages, bytes)},
	}
	var panels []plot.Panel
	for _, c := range []struct {
		name string
		axis plot.Axis
		f    figure
	}{
		{"Messages of a redistribution", plot.Axis{Label: "messages"}, messages},
		{"Bytes of a redistribution", plot.Axis{Label: "size", Unit: "bytes"}, bytes},
	} {
		b := &plot.Bars{Title: c.name, X: "system", Y: c.axis, Groups: costSystems}
		for _, w := range latencyWorkloads {
			s := plot.BarSeries{Name: w}
			for _, system := range costSystems {
				s.Values = append(s.Values, r.median(r.on(system, w), c.f))
			}
			b.Series = append(b.Series, s)
		}
		panels = append(panels, b)
	}
	f := picture("", "Messages and bytes between sites for each redistribution begun, medians over the seeds.", panels...)
	f.Width, f.Height = 860, 340
	res.Figures = []experiment.Figure{f}
	for _, s := range costSystems {
		res.Compared = append(
			res.Compared,
			experiment.Comparison{What: "fit: messages a redistribution, " + title(s), Ours: r.median(r.on(s, fit), messages), Why: "Not in the paper."},
			experiment.Comparison{What: "fit: bytes a redistribution, " + title(s), Unit: "bytes", Ours: r.median(r.on(s, fit), bytes), Why: "As above."},
		)
	}
	res.Compared = finite(res.Compared)
	return res
}

func costTable(r *runs, plays []play, messages, bytes figure) experiment.Table {
	t := r.table(plays, byWorkload, bySystem)
	t.Heads = append(t.Heads, "messages_each", "bytes_each")
	row := 0
	for _, p := range plays {
		for _, seed := range r.seedsOf(p) {
			o := r.at(p, seed)
			t.Rows[row] = append(t.Rows[row], decimal(messages(o), 2), decimal(bytes(o), 0))
			row++
		}
	}
	return t
}

// finite leaves out comparisons without a number: no redistribution was begun.
func finite(all []experiment.Comparison) []experiment.Comparison {
	kept := all[:0]
	for _, c := range all {
		if !math.IsNaN(c.Ours) && !math.IsInf(c.Ours, 0) {
			kept = append(kept, c)
		}
	}
	return kept
}
