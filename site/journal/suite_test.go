package journal_test

import (
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/journal/journaltest"
)

// TestSuite runs the tests of every log on the log of a directory.
func TestSuite(t *testing.T) {
	journaltest.Suite(t, func(_ *testing.T, seed uint64) journaltest.Rig {
		const longest = 1 << 20
		d, base := simdisk.New(rand.New(rand.NewPCG(seed, 7))), journaltest.NewBase()
		return journaltest.Rig{
			Longest: longest,
			Open: func() (journal.Log, *journaltest.Base, error) {
				j, err := journal.Open(disk{d}, base, journal.Options{Owner: owner, ChunkBytes: 1000, MaxCommit: longest})
				return j, base, err
			},
			Crash: d.Cut,
		}
	})
}
