package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestMeasures takes the measures of a small module.
func TestMeasures(t *testing.T) {
	m, err := load(t.Context(), "testdata/module")
	if err != nil {
		t.Fatal(err)
	}
	all, err := m.measure()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Measure{
		{Now: 1, Where: []string{"internal/sim imports site"}},
		{Now: 3, Where: []string{"3 files: site/core/a.go site/core/b.go site/core/c.go"}},
		{Now: 3, Where: []string{"site/core.Core: 3"}},
		{Now: 11, Where: []string{"site: 11"}},
		{Now: 4, Where: []string{"appmgr.Start", "site.Hidden", "site.Limit", "site.Unused"}},
		{Now: 12, Where: []string{"appmgr: 12"}},
		{Now: 12, Where: []string{"docs/page.md: 12"}},
		{Now: 25},
		{Now: 87},
		{Now: 1},
		{Now: 2},
	} {
		got := all[i]
		if got.Now != want.Now || !slices.Equal(got.Where, want.Where) {
			t.Errorf("%s: %d %q, want %d %q", got.Name, got.Now, got.Where, want.Now, want.Where)
		}
	}
}

// TestRun: a measure beyond its bound is an error with the measure's name.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{"-dir", "testdata/module"}, &out)
	if !errors.Is(err, errBeyond) || !strings.Contains(err.Error(), "imports that run up") || strings.Contains(err.Error(), "circle") {
		t.Errorf("%v\n%s", err, &out)
	}
	for _, line := range []string{"files of site/core in one circle of calls", "≤ 3", "ok", "BEYOND", "  site.Unused\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("it does not print %q:\n%s", line, &out)
		}
	}
	if err := run(t.Context(), []string{"-dir", t.TempDir()}, &out); err == nil || errors.Is(err, errBeyond) {
		t.Errorf("a folder without a module: %v", err)
	}
}
