package cutcheck

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// The bounds.
const (
	// mostCut bounds the cut, as a multiple of gpmetis's cut. slackCut allows more,
	// as a share of all edges.
	mostCut, slackCut = 1.10, .002
	// mostBalance bounds the weight of the heaviest part, as a multiple of the mean: the
	// default of cut.Options.Stretch.
	mostBalance = 1.05
	// wholeCut and wholeBalance bound the tree in 16 parts. Its 100 organisations do
	// not divide evenly: whole organisations make a part of 7/6.25 of the mean.
	wholeCut, wholeBalance = .01, 1.10
	// mostTime bounds the processor time, as a multiple of gpmetis's.
	mostTime = 3.0
	// mostEffort bounds the median of small graphs. gpmetis reports milliseconds, and takes
	// few: the bound leaves room for that.
	mostEffort = 3.5
	// looseCut replaces slackCut if gpmetis itself keeps no balance.
	looseCut = .01
	// mostMoved bounds the vertices that a warm start moves, as a share of the
	// vertices that a cold start moves. mostWarmCut bounds its cut, as a multiple of
	// the cold cut, and slackCut allows more.
	mostMoved, mostWarmCut = .20, 1.05
	// mostLeast replaces mostMoved if at least mostMoved has to leave overweight
	// parts. It is a multiple of the least number of moves: the heaviest vertices
	// are rarely at a border.
	mostLeast = 2.5
	// hardMoved replaces mostMoved for isHard.
	hardMoved = .75
	// leastKept is the share of all warm starts that must keep to mostMoved and
	// mostWarmCut without any other allowance.
	leastKept = .80
	// warmVertices is the least size of a graph held to these bounds. On smaller
	// graphs luck decides; they count in the sums alone.
	warmVertices = 10_000
	// manyStarts is the least number of starts that leastKept applies to: all
	// families.
	manyStarts = 76
	// manyFamilies is the least number of small graphs whose median effort is bounded:
	// all families with edges.
	manyFamilies = 18
)

// Figures are the figures of a cut.
type Figures struct {
	Score
	// Seconds is processor time; for gpmetis, the partitioning time of its report.
	Seconds float64 `json:"seconds"`
	// Elapsed is wall-clock seconds; for gpmetis, with reading and writing files.
	Elapsed float64 `json:"elapsed_seconds"`
	Hubs    int     `json:"hubs"`
}

// Cut is a graph cut into a number of parts.
type Cut struct {
	Graph
	Parts int     `json:"parts"`
	Ours  Figures `json:"ours"`
	// Metis and Bisect are gpmetis's direct cut and its cut by recursive bisection;
	// nil for a graph without edges, which gpmetis refuses.
	Metis  *Figures `json:"gpmetis"`
	Bisect *Figures `json:"gpmetis_rb"`
	// Broken are the broken bounds.
	Broken []string `json:"broken"`

	bestBalance float64
}

// Warm is a graph after a change of its load.
type Warm struct {
	Graph
	Parts  int    `json:"parts"`
	Change Change `json:"change"`
	// Before is the balance without any move.
	Before    float64 `json:"before"`
	Cold      Figures `json:"cold"`
	Warm      Figures `json:"warm"`
	ColdMoved int     `json:"cold_moved"`
	// Least is the least number of vertices that have to leave overweight parts.
	Least     int `json:"least_moved"`
	WarmMoved int `json:"warm_moved"`
	// Kept reports whether the warm start moves less than a fifth of the cold
	// start's vertices, and cuts at most 1.05 times as much.
	Kept   bool     `json:"kept"`
	Broken []string `json:"broken"`

	bestBalance float64
}

// Time is the time to cut a graph: medians of processor time, in seconds.
type Time struct {
	Graph
	Parts int     `json:"parts"`
	Runs  int     `json:"runs"`
	Ours  float64 `json:"ours"`
	Metis float64 `json:"gpmetis"`
	// OursCut and MetisCut are the cuts.
	OursCut  int64    `json:"ours_cut"`
	MetisCut int64    `json:"gpmetis_cut"`
	Broken   []string `json:"broken"`
}

// Report is the result of a run.
type Report struct {
	Cuts  []Cut  `json:"cuts"`
	Warm  []Warm `json:"warm"`
	Sums  []Sum  `json:"warm_sums"`
	Times []Time `json:"times"`
	// Small are times of small graphs. They are not bounded one by one, but in Effort.
	Small  []Time  `json:"small"`
	Effort *Effort `json:"effort"`
}

// isTree reports whether a family consists of trees.
func isTree(family string) bool { return len(family) >= 4 && family[:4] == "tree" }

// isWhole reports whether wholeCut and wholeBalance apply.
func isWhole(family string, parts int) bool { return family == "tree" && parts == 16 }

