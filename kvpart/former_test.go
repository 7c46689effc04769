package kvpart

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/kvpart/engine"
)

// TestFormerOnesAreBounded: no generation is opened beyond the bound.
func TestFormerOnesAreBounded(t *testing.T) {
	f, err := engine.Lookup("btree")
	if err != nil {
		t.Fatal(err)
	}
	for most := 2; most < 5; most++ {
		hs := &homes{factory: f, width: 1, most: most, kick: make(chan struct{}, 1)}
		g, err := hs.fresh(1)
		for n := 1; n <= most && err == nil; n++ {
			if g == nil {
				t.Fatalf("of %d generations %d are opened", most, n-1)
			}
			if hs.crowded() != nil {
				t.Errorf("of %d generations %d are too many", most, n-1)
			}
			hs.present.Store(g)
			hs.follow(g)
			g, err = hs.next()
		}
		if err != nil || g != nil {
			t.Errorf("one more than %d generations is opened, %v", most, err)
		}
		if g := hs.crowded(); g == nil || g.number != 1 {
			t.Errorf("of %d generations the first is not to be emptied", most)
		}
	}
}

// TestFormerGenerationIsEmptied: large values of a former generation are all there once
// the upkeep has moved them, in groups.
func TestFormerGenerationIsEmptied(t *testing.T) {
	for _, backend := range []string{"bbolt", "btree"} {
		o := Options{Strategy: Hard, Partitions: 2, Generations: 2, Backend: backend}
		if backend == "bbolt" {
			o.Dirs = []string{t.TempDir()}
		}
		s, u := alone(t, o)
		key := func(i int) string { return fmt.Sprintf("k%03d", i) }
		value := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, bulkMost/8) }
		const keys = 40
		for i := range keys {
			if err := s.Write(t.Context(), key(i), value(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Shuffle(rand.New(rand.NewPCG(1, 2))); err != nil {
			t.Fatal(err)
		}
		for u.step(t.Context()) {
		}
		if n := s.Stats().Generations; n != 1 {
			t.Errorf("%s: %d generations are left", backend, n)
		}
		for i := range keys {
			if got, err := s.Read(t.Context(), key(i), nil); err != nil || !bytes.Equal(got, value(i)) {
				t.Errorf("%s: %s has %d bytes, %v", backend, key(i), len(got), err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFormerGenerationIsLeft: a write moves its key to the present generation, also a
// transaction on keys of a single engine.
func TestFormerGenerationIsLeft(t *testing.T) {
	s, _ := alone(t, Options{Strategy: Hard, Partitions: 2, Backend: "btree"})
	write := map[string]func(key string) error{
		"write": func(key string) error { return s.Write(t.Context(), key, []byte("w")) },
		"execute": func(key string) error {
			return s.Execute(t.Context(), []string{key}, func(tx Tx) error { return tx.Put(key, []byte("w")) })
		},
	}
	each := func() {
		t.Helper()
		for kind, write := range write {
			for i := range 4 {
				if err := write(fmt.Sprint(kind, i)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	each()
	former := s.homes.present.Load()
	if err := s.MoveFirst(8); err != nil {
		t.Fatal(err)
	}
	if s.homes.present.Load() == former {
		t.Fatal("there is no new generation")
	}
	each()
	for _, e := range s.sched.Entries(nil, "", 10) {
		if e.Value.home.gen == former {
			t.Errorf("%s is in the former generation still", e.Key())
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFewMovesDoNotAddUp: the keys moved by a switch do not count for the next.
func TestFewMovesDoNotAddUp(t *testing.T) {
	s, _ := alone(t, Options{Strategy: Hard, Partitions: 2, Backend: "btree"})
	const keys = 2 * fewMoves
	for i := range keys {
		if err := s.Write(t.Context(), fmt.Sprintf("k%03d", i), []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	b := &balance{Scheduler: s.sched, store: s}
	for n := range 8 {
		for _, e := range s.sched.Entries(nil, "", keys/fewMoves) {
			if _, err := b.Assign(e, 1-s.sched.Partition(e)); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Switch(); err != nil {
			t.Fatal(err)
		}
		if g := s.Stats().Generations; g != 1 {
			t.Fatalf("%d generations after %d switches that moved few keys", g, n+1)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestGenerationIsTakenUp: a start goes on with the last generation if its layout fits
// the store, whatever is left of others.
func TestGenerationIsTakenUp(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	for n, start := range []struct {
		strategy   Strategy
		partitions int
		want       uint32
	}{
		{Hard, 5, 1},
		{Hard, 5, 1},
		{Hard, 4, 2}, // the keys of the first are left where they are
		{Hard, 4, 2},
		{HardThreaded, 4, 2},
		{Hard, 5, 3},
		{Hard, 5, 3},
		{Soft, 5, 4},
		{Soft, 9, 4},
	} {
		s, _ := alone(t, Options{Strategy: start.strategy, Partitions: start.partitions, Generations: 8, Backend: "bbolt", Dirs: dirs})
		if got := s.homes.present.Load().number; got != start.want {
			t.Errorf("start %d of %s with %d partitions: generation %d, want %d", n, start.strategy, start.partitions, got, start.want)
		}
		for i := range 5 {
			key := fmt.Sprint(n, " ", i)
			if err := s.Write(t.Context(), key, []byte("v")); err != nil {
				t.Fatal(err)
			}
		}
		if keys := s.Stats().Keys; keys != 5*(n+1) {
			t.Errorf("start %d: %d keys", n, keys)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
