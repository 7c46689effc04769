package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/lab/coreslab"
)

func TestCores(t *testing.T) {
	var out, said strings.Builder
	l := &lab{stdout: &out, stderr: &said}
	page := filepath.Join(t.TempDir(), "page.md")
	args := []string{"cores", "--rough", "--cost-rounds", "4", "--remembered", "2000", "--entities", "20", "--closed-loops", "64", "--cores", "1,2", "--dir", t.TempDir()}
	if status := l.run(t.Context(), append(args, "--json", "--markdown", page)); status != exitOK {
		t.Fatalf("status %d: %s", status, &said)
	}
	var r coreslab.Report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil || len(r.Costs) != 1 || len(r.Rows) == 0 || len(r.Checks) != 0 {
		t.Errorf("told %s: %v", &out, err)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "| + striped table |") {
		t.Errorf("wrote %s: %v", text, err)
	}
	if status := l.run(t.Context(), append(args, "--connections", "0")); status != exitUsage || !strings.Contains(said.String(), "0 connections") {
		t.Errorf("status %d: %s", status, &said)
	}
}
