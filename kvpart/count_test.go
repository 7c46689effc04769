package kvpart

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/samya-db/samya/kvpart/engine"
)

// counted returns the number of keys that the homes of a store count, and hold.
func counted(t *testing.T, s *Store) (count, held int64) {
	t.Helper()
	s.homes.mu.Lock()
	defer s.homes.mu.Unlock()
	for _, g := range s.homes.all {
		for _, h := range g.homes {
			if h.closed {
				continue
			}
			count += h.keys.Load()
			if err := h.engine.Each(func(string, []byte) error { held++; return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	return count, held
}

// TestHomesCountWhatTheyHold: whatever was written, overwritten, removed and written
// again, by itself or in transactions, the homes count the keys that are there. A home
// that counts more is never closed; a home that counts less is closed while it holds
// keys.
func TestHomesCountWhatTheyHold(t *testing.T) {
	for _, strategy := range []Strategy{Soft, Hard, Threaded, HardThreaded} {
		t.Run(string(strategy), func(t *testing.T) {
			s, err := Open(Options{Strategy: strategy, Partitions: 3, Backend: "btree"})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(rand.Uint64(), 1))
			key := func() string { return fmt.Sprint("key", r.IntN(12)) }
			for range 400 {
				switch r.IntN(4) {
				case 0:
					err = s.Delete(t.Context(), key())
				case 1:
					a, b := key(), key()
					err = s.Execute(t.Context(), []string{a, b}, func(tx Tx) error { return errors.Join(tx.Put(a, []byte("x")), tx.Delete(b)) })
				default:
					err = s.Write(t.Context(), key(), []byte("v"))
				}
				if err != nil {
					t.Fatal(err)
				}
				if count, held := counted(t, s); count != held || held != s.live.Load() {
					t.Fatalf("the homes count %d keys and hold %d, of %d that are there", count, held, s.live.Load())
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestVersionsGrowOverStarts: a start goes on above the highest version of any copy,
// whichever copy it finds last: otherwise the next write loses to a former copy.
func TestVersionsGrowOverStarts(t *testing.T) {
	for _, strategy := range []Strategy{Soft, Hard} {
		o := Options{Strategy: strategy, Partitions: 2, Backend: "bbolt", Dirs: []string{t.TempDir()}}
		highest := uint64(0)
		for range 3 {
			s, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.homes.version.Load(); got < highest {
				t.Errorf("%s: a start goes on from version %d, and there is %d", strategy, got, highest)
			}
			// The first key in order is the last written, and has the highest version.
			for i := range 8 {
				if err := s.Write(t.Context(), fmt.Sprint("key", 9-i), []byte("v")); err != nil {
					t.Fatal(err)
				}
			}
			highest = s.homes.version.Load()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// failingEngine is an engine whose transactions fail while fails is set.
type failingEngine struct {
	engine.Engine
	fails bool
}

var errFails = errors.New("it fails")

func (e *failingEngine) Apply(writes []engine.Write) error {
	if e.fails {
		return errFails
	}
	return e.Engine.Apply(writes)
}

// TestWhatIsGoneStaysGone: a start that cannot remove a copy of a removed key keeps the
// mark that the key is gone. Without the mark the next start would find the key again.
func TestWhatIsGoneStaysGone(t *testing.T) {
	stamped := func(m mark, version uint64) []byte {
		b := make([]byte, stampSize)
		putStamp(b, m, version)
		return b
	}
	for range 32 { // homes are gone through in any order
		hs := &homes{}
		var engines []*failingEngine
		for n, copies := range []map[string][]byte{
			{"k": stamped(markValue, 1), "other": stamped(markValue, 2)}, {"k": stamped(markValue, 3)}, {"k": stamped(markGone, 4)},
		} {
			factory, err := engine.Lookup("btree")
			if err != nil {
				t.Fatal(err)
			}
			inner, err := factory.Open(engine.Config{})
			if err != nil {
				t.Fatal(err)
			}
			e := &failingEngine{Engine: inner, fails: n == 0}
			engines = append(engines, e)
			for key, value := range copies {
				if err := inner.Put(key, value); err != nil {
					t.Fatal(err)
				}
			}
			g := &generation{number: uint32(n)}
			g.homes = []*home{{engine: e, gen: g, stamped: true}}
			hs.all = append(hs.all, g)
		}
		if _, err := hs.load(); !errors.Is(err, errFails) {
			t.Fatalf("a copy that cannot be removed: %v", err)
		}
		if _, err := engines[2].Get("k", nil); err != nil {
			t.Fatalf("what marks that the key is gone: %v", err)
		}
		engines[0].fails = false
		keys, err := hs.load()
		if err != nil {
			t.Fatal(err)
		}
		if _, back := keys["k"]; back || len(keys) != 1 {
			t.Fatalf("keys %v", keys)
		}
		if slices.ContainsFunc(engines, func(e *failingEngine) bool { _, err := e.Get("k", nil); return err == nil }) {
			t.Fatal("a copy of the key is left")
		}
	}
}
