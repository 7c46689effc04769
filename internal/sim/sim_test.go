package sim_test

import (
	"errors"
	"flag"
	"path/filepath"
	"testing"

	"github.com/samya-db/samya/internal/sim"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/store"
)

var (
	seeds = flag.Uint64("sim.seeds", 300, "how many seeds to run")
	mode  = flag.String("sim.mode", "", "the protocol; empty for the default")
	seed  = flag.Uint64("sim.seed", 0, "the only seed to run; 0 for all")
)

func run(t *testing.T, o sim.Options) sim.Report {
	t.Helper()
	r, err := sim.Run(o)
	if err != nil {
		if v, ok := errors.AsType[*sim.Violation](err); ok {
			t.Log(v.Trace)
		}
		t.Fatal(err)
	}
	return r
}

// TestSeeds runs clusters under every fault. To run one seed again:
//
//	go test ./internal/sim -run TestSeeds -sim.seed=N
func TestSeeds(t *testing.T) {
	first, last := uint64(1), *seeds
	if *seed != 0 {
		first, last = *seed, *seed
	}
	var all sim.Report
	for n := first; n <= last; n++ {
		r := run(t, sim.Options{Seed: n, Protocol: *mode})
		all.Add(r)
	}
	t.Logf("%d runs: %v", last-first+1, &all)
	if missing := all.Missing(); last-first >= 100 && len(missing)+len(all.MissingFaults(sim.AllFaults)) > 0 {
		t.Errorf("never happened: %v, %v", missing, all.MissingFaults(sim.AllFaults))
	}
}

// TestEncoded takes every message and record through its real encoding, and
// every restart through a real store.
func TestEncoded(t *testing.T) {
	if testing.Short() {
		t.Skip("commits to real files")
	}
	var all sim.Report
	for n := range uint64(2) {
		dir := t.TempDir()
		var opened []*store.Store
		all.Add(run(t, sim.Options{
			Seed: 1000 + n, Sites: 3, Encoded: true,
			Disk: func(site core.SiteID) (sim.Disk, error) {
				s, err := store.Open(store.Options{
					Dir: filepath.Join(dir, string(site)), Cluster: "sim", Site: site, Members: []core.SiteID{"a", "b", "c"},
				})
				if err == nil {
					opened = append(opened, s)
				}
				return s, err
			},
		}))
		for _, s := range opened {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if all.Faults[sim.Crash] == 0 || all.Recoveries == 0 {
		t.Errorf("nothing was read back: %v", &all)
	}
	t.Log(&all)
}

// TestMessagesEncoded takes every message through its real encoding.
func TestMessagesEncoded(t *testing.T) {
	for n := range uint64(20) {
		run(t, sim.Options{Seed: 2000 + n, Encoded: true})
	}
}

// TestRefusedOnlyIfNowhere has hungry clients at one of five sites, with
// nothing that fails: each token of the limit is granted before any is refused.
func TestRefusedOnlyIfNowhere(t *testing.T) {
	var all sim.Report
	for n := range uint64(40) {
		all.Add(run(t, sim.Options{Seed: 3000 + n, Sites: 5, Calm: true, Hungry: true}))
	}
	if all.Refusals == 0 || all.Redistributed == 0 {
		t.Errorf("no request was refused, or none waited: %v", &all)
	}
	t.Log(&all)
}

// TestSameSeedSameRun runs seeds twice.
func TestSameSeedSameRun(t *testing.T) {
	hashes := make(map[uint64]bool)
	for n := range uint64(10) {
		first := run(t, sim.Options{Seed: 4000 + n})
		if again := run(t, sim.Options{Seed: 4000 + n}); first != again {
			t.Errorf("seed %d: %v and %v", 4000+n, first, again)
		}
		hashes[first.Hash] = true
	}
	if len(hashes) != 10 {
		t.Errorf("10 seeds have %d hashes", len(hashes))
	}
}
