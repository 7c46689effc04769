package kvpart_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/synctrace"
	"github.com/samya-db/samya/kvpart"
)

// TestSyncedOnTheSystem watches the system calls of a store on several directories that
// brings one generation of engines after the other: what was written is synced, and
// so are the names of all directories. What is left of a generation is set aside
// durably before it is removed.
func TestSyncedOnTheSystem(t *testing.T) {
	synctrace.Run(t, nil, func(dir string, durable func()) {
		o := kvpart.Options{
			Strategy: kvpart.Hard, Partitions: 3, Backend: "bbolt", Generations: 2,
			Dirs: []string{filepath.Join(dir, "one", "disk"), filepath.Join(dir, "another")},
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 2 {
			s := open(t, o)
			for i := range 10 {
				if err := s.Write(t.Context(), fmt.Sprint("key ", i), []byte("v")); err != nil {
					t.Fatal(err)
				}
				durable()
			}
			if err := s.Shuffle(rng); err != nil {
				t.Fatal(err)
			}
			poll := time.NewTicker(time.Millisecond)
			for deadline := time.Now().Add(20 * time.Second); s.Stats().Generations > 1; <-poll.C {
				if time.Now().After(deadline) {
					t.Fatal("the former generation does not end")
				}
			}
			poll.Stop()
			closing(t, s)
			durable()
		}
	})
}
