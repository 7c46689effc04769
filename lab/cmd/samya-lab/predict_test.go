package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nearPeriodic writes the series to a file and returns its name.
func nearPeriodic(t *testing.T) string {
	t.Helper()
	code, csv, stderr := runLab(t, "trace", "near-periodic", "--seed", "3")
	if code != exitOK {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	path := filepath.Join(t.TempDir(), "near.csv")
	if err := os.WriteFile(path, []byte(csv), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTable4: the paper's order of models shows where demand is nearly periodic,
// and a constant is not far from ARIMA.
func TestTable4(t *testing.T) {
	path, picture := nearPeriodic(t), filepath.Join(t.TempDir(), "near.svg")
	code, stdout, stderr := runLab(t, "predict", "--series", path, "--column", "net", "--horizon", "1",
		"--models", "random-walk,arima,lstm,constant", "--json", "--svg", picture)
	if code != exitOK {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	if strings.Count(stdout, "\n") != 1 {
		t.Errorf("not one line: %q", stdout)
	}
	var told struct{ Results []map[string]any }
	if err := json.Unmarshal([]byte(stdout), &told); err != nil {
		t.Fatal(err)
	}
	ratio := map[string]float64{}
	for _, r := range told.Results {
		for _, name := range []string{
			"horizon", "mae", "mae_ratio_random_walk", "mae_ratio_constant", "stall_rate", "newsvendor_cost", "fit_seconds", "forecast_ns",
		} {
			if _, ok := r[name].(float64); !ok {
				t.Errorf("%v: %s is %v", r["model"], name, r[name])
			}
		}
		model, _ := r["model"].(string)
		ratio[model], _ = r["mae_ratio_random_walk"].(float64)
	}
	t.Logf("of the random walk: %.3v", ratio)
	if len(ratio) != 4 || !(ratio["arima"] < .6 && ratio["lstm"] < .7*ratio["arima"] && ratio["constant"] < .6) {
		t.Errorf("not the paper's order: %v", ratio)
	}
	if svg, err := os.ReadFile(picture); err != nil || !strings.Contains(string(svg), "<svg") {
		t.Errorf("no picture: %v, %.40q", err, svg)
	}
}

func TestPredictTable(t *testing.T) {
	code, stdout, stderr := runLab(t, "predict", "--series", nearPeriodic(t), "--column", "net", "--last", "600", "--models", "cheap")
	if code != exitOK {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	for _, want := range []string{"near: 600 bins of 300 s, 0 missing, a day of 288, epochs of 1\n", "epochs of 12\n", " auto ", " season-lad "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "lstm") {
		t.Errorf("lstm is not cheap:\n%s", stdout)
	}
}

func TestPredictUsage(t *testing.T) {
	for _, test := range []struct{ args, names string }{
		{"predict", "--series"},
		{"predict --series x --models oracle", "oracle"},
		{"predict --series x --plot-model oracle", "oracle"},
		{"predict --series x --split 1", "--split"},
		{"predict --series x --horizon 0", "--horizon"},
		{"predict --series x --horizon 999", "horizon"},
		{"predict --series x --tau 1", "quantile"},
		{"predict --series x --last -1", "--last"},
		{"predict extra", "extra"},
		{"trace", "which"},
		{"trace azure", "azure-like"},
		{"trace azure-like --variant x", "variant"},
		{"trace azure-like --region-number 5", "region"},
	} {
		code, _, stderr := runLab(t, strings.Fields(test.args)...)
		if code != exitUsage || !strings.Contains(stderr, test.names) {
			t.Errorf("%s: exit status %d, %q", test.args, code, stderr)
		}
	}
	if code, _, stderr := runLab(t, "predict", "--series", "none.csv"); code != exitFailed || !strings.Contains(stderr, "none.csv") {
		t.Errorf("no file: exit status %d, %q", code, stderr)
	}
}
