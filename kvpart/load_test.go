package kvpart_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart"
)

// TestLoadIsNoUse writes in bulk, which the graph does not hold.
func TestLoadIsNoUse(t *testing.T) {
	for strategy, balance := range map[kvpart.Strategy]kvpart.Balance{
		kvpart.Soft: kvpart.BalanceGraph, kvpart.Threaded: kvpart.BalanceGraph, kvpart.Hard: kvpart.BalanceLibra,
	} {
		s, err := kvpart.Open(kvpart.Options{
			Strategy: strategy, Partitions: 2, Backend: "btree",
			Policy: kvpart.Policy{Kind: kvpart.Async, Sample: 1, Share: 1, Balance: balance},
		})
		if err != nil {
			t.Fatal(err)
		}
		const loaded, used = 500, 50
		for i := range loaded {
			if err := s.Load(t.Context(), fmt.Sprint(i), []byte("a")); err != nil {
				t.Fatal(err)
			}
		}
		for i := range used {
			if err := s.Write(t.Context(), fmt.Sprint(i), []byte("b")); err != nil {
				t.Fatal(err)
			}
		}
		poll := time.NewTicker(time.Millisecond)
		defer poll.Stop()
		for deadline := time.Now().Add(10 * time.Second); s.Stats().Tracked < used; <-poll.C {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d tracked", strategy, s.Stats().Tracked)
			}
		}
		if st := s.Stats(); st.Tracked != used || st.Vertices != used || st.Keys != loaded {
			t.Errorf("%s: %d tracked, %d vertices, %d keys", strategy, st.Tracked, st.Vertices, st.Keys)
		}
		if v, err := s.Read(t.Context(), "499", nil); err != nil || string(v) != "a" {
			t.Errorf("%s: read %q, %v", strategy, v, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
