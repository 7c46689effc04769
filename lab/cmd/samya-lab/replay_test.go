package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/lab/replay"
)

func TestReplay(t *testing.T) {
	args := []string{"replay", "--workload", "fit,burst", "--first", "3", "--seeds", "3", "--settings", "refuse,paper", "--minutes", "2", "--limit", "2000", "--untrained"}
	code, stdout, stderr := runLab(t, append(args, "--json")...)
	if code != exitOK {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	if strings.Count(stdout, "\n") != 1 {
		t.Errorf("not one line: %q", stdout)
	}
	var told struct {
		Minutes   int
		Seeds     []uint64
		Summaries []replay.Summary
		Results   []replay.Result
	}
	if err := json.Unmarshal([]byte(stdout), &told); err != nil {
		t.Fatal(err)
	}
	if told.Minutes != 2 || !slices.Equal(told.Seeds, []uint64{3, 4, 5}) || len(told.Results) != 12 || len(told.Summaries) != 4 {
		t.Fatalf("%+v", told)
	}
	for i, want := range []string{"fit refuse", "fit paper", "burst refuse", "burst paper"} {
		s := told.Summaries[i]
		if s.Workload+" "+s.Setting != want || s.Seeds != 3 || s.Median["tps"] < 20 || s.Ratio["tps"] == 0 {
			t.Errorf("%s: %+v", want, s)
		}
		if begun := s.Median["begun"]; (begun > 0) != (s.Setting == "paper") {
			t.Errorf("%s: %v redistributions", want, begun)
		}
	}
	if r := told.Results[11]; r.Workload != "burst" || r.Seed != 5 || r.Setting != "paper" || r.Latency.P50 < 1.3 || r.Peaks["us"] == 0 {
		t.Errorf("%+v", r)
	}
	code, stdout, stderr = runLab(t, args...)
	if code != exitOK {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	for _, want := range []string{"fit, 2 minutes, limit 2000, medians of 3 seeds\n", "burst, 2 minutes", " beyond oracle ", " paper ", " refuse ", " × "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
}

// TestReplayTrained: unless told otherwise, sites know the days before.
func TestReplayTrained(t *testing.T) {
	args := []string{"replay", "--workload", "fit", "--seeds", "1", "--settings", "reactive", "--minutes", "2", "--limit", "2000"}
	_, trained, _ := runLab(t, args...)
	code, untrained, stderr := runLab(t, append(args, "--untrained")...)
	if code != exitOK || trained == untrained {
		t.Errorf("exit status %d: %s\n%s", code, stderr, trained)
	}
}

func TestReplayUsage(t *testing.T) {
	for args, names := range map[string]string{
		"replay all":               "no arguments",
		"replay --workload single": "single",
		"replay --settings oracle": "oracle",
		"replay --settings=":       "--settings",
		"replay --seeds 0":         "--seeds",
		"replay --seeds 10001":     "10000",
		"replay --minutes 61":      "--minutes",
		"replay --limit 0":         "--limit",
		"replay --workers 0":       "--workers",
	} {
		code, _, stderr := runLab(t, strings.Fields(args)...)
		if code != exitUsage || !strings.Contains(stderr, names) {
			t.Errorf("%s: exit status %d: %s", args, code, stderr)
		}
	}
}
