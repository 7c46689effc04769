package kvpart

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestUpkeepIsNotTracked checks that emptying former generations tells the policy
// nothing: keys that are moved together are not used together.
func TestUpkeepIsNotTracked(t *testing.T) {
	s, err := Open(Options{
		Strategy: Hard, Backend: "hash", Partitions: 2, Seed: 1,
		Policy: Policy{Kind: Async, Gain: -1, Share: 1, Sample: 1, Every: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	key := func(i int) string { return fmt.Sprintf("k%03d", i) }
	const keys = 500
	for i := range keys {
		if err := s.Write(context.Background(), key(i), []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	deadline := time.Now().Add(time.Minute)
	var value []byte
	for s.sched.Stats().Upkeep < 20 || s.Stats().Applied < 20 {
		if time.Now().After(deadline) {
			t.Fatalf("%d moves, %+v", s.sched.Stats().Upkeep, s.Stats())
		}
		// A switch that moves few keys brings no generation to empty another for.
		if err := errors.Join(s.Shuffle(rng), s.Write(context.Background(), key(rng.IntN(keys)), value)); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			if value, err = s.Read(context.Background(), key(rng.IntN(keys)), value[:0]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := s.Stats().Edges; n != 0 {
		t.Errorf("%d edges, of requests of one key each", n)
	}
}
