package kvpart

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/samya-db/samya/kvpart/engine"
	"github.com/samya-db/samya/kvpart/engine/enginetest"
)

// onFaulty returns options of a store on a disk; its engines ask fail before each call.
func onFaulty(t *testing.T, strategy Strategy, fail func(op enginetest.Op, key string) error) Options {
	t.Helper()
	f, err := engine.Lookup("bbolt")
	if err != nil {
		t.Fatal(err)
	}
	faulty := enginetest.Faulty(f, fail)
	return Options{Strategy: strategy, Partitions: 3, Backend: "bbolt", Dirs: []string{t.TempDir()}, Engine: &faulty}
}

// TestBeginFails: a failed start lets go of all engines that it had opened, and leaves no
// engine of a generation that has not begun.
func TestBeginFails(t *testing.T) {
	for failing := 1; failing <= 3; failing++ {
		left := failing
		open := 0
		o := onFaulty(t, Hard, func(op enginetest.Op, _ string) error {
			switch op {
			case enginetest.OpOpen:
				if left--; left == 0 {
					return errFails
				}
				open++
			case enginetest.OpClose:
				open--
			default:
			}
			return nil
		})
		for start := range 2 {
			if _, err := Open(o); !errors.Is(err, errFails) {
				t.Fatalf("a start on an engine that cannot be opened: %v", err)
			}
			if open != 0 {
				t.Errorf("engine %d cannot be opened, and %d others stay open", failing, open)
			}
			if start == 0 {
				// The directory of the failed engine may be left.
				if found, err := os.ReadDir(o.Dirs[0]); err != nil || len(found) > 1 {
					t.Errorf("engine %d cannot be opened, and %v is left, %v", failing, found, err)
				}
				left = -1
				s, err := Open(o)
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(s.Write(t.Context(), "k", []byte("v")), s.Close()); err != nil {
					t.Fatal(err)
				}
				left = failing
			}
		}
		left = -1
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := s.Read(t.Context(), "k", nil); err != nil || string(v) != "v" {
			t.Errorf("read %q, %v", v, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBeginRemovesManyCopies: a start removes all copies that do not count, however many
// there are.
func TestBeginRemovesManyCopies(t *testing.T) {
	f, err := engine.Lookup("btree")
	if err != nil {
		t.Fatal(err)
	}
	const keys = 2500
	hs := &homes{}
	for n := range uint32(3) {
		e, err := f.Open(engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			b := make([]byte, stampSize)
			putStamp(b, markValue, uint64(n+1))
			if err := e.Put(fmt.Sprint(i), b); err != nil {
				t.Fatal(err)
			}
		}
		g := &generation{number: n}
		g.homes = []*home{{engine: e, gen: g, stamped: true}}
		hs.all = append(hs.all, g)
	}
	found, err := hs.load()
	if err != nil || len(found) != keys {
		t.Fatalf("%d keys are found, want %d, %v", len(found), keys, err)
	}
	for n, want := range []int{0, 0, keys} {
		held := 0
		h := hs.all[n].homes[0]
		if err := h.engine.Each(func(string, []byte) error { held++; return nil }); err != nil {
			t.Fatal(err)
		}
		if held != want || h.keys.Load() != int64(want) {
			t.Errorf("engine %d holds %d copies and counts %d, want %d", n, held, h.keys.Load(), want)
		}
	}
}

// TestBeginBare: a start without partitions takes the keys of all engines into a single
// engine, and leaves no other. If a write of this fails, the next start finds all keys.
func TestBeginBare(t *testing.T) {
	const keys = moveMost + 16
	for failing := range int64(7) {
		var left atomic.Int64
		o := onFaulty(t, Hard, func(op enginetest.Op, _ string) error {
			if op == enginetest.OpApply && left.Add(-1) == 0 {
				return errFails
			}
			return nil
		})
		s, err := Open(o)
		for i := range keys {
			if err == nil {
				err = s.Write(t.Context(), fmt.Sprintf("k%03d", i), fmt.Append(nil, i))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		o.Strategy = Bare
		left.Store(failing)
		if s, err = Open(o); err != nil {
			if !errors.Is(err, errFails) {
				t.Fatal(err)
			}
			if s, err = Open(o); err != nil {
				t.Fatal(err)
			}
		}
		pairs, err := s.Scan(t.Context(), "", keys+1, nil)
		if err != nil || len(pairs) != keys {
			t.Errorf("write %d failed: %d keys of %d are found, %v", failing, len(pairs), keys, err)
		}
		for i, p := range pairs {
			if p.Key != fmt.Sprintf("k%03d", i) || string(p.Value) != fmt.Sprint(i) {
				t.Errorf("write %d failed: %q has %q", failing, p.Key, p.Value)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if found, err := os.ReadDir(o.Dirs[0]); err != nil || len(found) != 1 {
			t.Errorf("%v are left, want one engine, %v", found, err)
		}
	}
}
