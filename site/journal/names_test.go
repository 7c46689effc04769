package journal_test

import (
	"os"
	"testing"

	"github.com/samya-db/samya/internal/synctrace"
	"github.com/samya-db/samya/site/journal"
)

// TestSyncedOnTheSystem watches the system calls of a journal on the system's files, over
// commits, growth, checkpoints and starts. Acknowledged commits are synced, and so are
// the names of their files.
func TestSyncedOnTheSystem(t *testing.T) {
	synctrace.Run(t, nil, func(path string, durable func()) {
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		// The owner of the directory makes its name durable.
		must(os.Mkdir(path, 0o700))
		dir, base := journal.OSDir(path), newBase()
		must(journal.OSDir(path + "/..").Sync())
		for start := range 3 {
			j, err := journal.Open(dir, base, journal.Options{Owner: owner, ChunkBytes: 100_000})
			must(err)
			durable()
			var b journal.Batch
			for n := range uint64(20) {
				b.Reset()
				b.Put(1, key(n), make([]byte, 20_000))
				must(j.Commit(&b))
				durable()
				if n == 5 || n == 10 && start > 0 || n == 15 {
					steps(t, j)
					durable()
				}
			}
			must(j.Close())
		}
	})
}