// judge fills in Broken; all is the weight of all edges.
func (c *Cut) judge(all int64) {
	whole := isWhole(c.Family, c.Parts)
	balance := max(mostBalance, c.bestBalance)
	if whole {
		balance = max(wholeBalance, c.bestBalance)
	}
	if c.Ours.Balance > balance {
		c.Broken = append(c.Broken, fmt.Sprintf("balance %.3f > %.3f", c.Ours.Balance, balance))
	}
	switch {
	case whole:
		if c.Ours.Share > wholeCut {
			c.Broken = append(c.Broken, fmt.Sprintf("cut %.2f %% > %.0f %%", 100*c.Ours.Share, 100*wholeCut))
		}
	case c.Metis != nil:
		slack := slackCut
		if c.Metis.Balance > mostBalance {
			slack = looseCut
		}
		most := max(mostCut*float64(c.Metis.Cut), float64(c.Metis.Cut)+slack*float64(all))
		if float64(c.Ours.Cut) > most {
			c.Broken = append(c.Broken, fmt.Sprintf("cut %d > %.0f", c.Ours.Cut, most))
		}
	}
}

func (w *Warm) judge(all int64) {
	balance := max(mostBalance, w.bestBalance, w.Cold.Balance)
	if isWhole(w.Family, w.Parts) {
		balance = max(balance, wholeBalance)
	}
	if w.Warm.Balance > balance {
		w.Broken = append(w.Broken, fmt.Sprintf("balance %.3f > %.3f", w.Warm.Balance, balance))
	}
	w.Kept = float64(w.Warm.Cut) <= mostWarmCut*float64(w.Cold.Cut) && w.fewMoved(mostMoved)
	if w.Vertices < warmVertices {
		return
	}
	most := max(mostWarmCut*float64(w.Cold.Cut), float64(w.Cold.Cut)+slackCut*float64(all))
	if float64(w.Warm.Cut) > most {
		w.Broken = append(w.Broken, fmt.Sprintf("cut %d > %.0f", w.Warm.Cut, most))
	}
	share := mostMoved
	if isHard(w.Family, w.Parts) {
		share = hardMoved
	}
	few := share * float64(w.ColdMoved)
	switch {
	case w.fewMoved(share):
	case float64(w.Least) < few:
		w.Broken = append(w.Broken, fmt.Sprintf("moved %d, not less than %.0f", w.WarmMoved, few))
	case float64(w.WarmMoved) > mostLeast*float64(w.Least):
		w.Broken = append(w.Broken, fmt.Sprintf("moved %d > %.0f", w.WarmMoved, mostLeast*float64(w.Least)))
	}
}

// fewMoved reports whether a warm start moves nothing, or less than a share of the
// vertices that the cold start moves.
func (w *Warm) fewMoved(share float64) bool {
	return w.WarmMoved == 0 || float64(w.WarmMoved) < share*float64(w.ColdMoved)
}

// isHard reports whether warm starts are known to move more than a fifth of the
// vertices that cold starts move. No proof says that they must. The first case is
// scans of a few keys that tie nearly all of a graph together. The second is a ring
// in 4 parts: a cold start finds nearly the same parts again.
func isHard(family string, parts int) bool {
	return family == "coaccess" && parts == 16 || family == "ring" && parts == 4
}

// Sum sums up all warm starts after a change.
type Sum struct {
	Change Change `json:"change"`
	Starts int    `json:"starts"`
	// ColdShare and WarmShare are mean shares of cut edges. ColdMoved and WarmMoved
	// are mean shares of moved vertices.
	ColdShare float64 `json:"cold_cut_share"`
	WarmShare float64 `json:"warm_cut_share"`
	ColdMoved float64 `json:"cold_moved_share"`
	WarmMoved float64 `json:"warm_moved_share"`
	// Kept is the number of starts that keep to both bounds.
	Kept   int      `json:"kept"`
	Broken []string `json:"broken"`
}

// sums returns the sum of each change that was made.
func (r *Report) sums() []Sum {
	var sums []Sum
	for _, change := range Changes() {
		s := Sum{Change: change}
		for i := range r.Warm {
			w := &r.Warm[i]
			if w.Change != change {
				continue
			}
			s.Starts++
			if w.Kept {
				s.Kept++
			}
			s.ColdShare += w.Cold.Share
			s.WarmShare += w.Warm.Share
			s.ColdMoved += float64(w.ColdMoved) / float64(w.Vertices)
			s.WarmMoved += float64(w.WarmMoved) / float64(w.Vertices)
		}
		if s.Starts == 0 {
			continue
		}
		for _, mean := range []*float64{&s.ColdShare, &s.WarmShare, &s.ColdMoved, &s.WarmMoved} {
			*mean /= float64(s.Starts)
		}
		if most := max(mostWarmCut*s.ColdShare, s.ColdShare+slackCut); s.WarmShare > most {
			s.Broken = append(s.Broken, fmt.Sprintf("cut %.4f > %.4f", s.WarmShare, most))
		}
		if most := mostMoved * s.ColdMoved; s.WarmMoved > most {
			s.Broken = append(s.Broken, fmt.Sprintf("moved %.4f > %.4f", s.WarmMoved, most))
		}
		if least := leastKept * float64(s.Starts); s.Starts >= manyStarts && float64(s.Kept) < least {
			s.Broken = append(s.Broken, fmt.Sprintf("kept %d < %.0f", s.Kept, least))
		}
		sums = append(sums, s)
	}
	return sums
}

