package journal_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/journal"
)

// TestEndIsWrittenAgain ends a process before its last commit is synced, so that the
// next start reads the commit from the system's cache. The power is lost in each call of
// that start, with all that was not synced. The base then has the commit whole or not at
// all, though the start carries it over in two transactions.
func TestEndIsWrittenAgain(t *testing.T) {
	cuts := 0
	for call := 1; ; call++ {
		d := simdisk.New(rand.New(rand.NewPCG(uint64(call), 0)))
		base := diskBase{newBase(), d}
		j := on(t, disk{d}, base, journal.Options{})
		put(t, j, 1, 1, 10)
		var b journal.Batch
		b.Put(1, key(2), bytes.Repeat([]byte{2}, 30))
		b.Put(1, key(3), bytes.Repeat([]byte{3}, 30))
		if _, err := j.Append(&b); err != nil {
			t.Fatal(err)
		}
		d.Kill()
		d.CutIn(call)
		_, err := journal.Open(disk{d}, base, journal.Options{Owner: owner, ReplayBytes: 40})
		if err == nil {
			break
		}
		if !d.Dead() {
			t.Fatalf("call %d: %v", call, err)
		}
		cuts++
		d.CutHard()
		j = on(t, disk{d}, base, journal.Options{})
		keys := len(base.buckets[1])
		if n := j.Stats().Number; n == 1 && keys != 1 || n == 2 && keys != 3 || n < 1 || n > 2 {
			t.Errorf("the power was lost in call %d: the log ends with commit %d, and the base has %d keys", call, n, keys)
		}
	}
	if cuts < 4 {
		t.Errorf("the start makes %d calls", cuts)
	}
}
