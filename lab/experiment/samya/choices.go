package samya

import (
	"fmt"
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
	"github.com/samya-db/samya/redistribute"
)

// offersStudy compares offers: the tokens that a site sets aside for an instance.
var offersStudy = study{
	name:  "offers",
	short: "What a site sets aside for a redistribution: all that it has, or what it can spare",
	long: `Plays the hour to samya with sites that set all of their escrow aside for an instance,
as in the paper, and with sites that keep what they expect to need.`,
	span:   time.Hour,
	plays:  func(s *setting) []play { return across(play{span: s.span}, offerSystems(), latencyWorkloads) },
	result: offersResult,
}

// variants are the systems of samya, by the way in which tokens move.
var variants = []string{transfers, majority, star}

func offerSystems() []string {
	var all []string
	for _, s := range variants {
		all = append(all, s, with(s, offerAll))
	}
	return all
}

func offersResult(r *runs) *experiment.Result {
	plays := across(play{span: r.span}, offerSystems(), latencyWorkloads)
	res := &experiment.Result{
		Setup:   "Five regions, limit 5,000, open load; a site offers only spare tokens, unless its system says all.",
		Tables:  []experiment.Table{r.table(plays, byWorkload, bySystem)},
		Figures: []experiment.Figure{choiceFigure(r, "Offers", offerSystems(), latencyWorkloads)},
	}
	for _, w := range latencyWorkloads {
		for _, s := range variants {
			res.Compared = append(res.Compared, experiment.Comparison{
				What: fmt.Sprintf("%s: acquires that wait, offering all over offering spare tokens, %s", w, title(s)), Unit: "×",
				Ours: median(r.by(func(of func(play) *outcome) float64 {
					return share(of(r.on(with(s, offerAll), w)).waits(), of(r.on(s, w)).waits())
				})), Why: "The paper offers all.",
			})
		}
	}
	res.Compared = finite(res.Compared)
	return res
}

// policiesStudy compares reallocation policies.
var policiesStudy = study{
	name:   "policies",
	short:  "How a redistribution shares tokens out: all reallocation policies",
	long:   `Plays the hour to each variant of samya under each reallocation policy.`,
	span:   time.Hour,
	plays:  func(s *setting) []play { return across(play{span: s.span}, policySystems(), constraintWorkloads) },
	result: policiesResult,
}

// policySystems returns the variants under each policy. A variant under the default
// policy keeps its own name.
func policySystems() []string {
	var all []string
	for _, s := range variants {
		for _, p := range redistribute.Names() {
			all = append(all, granting(s, p))
		}
	}
	return all
}

// granting returns a variant under a reallocation policy.
func granting(system, policy string) string {
	if policy == redistribute.EqualRisk {
		return system
	}
	return with(system, reallocation+policy)
}

func policiesResult(r *runs) *experiment.Result {
	plays := across(play{span: r.span}, policySystems(), constraintWorkloads)
	res := &experiment.Result{
		Setup:   "Five regions, limit 5,000, open load; " + redistribute.EqualRisk + " is the policy unless another is named.",
		Tables:  []experiment.Table{r.table(plays, byWorkload, bySystem)},
		Figures: []experiment.Figure{choiceFigure(r, "Reallocation policies", policySystems(), constraintWorkloads)},
		Notes:   []string{"With direct transfers a policy shares out only tokens that instances move, and instances are few then."},
	}
	for _, w := range constraintWorkloads {
		for _, s := range variants {
			for _, p := range redistribute.Names() {
				res.Compared = append(res.Compared, experiment.Comparison{
					What: fmt.Sprintf("%s: acquires that wait, %s, %s", w, title(s), p), Unit: "%", Ours: r.median(r.on(granting(s, p), w), (*outcome).waits), Why: whyPolicy(p),
				})
			}
		}
	}
	return res
}

func whyPolicy(policy string) string {
	if policy == redistribute.Paper {
		return "The paper's; not compared there."
	}
	return "Not in the paper."
}

// choiceFigure has a panel of waits and a panel of redistributions for some
// systems.
func choiceFigure(r *runs, what string, systems, workloads []string) experiment.Figure {
	panel := func(name string, y plot.Axis, f figure) *plot.Bars {
		b := &plot.Bars{Title: name, X: "system", Y: y, Groups: systems}
		for _, w := range workloads {
			s := plot.BarSeries{Name: w}
			for _, system := range systems {
				s.Values = append(s.Values, r.median(r.on(system, w), f))
			}
			b.Series = append(b.Series, s)
		}
		return b
	}
	f := picture(
		"", what+": acquires that wait, and redistributions, medians over the seeds.",
		panel("Acquires that wait", plot.Axis{Label: "waited", Unit: "%"}, (*outcome).waits),
		panel("Redistributions", plot.Axis{Label: "redistributions begun"}, (*outcome).redistributions),
	)
	f.Width, f.Height = 860, 340
	return f
}
