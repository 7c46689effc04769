package hierarchy

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/site/core/answer"
)

// small are options of a tree that is learnt in a moment.
func small(t *testing.T) Options {
	t.Helper()
	o := Default()
	o.Orgs, o.Teams, o.Leaves = 8, 3, 4
	o.Rounds, o.Time, o.Warm, o.Settle = 1, 100*time.Millisecond, 0, time.Minute
	o.Dir, o.Now = t.TempDir(), time.Now
	o.Progress = func(what string) { t.Log(what) }
	return o
}

// TestMeasure has a site learn a small tree, with a root that it is to split. The share
// across partitions falls, and the books, which are checked in every round, add up.
func TestMeasure(t *testing.T) {
	flat, root := of(Workers, Learnt, NoRoot, false), of(Callers, Learnt, SplitRoot, false)
	r, err := measureAll(t.Context(), small(t), []setup{of(Workers, Hash, NoRoot, false), flat, root, of(Stored, Learnt, NoRoot, true)})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Setups) != 4 {
		t.Fatalf("%d setups", len(r.Setups))
	}
	for _, l := range r.Setups {
		if l.Rate <= 0 || l.Cores <= 0 || l.CPU <= 0 || l.Imbalance < 1 || l.Passed > .5 {
			t.Errorf("%v: %+v", l.setup, l.Run)
		}
		switch {
		case !l.learns():
			if l.Cross < .5 || l.Applied != 0 {
				t.Errorf("%v: %.3f across, %d maps", l.setup, l.Cross, l.Applied)
			}
		case !l.Settling.Settled || l.Cross > .05 || l.Settling.First < 2*l.Cross || l.Applied == 0:
			t.Errorf("%v: settled %v, %.3f across, %.3f before, %d maps", l.setup, l.Settling.Settled, l.Cross, l.Settling.First, l.Applied)
		}
		// A root that were still weighed would leave its partition with fewer of the rest.
		if l.setup == root && l.Imbalance > 1.1 {
			t.Errorf("%v: imbalance %.2f", l.setup, l.Imbalance)
		}
		if split := slices.Contains(l.Split, rootName); split != (l.setup == root) {
			t.Errorf("%v: split %v", l.setup, l.Split)
		}
	}
	if l := r.Setups[1]; l.OverHash == nil || *l.OverHash != l.Rate/r.Setups[0].Rate {
		t.Errorf("over hash %v", l.OverHash)
	}
	if err := experiment.Write(t.TempDir(), []*experiment.Result{r.Result}); err != nil {
		t.Error(err)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "workers") || !strings.Contains(b.String(), "≥ 1.2 ×") {
		t.Errorf("%q, %v", &b, err)
	}
}

func TestGoals(t *testing.T) {
	run := func(rates ...float64) (all []Run) {
		for _, v := range rates {
			all = append(all, Run{Rate: v, Cross: .01})
		}
		return all
	}
	made := func(su setup, runs []Run) *cell {
		return &cell{setup: su, Settling: Settling{Settled: true}, runs: runs}
	}
	m := &measured{cells: []*cell{
		made(of(Workers, Hash, NoRoot, false), run(100, 200, 400)),
		made(of(Workers, Learnt, NoRoot, false), run(150, 220, 800)),
		made(of(Workers, Learnt, SplitRoot, false), run(75, 220, 700)),
		made(of(Callers, Learnt, NoRoot, false), run(10)),
		made(of(Callers, Learnt, SplitRoot, false), run(7)),
	}}
	m.cells[3].runs[0].Cross = .05
	got := m.goals()
	want := []struct {
		got float64
		met bool
	}{{1, true}, {5, false}, {1.5, true}, {.875, true}, {.7, false}}
	if len(got) != len(want) {
		t.Fatalf("goals %+v", got)
	}
	for i, g := range got {
		if math.Abs(g.Got-want[i].got) > 1e-9 || g.Met != want[i].met || !g.Measured {
			t.Errorf("%+v, want %v", g, want[i])
		}
	}
	m.cells[1].Settled = false
	for i, g := range m.goals() {
		if unmeasured := i == 0 || i == 2 || i == 3; g.Measured == unmeasured || unmeasured && g.Met {
			t.Errorf("without a map that settled: %+v", g)
		}
	}
}

