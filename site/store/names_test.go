package store_test

import (
	"path/filepath"
	"testing"

	"github.com/samya-db/samya/internal/synctrace"
	"github.com/samya-db/samya/site/store"
)

// TestSyncedOnTheSystem watches the system calls of a store from its first start on.
// Acknowledged commits are synced, and so are the names of their files and directories,
// up to the directory that was there.
func TestSyncedOnTheSystem(t *testing.T) {
	synctrace.Run(t, nil, func(dir string, durable func()) {
		o := options(filepath.Join(dir, "of", "a", "site"))
		o.CheckpointBytes = 1 << 40
		for start := range 3 {
			s := open(t, o)
			durable()
			for n := range uint64(3) {
				commit(t, s, 1+n+10*uint64(start))
				durable()
			}
			for more := true; more; {
				var err error
				if more, err = s.Step(); err != nil {
					t.Fatal(err)
				}
				durable()
			}
			commit(t, s, 5+10*uint64(start))
			if start == 1 {
				if err := store.Abandon(s); err != nil {
					t.Fatal(err)
				}
			} else {
				closed(t, s)
				durable()
			}
		}
	})
}
