package kvpart_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/synctrace"
	"github.com/samya-db/samya/kvpart"
)

// TestSyncedOnTheSystem watches the system calls of a store on several directories that
// brings generations of engines in turn. All writes are synced, and so are the names of
// all directories. The rest of a generation is set aside durably before it is removed.
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

// TestNamesThatAKilledProcessLeft: a process is killed once it has named the directory of
// an engine, or has set a directory aside, before it syncs the name. The next start syncs
// the names before it writes to the first or removes the second.
func TestNamesThatAKilledProcessLeft(t *testing.T) {
	const engine, following = "bbolt-g00000001-p0000", "bbolt-g00000002-p0000"
	for what, kill := range map[string]func(root string) error{
		"named": func(root string) error { return os.Mkdir(filepath.Join(root, following), 0o700) },
		"set aside": func(root string) error {
			return os.Rename(filepath.Join(root, engine), filepath.Join(root, engine+".gone"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctrace.Run(t, nil, func(dir string, durable func()) {
				o := kvpart.Options{Strategy: kvpart.Soft, Partitions: 2, Backend: "bbolt", Dirs: []string{filepath.Join(dir, "disk")}}
				s := open(t, o)
				if err := s.Write(t.Context(), "key", []byte("v")); err != nil {
					t.Fatal(err)
				}
				closing(t, s)
				durable()
				if err := kill(o.Dirs[0]); err != nil {
					t.Fatal(err)
				}
				s = open(t, o)
				if err := s.Write(t.Context(), "another key", []byte("w")); err != nil {
					t.Fatal(err)
				}
				durable()
				closing(t, s)
				durable()
			})
		})
	}
}
