package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/lab/transports"
)

func TestTransportsUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"no rounds":   {"transports", "--rounds", "0"},
		"no time":     {"transports", "--duration", "1ms"},
		"long before": {"transports", "--warmup", "1h"},
		"an argument": {"transports", "frames"},
	} {
		if code, _, stderr := runLab(t, args...); code != exitUsage || stderr == "" {
			t.Errorf("%s: exit status %d, %q; want %d", name, code, stderr, exitUsage)
		}
	}
}

// TestTransports measures all ways for moments, and writes the table to its place.
func TestTransports(t *testing.T) {
	if testing.Short() {
		t.Skip("real servers")
	}
	begin, end := tableMarks("transports")
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("# Before\n"+begin+"old\n"+end+"After\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runLab(t, "transports", "--rounds", "1", "--duration", "100ms", "--warmup", "20ms", "--json", "--markdown", page)
	if code != exitOK || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("exit status %d: %s\n%s", code, stderr, stdout)
	}
	var r transports.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if want := 3*len(transports.Ways()) + 2; len(r.Rows) != want || !strings.Contains(stderr, "round 1 of 1, frames") {
		t.Errorf("%d rows, want %d: %s\n%s", len(r.Rows), want, stderr, stdout)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(got); !strings.HasPrefix(s, "# Before\n"+begin) || !strings.HasSuffix(s, end+"After\n") ||
		strings.Contains(s, "old") || !strings.Contains(s, "| frames, TLS |") {
		t.Errorf("the page: %s", s)
	}
}
