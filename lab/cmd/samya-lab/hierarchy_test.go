package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHierarchy(t *testing.T) {
	var out, said strings.Builder
	l := &lab{stdout: &out, stderr: &said}
	dir := t.TempDir()
	status := l.run(t.Context(), []string{
		"hierarchy", "--quick", "--orgs", "8", "--teams", "2", "--leaves", "3", "--rounds", "1", "--duration", "200ms", "--warmup", "0s", "--settle", "100ms",
		"--json", "--out", dir, "--goals",
	})
	// Nothing settles so soon, and an unmeasured goal is not met.
	if status != exitFailed || !strings.Contains(said.String(), "not all goals are met") || !strings.Contains(said.String(), "round 1 of 1, workers, hash") {
		t.Fatalf("status %d: %s", status, &said)
	}
	var told struct {
		Goals []struct {
			Met, Measured bool
		}
		Setups []struct {
			Way, Placement, Root string
			Rate                 float64 `json:"requests_per_second"`
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &told); err != nil || len(told.Goals) != 5 || told.Goals[0].Measured || len(told.Setups) != 6 {
		t.Fatalf("told %s: %v", &out, err)
	}
	for _, s := range told.Setups {
		if s.Way == "" || s.Placement == "" || s.Root == "" || s.Rate <= 0 {
			t.Errorf("%+v", s)
		}
	}
	for _, file := range []string{"hierarchy.csv", "hierarchy-rounds.csv", "hierarchy.svg", "report.md"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
	said.Reset()
	if status := l.run(t.Context(), []string{"hierarchy", "--partitions", "0", "--out", dir}); status != exitUsage || !strings.Contains(said.String(), "--partitions") {
		t.Errorf("status %d: %s", status, &said)
	}
}
