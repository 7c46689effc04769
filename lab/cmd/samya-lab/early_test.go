package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/samya-db/samya/lab/earlylab"
)

func TestEarly(t *testing.T) {
	var out, said strings.Builder
	l := &lab{stdout: &out, stderr: &said}
	if status := l.run(t.Context(), []string{"early", "--size", "50", "--requests", "500", "--rounds", "1", "--json"}); status != exitOK {
		t.Fatalf("status %d: %s", status, &said)
	}
	var rows []earlylab.Row
	if err := json.Unmarshal([]byte(out.String()), &rows); err != nil || len(rows) != 9 || rows[0].Mode != earlylab.Sequential || rows[8].Mode != "late" {
		t.Errorf("told %s: %v", &out, err)
	}
	out.Reset()
	if status := l.run(t.Context(), []string{"early", "--size", "50", "--requests", "500", "--rounds", "1"}); status != exitOK || !strings.Contains(out.String(), "busy-wait") {
		t.Errorf("status %d: %s", status, &out)
	}
	if status := l.run(t.Context(), []string{"early", "--writes", "2"}); status != exitUsage || !strings.Contains(said.String(), "--writes") {
		t.Errorf("status %d: %s", status, &said)
	}
}