func TestBooksThatDoNotAddUp(t *testing.T) {
	tr := newTree(size{1, 1, 2}, true)
	views := func() []answer.View {
		return []answer.View{
			{Name: "root", Net: 3, Children: 1},
			{Name: "0000", Net: 3, Parent: "root", Children: 1},
			{Name: "0000/0", Net: 3, Parent: "0000", Children: 2},
			{Name: "0000/0/0", Net: 1, Parent: "0000/0"},
			{Name: "0000/0/1", Net: 2, Parent: "0000/0"},
		}
	}
	check := func(change func([]answer.View) []answer.View) error {
		v := views()
		for i := range v {
			v[i].Limit, v[i].Left = 10, 10-v[i].Net
		}
		return tr.check(change(v), []int{1, 2})
	}
	if err := check(func(v []answer.View) []answer.View { return v }); err != nil {
		t.Errorf("whole books: %v", err)
	}
	for says, change := range map[string]func([]answer.View) []answer.View{
		`4 tokens are out of "root"`:     func(v []answer.View) []answer.View { v[0].Net++; v[0].Left--; return v },
		`2 tokens are out of "0000/0/0"`: func(v []answer.View) []answer.View { v[3].Net++; v[3].Left--; return v },
		`of "0000" 6 tokens are left`:    func(v []answer.View) []answer.View { v[1].Left--; return v },
		`4 entities, want 5`:             func(v []answer.View) []answer.View { return v[:4] },
	} {
		if err := check(change); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func TestDrawer(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, zipf := range []bool{false, true} {
		d := newDrawer(100, zipf, 3)
		count := make([]int, 100)
		for range 100_000 {
			count[d.draw(rnd)]++
		}
		slices.Sort(count)
		if count[0] == 0 || zipf != (count[99] > 10_000) {
			t.Errorf("Zipf %v: %d to %d", zipf, count[0], count[99])
		}
	}
}

func TestOptions(t *testing.T) {
	for _, change := range []func(*Options){
		func(o *Options) { o.Orgs = 0 },
		func(o *Options) { o.Orgs, o.Teams = 1000, 1000 },
		func(o *Options) { o.Partitions = 0 },
		func(o *Options) { o.Generators = 0 },
		func(o *Options) { o.Window = 100 },
		func(o *Options) { o.Rounds = 0 },
		func(o *Options) { o.Time = 0 },
		func(o *Options) { o.Warm = -1 },
		func(o *Options) { o.Only = "(" },
		func(o *Options) { o.Only = "^nothing$" },
		func(o *Options) { o.Settle = 2 * time.Hour },
	} {
		o := small(t)
		change(&o)
		if _, err := Measure(t.Context(), o); !errors.Is(err, experiment.ErrOptions) {
			t.Errorf("%v", err)
		}
	}
}

// TestSetups wants each setup once, and in a quick run too the setups that goals need.
func TestSetups(t *testing.T) {
	for _, quick := range []bool{false, true} {
		all := setups(quick)
		m := new(measured)
		for i, su := range all {
			if slices.Contains(all[:i], su) {
				t.Errorf("%v comes twice", su)
			}
			m.cells = append(m.cells, &cell{setup: su, Settling: Settling{Settled: true}, runs: []Run{{Rate: 1}}})
		}
		for _, g := range m.goals() {
			if !g.Measured {
				t.Errorf("quick %v: %q is not measured", quick, g.What)
			}
		}
		if fig := m.figures()[0]; fig.WriteSVG(new(bytes.Buffer)) != nil {
			t.Error("no figure")
		}
	}
}
