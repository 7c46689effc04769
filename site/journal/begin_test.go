package journal_test

import (
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/journal/journaltest"
)

// TestBeginOfACopy begins a log behind the commits of a copied base: commits go on there, a
// loss of power keeps them, and no log is begun over another.
func TestBeginOfACopy(t *testing.T) {
	d, base := simdisk.New(rand.New(rand.NewPCG(3, 7))), journaltest.NewBase()
	if err := base.Apply(nil, new(journal.Number(7))); err != nil {
		t.Fatal(err)
	}
	if err := journal.Begin(disk{d}, owner, 7); err != nil {
		t.Fatal(err)
	}
	d.CutHard()
	if err := journal.Begin(disk{d}, owner, 7); err == nil {
		t.Error("a log is begun over another")
	}
	var b journal.Batch
	for want := journal.Number(8); want < 12; want++ {
		j, err := journal.Open(disk{d}, base, journal.Options{Owner: owner})
		if err != nil {
			t.Fatal(err)
		}
		b.Reset()
		b.Put(1, []byte("k"), []byte("v"))
		n, err := j.Append(&b)
		if err == nil {
			err = j.Sync()
		}
		if n != want || err != nil {
			t.Fatalf("commit %d: %v, want %d", n, err, want)
		}
		d.CutHard()
	}
}
