package libra

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/experiment/experimenttest"
)

// briefly runs the experiment with brief.
func briefly(t *testing.T, steps *int) *experiment.Result {
	t.Helper()
	o := &options{}
	experimenttest.Parse(t, o.flags, brief...)
	env := experimenttest.Env(steps)
	env.Quick = true
	r, err := o.run(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// brief are flags of a run of a second or so.
var brief = []string{"--draws", "1", "--durations", "5,10", "--lambdas", ".05,.1", "--splits", "20", "--hot-spots", "2"}

func TestRun(t *testing.T) {
	steps := 0
	r := briefly(t, &steps)
	if steps < 20 || len(r.Compared) < 30 || len(r.Tables[0].Rows) != steps-1 {
		t.Errorf("%d steps, %d claims and %d rows", steps, len(r.Compared), len(r.Tables[0].Rows))
	}
	measured := 0
	for _, g := range r.Goals {
		if g.Measured {
			measured++
		}
	}
	if measured < 10 {
		t.Errorf("%d goals are measured", measured)
	}
	for _, f := range r.Figures {
		var b bytes.Buffer
		if err := f.WriteSVG(&b); err != nil {
			t.Errorf("figure %q: %v", f.Name, err)
		}
	}
	dir := t.TempDir()
	if err := experiment.Write(dir, []*experiment.Result{r}); err != nil {
		t.Fatal(err)
	}
	report, err := os.ReadFile(filepath.Join(dir, experiment.ReportFile))
	if err != nil || !strings.Contains(string(report), "2D-WTD") {
		t.Errorf("report: %v", err)
	}
	steps = 0
	if !reflect.DeepEqual(r.Tables, briefly(t, &steps).Tables) {
		t.Error("the same seed gives other tables")
	}
}

func TestFlagsAreChecked(t *testing.T) {
	experimenttest.Refuses(t, &Experiment, [][]string{
		{"--draws", "0"},
		{"--nodes", "3"},
		{"--noise", "-1"},
		{"--drift", "1"},
		{"--durations", "5"},
		{"--durations", "5,1"},
		{"--durations", "5,90"},
		{"--lambdas", ".05"},
		{"--lambdas", ".1,.2"},
		{"--lambdas", "0,.05"},
		{"--splits", "0"},
		{"--hot-spots", "1"},
	})
}

func TestRunEnds(t *testing.T) { experimenttest.Ends(t, &Experiment, brief...) }
