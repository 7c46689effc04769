package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/lab/sim"
)

func runLab(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	l := &lab{stdout: &out, stderr: &errs}
	code = l.run(t.Context(), args)
	return code, out.String(), errs.String()
}

func TestSimUsage(t *testing.T) {
	for _, test := range []struct{ args, names string }{
		{"--protocol paxos", "paxos"},
		{"--faults crush", "crush"},
		{"--sites 10", "sites"},
		{"--seeds 0", "seeds"},
		{"--workers 0", "workers"},
		{"--budget -1s", "budget"},
		{"--offer most", "most"},
		{"--strategy post", "post"},
		{"extra", "extra"},
	} {
		code, _, stderr := runLab(t, append([]string{"sim"}, strings.Fields(test.args)...)...)
		if code != exitUsage || !strings.Contains(stderr, test.names) {
			t.Errorf("%s: exit status %d, %q", test.args, code, stderr)
		}
	}
}

// TestSimBudget spends a budget of no time: each worker finishes at most the seed
// that it began with, and at least a single seed runs.
func TestSimBudget(t *testing.T) {
	code, stdout, stderr := runLab(t, "sim", "--seeds", "1000", "--workers", "2", "--budget", "1ns", "--sites", "3", "--short", "--json")
	if code != exitOK {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	var r struct{ Seeds uint64 }
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Seeds < 1 || r.Seeds > 2 {
		t.Errorf("%d seeds ran, want 1 or 2", r.Seeds)
	}
}

func TestSimJSON(t *testing.T) {
	code, stdout, stderr := runLab(t, "sim", "--seeds", "2", "--first", "7", "--protocol", "auto", "--sites", "3", "--short", "--json")
	if code != exitOK {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	if strings.Count(stdout, "\n") != 1 {
		t.Errorf("not one line: %q", stdout)
	}
	var r struct {
		Mode       string
		Seeds      uint64
		Events     uint64
		Violations *int
		Invariant  *string
		Speedup    float64
		Faults     map[string]int
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Mode != "auto" || r.Seeds != 2 || r.Events == 0 || r.Violations == nil || *r.Violations != 0 ||
		r.Invariant == nil || *r.Invariant != "" || r.Speedup == 0 || r.Faults["crash"] == 0 {
		t.Errorf("%+v", r)
	}
}

func TestSimForPeople(t *testing.T) {
	code, stdout, stderr := runLab(t, "sim", "--seeds", "1", "--short", "--faults", "crash,pause", "--workers", "1")
	if code != exitOK {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	for _, want := range []string{"1 from 1 on", "times real time", "begun", "crash ", "violations       0"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "slow-disk") {
		t.Errorf("faults that were not asked for are told:\n%s", stdout)
	}
}

func TestSimTellsViolations(t *testing.T) {
	o := &simOptions{seeds: 5, first: 10, mode: "star", sites: 3, faults: "crash,pause", trees: true, upgrades: true}
	r := &simResult{Mode: o.mode, Workers: 1}
	v := &sim.Violation{Seed: 12, Sites: 3, Invariant: sim.Agreement, Event: 99, Millis: 1234, Err: errors.New("two values")}
	r.add(o, sim.Options{Seed: 11, Long: true}, []sim.Report{{}}, nil)
	r.add(o, sim.Options{Seed: 12, Long: true}, []sim.Report{{}}, v)
	r.sum(time.Second, sim.AllFaults)
	if r.Violations != 1 || r.Invariant != sim.Agreement || r.Trivial != 1 || len(r.NotHit) != len(sim.AllFaults.List()) {
		t.Errorf("%+v", r)
	}
	var out bytes.Buffer
	if err := r.tell(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"agreement does not hold", "two values", "violations       1", "never happened",
		"replay: samya-lab sim --protocol star --sites 3 --faults crash,pause --first 12 --seeds 1\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	flat := new(simResult)
	flat.add(&simOptions{seeds: 5, mode: "star", upgrades: true}, sim.Options{Seed: 12}, []sim.Report{{}}, v)
	if replay := flat.Failures[0].Replay; !strings.HasSuffix(replay, " --seeds 1 --trees=false") {
		t.Errorf("without trees: %s", replay)
	}
}

// TestSimTellsRefused names the trivial seeds in their order, in the result and in the
// error of the run.
func TestSimTellsRefused(t *testing.T) {
	o := &simOptions{seeds: 12, mode: "star", faults: "all", trees: true}
	r := &simResult{Mode: o.mode, Workers: 1}
	for seed := uint64(12); seed > 0; seed-- {
		r.add(o, sim.Options{Seed: seed, Long: true}, []sim.Report{{Micros: int64(seed) * 1_000_000}}, nil)
	}
	r.sum(time.Second, sim.AllFaults)
	var out bytes.Buffer
	if err := r.tell(&out); err != nil {
		t.Fatal(err)
	}
	const first = "refused          seed 1: 1s simulated, below 120 s\n                 seed 2: 2s simulated, below 120 s\n"
	if !strings.Contains(out.String(), first) || !strings.Contains(out.String(), "seed 12: 12s simulated") {
		t.Errorf("no %q, or no seed 12 in\n%s", first, &out)
	}
	if told := r.refusals(); !strings.HasPrefix(told, "seed 1: 1s simulated, below 120 s; seed 2: ") || !strings.HasSuffix(told, "; and 2 more") {
		t.Errorf("the error names %q", told)
	}
	flat := new(simResult)
	flat.add(o, sim.Options{Seed: 1}, []sim.Report{{}}, nil)
	if len(flat.Refused) > 0 {
		t.Errorf("short seeds are refused: %+v", flat.Refused)
	}
}

// TestTooTrivial: two refused seeds are chance, and so is 1 in 100.
func TestTooTrivial(t *testing.T) {
	for _, test := range []struct {
		refused, seeds uint64
		want           bool
	}{{0, 0, false}, {2, 2, false}, {3, 3, true}, {2, 121, false}, {3, 299, true}, {3, 300, false}, {20, 2000, false}, {21, 2000, true}} {
		if got := tooTrivial(test.refused, test.seeds); got != test.want {
			t.Errorf("%d of %d: %t, want %t", test.refused, test.seeds, got, test.want)
		}
	}
}

// TestSimWorkers runs the same seeds with 1 worker and with 2: not an event differs.
func TestSimWorkers(t *testing.T) {
	var hashes []string
	for _, workers := range []string{"1", "2"} {
		code, stdout, stderr := runLab(t, "sim", "--seeds", "4", "--short", "--json", "--per-seed", "--workers", workers)
		if code != exitOK {
			t.Fatalf("exit status %d: %s", code, stderr)
		}
		var r struct {
			Hash    string
			PerSeed []struct{ Hash string } `json:"per_seed"`
		}
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, fmt.Sprint(r))
		if len(r.PerSeed) != 4 || r.PerSeed[0] == r.PerSeed[1] {
			t.Errorf("%+v", r)
		}
	}
	if hashes[0] != hashes[1] {
		t.Errorf("one worker has %s, two have %s", hashes[0], hashes[1])
	}
}

// TestSimComparesOffers runs each seed under both offer policies: requests wait
// under both, and never where their site keeps the tokens.
func TestSimComparesOffers(t *testing.T) {
	code, stdout, stderr := runLab(t, "sim", "--seeds", "4", "--short", "--json", "--offer", "compare")
	if code != exitOK {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	var r struct {
		Kept  *int    `json:"waited_though_kept"`
		Spare float64 `json:"waiting_share_spare"`
		All   float64 `json:"waiting_share_all"`
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Kept == nil || *r.Kept != 0 || r.Spare <= 0 || r.All <= 0 {
		t.Errorf("%s", stdout)
	}
}
