package experiment

import (
	"context"
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/lab/plot"
)

func sampleResult() *Result {
	return &Result{
		Setup:    "Two things were compared.",
		Compared: []Comparison{{What: "speed", Unit: "×", Paper: new(1.5), Ours: 1.25, Why: "Ours is smaller."}, {What: "size", Ours: 12345, Why: "The paper has none."}},
		Goals:    []Goal{AtLeast("speed", 1.25, 1.2, "×"), Below("pause", .5, 1, "ms")},
		Tables:   []Table{{Heads: []string{"a", "b"}, Rows: [][]string{{"1", "x,y"}}}, {Name: "time", Heads: []string{"t"}}},
		Figures: []Figure{{Caption: "Speed.", Figure: plot.New(&plot.Lines{
			Title: "t", X: plot.Axis{Label: "x"}, Y: plot.Axis{Label: "y"}, Series: []plot.Series{{Name: "s", Points: []plot.Point{{X: 1, Y: 2}}}},
		})}},
		Notes: []string{"A note."},
	}
}

// do runs an experiment on a clock that goes on 3 s at each look.
func do(t *testing.T, run Run) (*Result, error) {
	t.Helper()
	clock := time.Unix(0, 0)
	env := &Env{Quick: true, Now: func() time.Time { clock = clock.Add(3 * time.Second); return clock }}
	return Do(t.Context(), &Experiment{Name: "speed", Short: "how fast it is", Brief: true}, run, env)
}

func TestReport(t *testing.T) {
	r, err := do(t, func(context.Context, *Env) (*Result, error) { return sampleResult(), nil })
	if err != nil {
		t.Fatal(err)
	}
	if r.Name != "speed" || r.Seconds != 3 || r.Cores < 1 || !r.Quick || !r.Met() {
		t.Errorf("result %+v", r)
	}
	dir := filepath.Join(t.TempDir(), "new", "results")
	if err := Write(dir, []*Result{r}); err != nil {
		t.Fatal(err)
	}
	report := read(t, dir, ReportFile)
	for _, want := range []string{
		"Goals: 2 met, 0 missed, 0 not measured.",
		"## speed: how fast it is", "Two things were compared.", "--quick", "| speed | ≥ 1.2 × | 1.25 × | yes |", "| pause | < 1 ms | 0.5 ms | yes |",
		"| speed | 1.5 × | 1.25 × | Ours is smaller. |", "| size | – | 12,345 | The paper has none. |",
		"![Speed.](speed.svg)", "* A note.", "[speed.csv](speed.csv), [speed-time.csv](speed-time.csv)",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("no %q in\n%s", want, report)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(read(t, dir, "speed.csv"))).ReadAll()
	if err != nil || len(rows) != 2 || rows[0][1] != "b" || rows[1][1] != "x,y" {
		t.Errorf("table %q, %v", rows, err)
	}
	if got := read(t, dir, "speed-time.csv"); got != "t\n" {
		t.Errorf("second table %q", got)
	}
	if svg := read(t, dir, "speed.svg"); !strings.Contains(svg, "</svg>") {
		t.Errorf("picture %q", svg)
	}
	var b strings.Builder
	if err := WriteText(&b, []*Result{r}); err != nil || !strings.Contains(b.String(), "≥ 1.2 ×") {
		t.Errorf("text %q, %v", b.String(), err)
	}
}

// Missed goals are told at the top.
func TestReportTellsMisses(t *testing.T) {
	r := sampleResult()
	r.Name, r.Goals = "speed", append(r.Goals, AtMost("waits", 3, 2, "%"), Unmeasured(AtLeast("", 3, 2, "")))
	dir := t.TempDir()
	if err := Write(dir, []*Result{r, r}); err != nil {
		t.Fatal(err)
	}
	report := read(t, dir, ReportFile)
	if want := "Goals: 4 met, 2 missed, 2 not measured.\n\nMissed:\n\n* speed: waits: 3 %\n"; !strings.Contains(report, want) {
		t.Errorf("no %q in\n%s", want, report)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestGoals(t *testing.T) {
	for _, c := range []struct {
		goal Goal
		met  bool
	}{
		{AtLeast("", 2, 2, ""), true},
		{AtLeast("", 1.99, 2, ""), false},
		{Below("", 2, 2, ""), false},
		{Below("", 1.99, 2, ""), true},
		{AtMost("", 2, 2, ""), true},
		{AtMost("", 2.01, 2, ""), false},
		{Unmeasured(AtLeast("", 3, 2, "")), false},
	} {
		if c.goal.Met != c.met {
			t.Errorf("%+v: met %v", c.goal, c.goal.Met)
		}
		if r := (&Result{Goals: []Goal{AtLeast("", 1, 0, ""), c.goal}}); r.Met() != c.met {
			t.Errorf("%+v: all met %v", c.goal, r.Met())
		}
	}
	r := &Result{Goals: []Goal{Unmeasured(AtLeast("x", 3, 2, "")), AtMost("y", 1, 2, "")}}
	if row := r.goals()[1]; row[1] != "≤ 2" {
		t.Errorf("row %q", row)
	}
	// A quick run need not measure all goals, but the measured goals must be met.
	r.Quick = true
	if r.Met() {
		t.Error("a quick run that should measure all is met without")
	}
	r.brief = true
	if !r.Met() {
		t.Error("a goal that a quick run did not measure is missed")
	}
	if r.Goals[1].Met = false; r.Met() {
		t.Error("a goal that a quick run missed is met")
	}
	if row := r.goals()[0]; row[2] != "not measured" || row[3] != "no" {
		t.Errorf("row %q", row)
	}
}

func TestFailuresAreTold(t *testing.T) {
	broken := errors.New("broken")
	if _, err := do(t, func(context.Context, *Env) (*Result, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if _, err := do(t, func(context.Context, *Env) (*Result, error) { return &Result{}, nil }); err == nil {
		t.Error("a result without a table")
	}
	r := sampleResult()
	r.Figures[0].Figure = plot.New()
	if err := Write(t.TempDir(), []*Result{r}); !errors.Is(err, plot.ErrFigure) {
		t.Errorf("an empty figure: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(file, []*Result{sampleResult()}); err == nil {
		t.Error("wrote to a directory that is a file")
	}
}
