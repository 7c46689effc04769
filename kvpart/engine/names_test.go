package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/dirs"
	"github.com/samya-db/samya/internal/synctrace"
	"github.com/samya-db/samya/kvpart/engine"
)

// TestSyncedOnTheSystem watches the system calls of durable engines: the writes of Put,
// Delete and Apply are synced, and so are the names of their files.
func TestSyncedOnTheSystem(t *testing.T) {
	for _, name := range engine.Names() {
		f, err := engine.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if !f.Durable {
			continue
		}
		// Others hold locks, and tell of files that are of no use any more; pebble's
		// options can be written anew.
		ignore := func(path string) bool {
			base := filepath.Base(path)
			return base == "LOCK" || strings.HasPrefix(base, "OPTIONS-") || strings.HasPrefix(base, "temporary.")
		}
		t.Run(name, func(t *testing.T) {
			synctrace.Run(t, ignore, func(dir string, durable func()) {
				must := func(err error) {
					t.Helper()
					if err != nil {
						t.Fatal(err)
					}
				}
				must(errors.Join(os.Mkdir(dir, 0o700), dirs.Sync(filepath.Dir(dir))))
				for range 2 {
					e, err := f.Open(engine.Config{Dir: dir})
					must(err)
					for i := range 10 {
						key := fmt.Sprint("key ", i)
						must(e.Put(key, make([]byte, 1000)))
						durable()
						must(e.Apply([]engine.Write{{Key: key, Value: []byte("v")}, {Key: "k", Delete: true}}))
						durable()
						must(e.Delete(key))
						durable()
					}
					must(e.Close())
				}
			})
		})
	}
}