func (t *Time) judge() {
	if t.Ours > mostTime*t.Metis {
		t.Broken = append(t.Broken, fmt.Sprintf("time %.3f > %.3f", t.Ours, mostTime*t.Metis))
	}
}

// Broken returns the number of broken bounds.
func (r *Report) Broken() int {
	n := 0
	for i := range r.Cuts {
		n += len(r.Cuts[i].Broken)
	}
	for i := range r.Warm {
		n += len(r.Warm[i].Broken)
	}
	for i := range r.Times {
		n += len(r.Times[i].Broken)
	}
	for i := range r.Sums {
		n += len(r.Sums[i].Broken)
	}
	if r.Effort != nil {
		n += len(r.Effort.Broken)
	}
	return n
}

// Print writes the report as tables.
func (r *Report) Print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) } // Flush returns the error
	line("graph\tseed\tparts\tcut\tgpmetis\tbisecting\tbalance\tgpmetis\tbisecting\tCPU s\tgpmetis\thubs\t\t\n")
	for i := range r.Cuts {
		c := &r.Cuts[i]
		line("%s\t%d\t%d\t%s\t%s\t%s\t%.3f\t%s\t%s\t%.3f\t%s\t%d\t%s\t\n", c.Family, c.Seed, c.Parts,
			percent(c.Ours.Share), c.Metis.share(), c.Bisect.share(),
			c.Ours.Balance, c.Metis.balance(), c.Bisect.balance(), c.Ours.Seconds, c.Metis.cpu(), c.Ours.Hubs, verdict(c.Broken))
	}
	line("\n")
	line("load changed\tchange\tseed\tparts\tcold cut\twarm cut\tbalance before\tcold\twarm\tcold moves\twarm moves\tleast\tkept\tcold s\twarm s\t\t\n")
	for i := range r.Warm {
		c := &r.Warm[i]
		line("%s\t%s\t%d\t%d\t%s\t%s\t%.3f\t%.3f\t%.3f\t%d\t%d\t%d\t%t\t%.3f\t%.3f\t%s\t\n", c.Family, c.Change, c.Seed, c.Parts,
			percent(c.Cold.Share), percent(c.Warm.Share), c.Before, c.Cold.Balance, c.Warm.Balance,
			c.ColdMoved, c.WarmMoved, c.Least, c.Kept, c.Cold.Seconds, c.Warm.Seconds, verdict(c.Broken))
	}
	line("\n")
	line("all of them\tchange\tstarts\tkept\tcold cut\twarm cut\tcold moves\twarm moves\t\t\n")
	for _, c := range r.Sums {
		line("mean\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t\n", c.Change, c.Starts, c.Kept,
			percent(c.ColdShare), percent(c.WarmShare), percent(c.ColdMoved), percent(c.WarmMoved), verdict(c.Broken))
	}
	for _, times := range [][]Time{r.Times, r.Small} {
		if len(times) > 0 {
			line("\n")
			line("time\tvertices\tedges\tparts\truns\tCPU s\tgpmetis\tratio\tcut ratio\t\t\n")
		}
		for i := range times {
			t := &times[i]
			line("%s\t%d\t%d\t%d\t%d\t%.3f\t%.3f\t%.2f\t%.3f\t%s\t\n", t.Family, t.Vertices, t.Edges, t.Parts, t.Runs,
				t.Ours, t.Metis, t.ratio(), t.cutRatio(), verdict(t.Broken))
		}
	}
	if e := r.Effort; e != nil {
		line("median\t\t\t\t\t\t\t%.2f\t%.3f\t%s\t\n", e.Time, e.Cut, verdict(e.Broken))
	}
	line("\n%d bounds do not hold\n", r.Broken())
	return w.Flush()
}

func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

func (f *Figures) share() string {
	if f == nil {
		return "-"
	}
	return percent(f.Share)
}

func (f *Figures) balance() string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", f.Balance)
}

func (f *Figures) cpu() string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", f.Seconds)
}

func verdict(broken []string) string {
	if len(broken) == 0 {
		return "ok"
	}
	return fmt.Sprint(broken)
}
