package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestExplore(t *testing.T) {
	var out, errs bytes.Buffer
	l := &lab{stdout: &out, stderr: &errs}
	args := []string{"explore", "--protocol", "majority", "--bound", "small", "--leaders", "1", "--json"}
	if code := l.run(t.Context(), args); code != exitOK {
		t.Fatalf("exit status %d: %s", code, &errs)
	}
	var got struct {
		Variant    string
		States     int
		Violations *int
		Closed     bool
		Bounds     struct{ Leaders, Crashes int }
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("not one line of JSON: %v: %s", err, &out)
	}
	if got.Variant != "majority" || got.States < 500 || got.Violations == nil || *got.Violations != 0 ||
		!got.Closed || got.Bounds.Leaders != 1 || got.Bounds.Crashes != 1 {
		t.Errorf("got %s", &out)
	}
}

func TestExploreStopsInTime(t *testing.T) {
	var out, errs bytes.Buffer
	l := &lab{stdout: &out, stderr: &errs}
	code := l.run(t.Context(), []string{"explore", "--protocol", "transfer", "--budget", "1ns"})
	if code != exitOK || !strings.Contains(out.String(), "NOT CLOSED") {
		t.Errorf("exit status %d: %s%s", code, &out, &errs)
	}
}

func TestExploreFails(t *testing.T) {
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--bound", "huge"}, exitUsage, "--bound"},
		{[]string{"--protocol", "paxos"}, exitUsage, "--protocol"},
		{[]string{"--ballots", "9"}, exitUsage, "ballots is 9"},
		{[]string{"--budget", "-1s"}, exitUsage, "--budget"},
		{[]string{"--bound", "drain", "--written-off", "1"}, exitUsage, "losses is 1"},
		{[]string{"more"}, exitUsage, "no arguments"},
		{[]string{"--protocol", "majority", "--max-states", "100"}, exitFailed, "not closed within 100 states"},
	} {
		var out, errs bytes.Buffer
		l := &lab{stdout: &out, stderr: &errs}
		code := l.run(t.Context(), append([]string{"explore"}, test.args...))
		if code != test.code || !strings.Contains(errs.String(), test.says) {
			t.Errorf("%v: exit status %d, want %d: %s", test.args, code, test.code, &errs)
		}
	}
}
