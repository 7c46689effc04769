package kvpart

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// TestWrittenBytes counts the bytes that the engines of each partition write: a write counts for
// its partition alone, and no count falls as generations follow each other and close.
func TestWrittenBytes(t *testing.T) {
	s, u := alone(t, Options{
		Strategy: Hard, Partitions: 2, Generations: 2, Backend: "bbolt", Dirs: []string{t.TempDir(), t.TempDir()},
	})
	hs := &s.homes
	value := bytes.Repeat([]byte("v"), 10_000)
	last := hs.written(nil)
	grows := func(what string, grew func(p int, by int64) bool) {
		t.Helper()
		now := hs.written(nil)
		for p := range now {
			if by := now[p] - last[p]; !grew(p, by) {
				t.Errorf("%s: partition %d grew by %d bytes", what, p, by)
			}
		}
		last = now
	}
	for i := range 4 { // round-robin
		key := fmt.Sprint("k", i)
		if err := s.Write(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
		at := s.sched.Partition(s.sched.Entry(key))
		grows("a write", func(p int, by int64) bool { return (by >= int64(len(value))) == (p == at) && by >= 0 })
	}
	for range 5 {
		former := s.homes.present.Load()
		err := s.Reassign(func(key string) int { return 1 - s.sched.Partition(s.sched.Entry(key)) })
		if err != nil {
			t.Fatal(err)
		}
		for u.step(t.Context()) {
		}
		if s.homes.present.Load() == former || s.Stats().Generations != 1 {
			t.Fatal("the former generation was not left and closed")
		}
		grows("a generation", func(_ int, by int64) bool { return by >= 2*int64(len(value)) })
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	grows("the end", func(_ int, by int64) bool { return by == 0 })
}

// TestNothingIsWrittenInMemory: engines in memory write to no disk.
func TestNothingIsWrittenInMemory(t *testing.T) {
	s, _ := alone(t, Options{Strategy: Hard, Partitions: 3, Backend: "btree"})
	if err := s.Write(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	if n := s.homes.written([]int64{9, 9, 9, 9}); !slices.Equal(n, []int64{0, 0, 0}) {
		t.Errorf("%v bytes were written", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
