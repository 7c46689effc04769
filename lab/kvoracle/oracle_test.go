package kvoracle_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/lab/kvoracle"
)

// run makes load on a model for some rounds, and closes it under load.
func run(ctx context.Context, m *model, o kvoracle.Options, rounds int) (kvoracle.Stats, error) {
	l := kvoracle.New(m, o)
	if err := l.Fill(ctx); err != nil {
		return l.Stats, err
	}
	for range rounds {
		if err := l.Round(ctx); err != nil {
			return l.Stats, err
		}
	}
	var again *model
	err := l.Close(ctx, .5, func() (kvoracle.Store, error) {
		again = m.reopen()
		return again, nil
	})
	if again != nil {
		err = errors.Join(err, again.Close())
	}
	return l.Stats, err
}

func TestTheControlPasses(t *testing.T) {
	for seed := range uint64(6) {
		s, err := run(t.Context(), newModel(none), kvoracle.Options{Seed: seed, Deadlines: .1, Pipelines: true}, 3)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if s.Refused == 0 || s.Scans < 100 || s.Executes < 100 || s.Edges < s.Requests || s.Undecided != 0 {
			t.Errorf("seed %d: %+v", seed, s)
		}
	}
}

// TestFaultsAreFound shows that the oracle can fail.
func TestFaultsAreFound(t *testing.T) {
	const rounds = 10
	tests := map[string]struct {
		fault fault
		want  []kvoracle.Invariant
	}{
		"torn scan":              {tornScan, []kvoracle.Invariant{kvoracle.Atomic, kvoracle.Sum}},
		"phantom":                {phantom, []kvoracle.Invariant{kvoracle.Atomic, kvoracle.Order}},
		"short scan":             {shortScan, []kvoracle.Invariant{kvoracle.Order, kvoracle.Atomic, kvoracle.Exact}},
		"long scan":              {longScan, []kvoracle.Invariant{kvoracle.Exact}},
		"unsorted scan":          {unsortedScan, []kvoracle.Invariant{kvoracle.Exact}},
		"lost write":             {lostWrite, []kvoracle.Invariant{kvoracle.Order, kvoracle.Atomic}},
		"stale read":             {staleRead, []kvoracle.Invariant{kvoracle.Order, kvoracle.Atomic, kvoracle.Exact}},
		"removed and back":       {resurrects, []kvoracle.Invariant{kvoracle.Order, kvoracle.Atomic, kvoracle.Register}},
		"keeps the caller's":     {keepsValue, []kvoracle.Invariant{kvoracle.Intact}},
		"torn execute":           {tornExecute, []kvoracle.Invariant{kvoracle.Atomic, kvoracle.Sum}},
		"lost update":            {lostUpdate, []kvoracle.Invariant{kvoracle.Once, kvoracle.Sum, kvoracle.Exclusive}},
		"executes together":      {together, []kvoracle.Invariant{kvoracle.Exclusive}},
		"half on failure":        {halfOnFailure, []kvoracle.Invariant{kvoracle.Refused, kvoracle.Sum}},
		"sees the intermediate":  {seesIntermediate, []kvoracle.Invariant{kvoracle.Refused, kvoracle.Sum, kvoracle.Exclusive}},
		"runs twice":             {runsTwice, []kvoracle.Invariant{kvoracle.Once}},
		"done though refused":    {doneThoughRefused, []kvoracle.Invariant{kvoracle.Refused, kvoracle.Order}},
		"runs after its refusal": {runsAfterRefusal, []kvoracle.Invariant{kvoracle.Refused}},
		"reordered":              {reordered, []kvoracle.Invariant{kvoracle.Order, kvoracle.Atomic}},
		"done twice":             {doneTwice, []kvoracle.Invariant{kvoracle.Once}},
		"deadlock":               {deadlocks, []kvoracle.Invariant{kvoracle.Deadlock}},
		"close hangs":            {closeHangs, []kvoracle.Invariant{kvoracle.Deadlock}},
		"close loses":            {closeLoses, []kvoracle.Invariant{kvoracle.Order, kvoracle.Once, kvoracle.Sum, kvoracle.Atomic, kvoracle.Register}},
		"close takes back":       {closeTakesBack, []kvoracle.Invariant{kvoracle.Order, kvoracle.Atomic, kvoracle.Register}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := kvoracle.Options{Seed: 1, Deadlines: .1, Pipelines: true}
			if slices.Contains(test.want, kvoracle.Deadlock) {
				o.Patience = time.Second
			}
			if test.fault == keepsValue {
				// Memory that clients share is a race, which the race detector would find first.
				o.Clients = 1
			}
			_, err := run(t.Context(), newModel(test.fault), o, rounds)
			v, ok := errors.AsType[*kvoracle.Violation](err)
			if !ok || !slices.Contains(test.want, v.Invariant) {
				t.Fatalf("%v, want one of %q", err, test.want)
			}
			t.Logf("%.1500s", v)
		})
	}
}
