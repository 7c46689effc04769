package kvpart_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart"
)

// TestGenerations switches more often than there may be generations: the oldest are
// emptied and closed, and their directories removed, without any request.
func TestGenerations(t *testing.T) {
	each(t, func(t *testing.T, c combination) {
		t.Helper()
		if c.strategy != kvpart.Hard && c.strategy != kvpart.HardThreaded {
			return
		}
		o := c.options(t)
		o.Policy, o.Generations = kvpart.Policy{}, 2
		s := open(t, o)
		const n = 300
		want := make(map[string]string)
		for i := range n {
			k := fmt.Sprintf("key%03d", i)
			want[k] = fmt.Sprint(i)
			if err := s.Write(t.Context(), k, []byte(want[k])); err != nil {
				t.Fatal(err)
			}
		}
		rng := rand.New(rand.NewPCG(3, 4))
		poll := time.NewTicker(time.Millisecond)
		defer poll.Stop()
		deadline := time.Now().Add(20 * time.Second)
		for range 3 {
			if err := s.Shuffle(rng); err != nil {
				t.Fatal(err)
			}
			for ; s.Stats().Generations > 1; <-poll.C {
				if time.Now().After(deadline) {
					t.Fatalf("%d generations are left", s.Stats().Generations)
				}
			}
			if err := holds(s, want); err != nil {
				t.Fatal(err)
			}
		}
		closing(t, s)
		for i, dir := range o.Dirs {
			found, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			// Partitions 0 and 2 are in the first directory, 1 is in the second.
			if len(found) != 2-i {
				t.Errorf("directory %d holds %v", i, found)
			}
		}
		if c.durable {
			s := open(t, o)
			defer closing(t, s)
			if err := holds(s, want); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestForeign opens directories with foreign files.
func TestForeign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := kvpart.Options{Strategy: kvpart.Soft, Backend: "bbolt", Dirs: []string{dir}}
	if err := errors.Join(
		os.Mkdir(filepath.Join(dir, "lost+found"), 0o700),
		os.WriteFile(filepath.Join(dir, "notes"), []byte("mine"), 0o600),
		os.Mkdir(filepath.Join(dir, "bbolt-g00000009-p0000.gone"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	s := open(t, o)
	if err := s.Write(t.Context(), "k", bytes.Repeat([]byte("v"), 100)); err != nil {
		t.Fatal(err)
	}
	if other, err := kvpart.Open(o); err == nil {
		t.Errorf("opened twice: %v", other)
	}
	closing(t, s)
	if _, err := os.Stat(filepath.Join(dir, "bbolt-g00000009-p0000.gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was being removed is there: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "tape-g00000001-p0000"), 0o700); err != nil {
		t.Fatal(err)
	}
	if other, err := kvpart.Open(o); err == nil {
		t.Errorf("opened the engine of an unknown backend: %v", other)
	}
}

// TestFewMoveWithinTheGeneration checks that a switch that moves few keys brings no new
// engines, and that the moved keys move as they are written.
func TestFewMoveWithinTheGeneration(t *testing.T) {
	each(t, func(t *testing.T, c combination) {
		t.Helper()
		if c.strategy != kvpart.Hard && c.strategy != kvpart.HardThreaded {
			t.Skip("one engine")
		}
		o := c.options(t)
		o.Policy, o.Partitions = kvpart.Policy{}, 2
		s := open(t, o)
		const keys = 40
		for i := range keys {
			if err := s.Write(t.Context(), account(i), valueOf(i)); err != nil {
				t.Fatal(err)
			}
		}
		before := s.Engines()
		if err := s.MoveFirst(2); err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			if err := s.Write(t.Context(), account(i), valueOf(i+1)); err != nil {
				t.Fatal(err)
			}
		}
		if g := s.Stats().Generations; g != 1 {
			t.Errorf("%d generations after two of %d keys moved", g, keys)
		}
		after := s.Engines()
		if before[0]+before[1] != keys || after[0]+after[1] != keys {
			t.Errorf("%v keys in the engines before and %v after, want %d in all", before, after, keys)
		}
		if s.Misplaced() != 0 {
			t.Errorf("%d keys are not in the engine of their partition", s.Misplaced())
		}
		for i := range keys {
			if v, err := s.Read(t.Context(), account(i), nil); err != nil || balanceOf(v) != i+1 {
				t.Errorf("%s is %d, want %d: %v", account(i), balanceOf(v), i+1, err)
			}
		}
	})
}
