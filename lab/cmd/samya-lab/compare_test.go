package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/lab/compare"
)

func TestCompareUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"no such peer":   {"--peers", "redis,oracle"},
		"no runs":        {"--rounds", "0"},
		"no time":        {"--duration", "1ms"},
		"negative":       {"--warmup", "-1s"},
		"no pattern":     {"--only", "("},
		"no samya":       {"--samya", filepath.Join(t.TempDir(), "none")},
		"short soak":     {"--soak", "10s", "--samya", os.Args[0]},
		"no such flag":   {"--fast"},
		"with arguments": {"redis"},
	} {
		if code, _, stderr := runLab(t, append([]string{"compare"}, args...)...); code != exitUsage || stderr == "" {
			t.Errorf("%s: exit status %d, %q; want %d", name, code, stderr, exitUsage)
		}
	}
}

// compareDir is a directory on the disk of the work tree.
func compareDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(".", "compare-*.tmp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestCompare(t *testing.T) {
	dir := compareDir(t)
	tablesBegin, tablesEnd := tableMarks("compare")
	page, chart := filepath.Join(dir, "page.md"), filepath.Join(dir, "chart.svg")
	if err := os.WriteFile(page, []byte("# Before\n"+tablesBegin+"old\n"+tablesEnd+"After\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"compare", "--dir", dir, "--samya", os.Args[0], "--peers", "", "--only", "bare sync", "--quick", "--rounds", "2",
		"--duration", "1500ms", "--warmup", "0s", "--markdown", page, "--svg", chart,
	}
	code, stdout, stderr := runLab(t, append(args, "--json")...)
	if code != exitOK || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("exit status %d: %s\n%s", code, stderr, stdout)
	}
	var r compare.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Cells) != 1 || r.Rounds != 2 || r.Seconds != 1.5 || len(r.Cells[0].Samples) != 2 || r.Cells[0].Median.Rate <= 0 {
		t.Errorf("%s", stdout)
	}
	for _, g := range r.Goals {
		if g.Met || g.Measured {
			t.Errorf("%s: met without having been measured", g.What)
		}
	}
	if !strings.Contains(stderr, "round 2 of 2: start bare sync") {
		t.Errorf("no progress: %s", stderr)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(got); !strings.HasPrefix(s, "# Before\n"+tablesBegin) || !strings.HasSuffix(s, tablesEnd+"After\n") ||
		strings.Contains(s, "old") || !strings.Contains(s, "| bare sync |") {
		t.Errorf("the page: %s", s)
	}
	if svg, err := os.ReadFile(chart); err != nil || !bytes.Contains(svg, []byte("<svg")) {
		t.Errorf("the chart: %.80s %v", svg, err)
	}
	code, stdout, stderr = runLab(t, append(args, "--goals")...)
	if code != exitFailed || !strings.Contains(stdout, "not measured") {
		t.Errorf("goals that were not measured: exit status %d\n%s\n%s", code, stdout, stderr)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "compare-*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestCompareInMemory(t *testing.T) {
	if info, err := os.Stat("/dev/shm"); err != nil || !info.IsDir() {
		t.Skip("no memory file system at /dev/shm")
	}
	code, _, stderr := runLab(t, "compare", "--dir", "/dev/shm", "--samya", os.Args[0], "--peers", "", "--only", "bare sync")
	if code != exitFailed || !strings.Contains(stderr, "tmpfs") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}
