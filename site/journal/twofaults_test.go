package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/journal"
)

// fails runs a journal until a call on the disk fails, or all is done: commits of several
// appends, some of them with files that grow, and checkpoints.
func (v *interleaved) fails() {
	for n := 0; n < 5 && v.journal.Failed() == nil && v.err == nil; n++ {
		for range 1 + v.r.IntN(3) {
			v.put(1 + v.r.IntN(600))
		}
		if v.r.IntN(3) == 0 {
			v.put(70_000)
		}
		v.sync()
		if v.r.IntN(2) == 0 {
			for more := true; more; {
				var err error
				if more, err = v.journal.Step(); err != nil {
					v.check(err)
					more = false
				}
			}
		}
	}
}

// put appends a commit of two values. The first has size bytes.
func (v *interleaved) put(size int) {
	if v.journal.Failed() != nil {
		return
	}
	s := v.states[len(v.states)-1].clone()
	v.batch.Reset()
	for _, n := range []int{size, 3} {
		op := journal.Op{Kind: journal.Put, Bucket: 1, Key: []byte{'a' + byte(v.r.IntN(9))}, Value: bytes.Repeat([]byte{byte(v.r.Uint32())}, n)}
		add(&v.batch, op)
		apply(s, op)
	}
	v.states = append(v.states, s)
	_, err := v.journal.Append(&v.batch)
	v.check(err)
}

// calls counts all calls that changed a disk.
func calls(d *simdisk.Disk) (n int) {
	for _, o := range []simdisk.Op{simdisk.Write, simdisk.Sync, simdisk.Create, simdisk.Rename, simdisk.Remove, simdisk.SyncNames, simdisk.Other} {
		n += d.Calls(o)
	}
	return n
}

// twoFaults has the failAt-th call fail and starts on the state that processes see then.
// The power is lost at the cutAt-th call from there on, or in the end if cutAt is 0.
// twoFaults returns the number of calls that can fail, and the number of calls from the
// start on.
func twoFaults(seed uint64, failAt, cutAt int) (points, after int, err error) {
	// Only the remains of a failed call are drawn anew for each call.
	r := rand.New(rand.NewPCG(seed, 22))
	v := &interleaved{r: r, disk: simdisk.New(rand.New(rand.NewPCG(seed, uint64(failAt)))), states: []state{{}}, failAt: failAt, within: true}
	v.base = hookedBase{diskBase{newBase(), v.disk}, v.count}
	if err := v.open("the first start"); err != nil && !errors.Is(err, syscall.EIO) {
		return 0, 0, err
	}
	if v.journal != nil {
		v.fails()
	}
	if points = v.points; v.err != nil {
		return 0, 0, v.err
	}
	v.disk.Kill()
	v.failAt = 0
	before := calls(v.disk)
	if cutAt > 0 {
		v.disk.CutIn(cutAt)
	}
	for n, step := range []func() error{
		func() error { return v.open("behind the failure") },
		func() error { v.put(70_000); v.put(10); v.sync(); return v.err },
		func() error {
			_, err := v.journal.Step()
			v.check(err)
			v.put(20)
			v.sync()
			return v.err
		},
	} {
		if v.disk.Dead() {
			break
		}
		if err := step(); err != nil {
			return 0, 0, fmt.Errorf("step %d: %w", n, err)
		}
	}
	after = calls(v.disk) - before
	v.disk.CutHard()
	return points, after, v.open("after the loss of power")
}

// count is a call back that begins nothing.
func (v *interleaved) count() {
	v.within = false
	j := v.journal
	v.journal = nil
	v.at()
	v.journal, v.within = j, true
}

// TestTwoFaults has each call on the disk fail in turn, so that processes read bytes that
// the disk does not have. It starts again, and loses the power at every other call of
// that start and behind it. All commits that were acknowledged, or that the start told
// of, are there then, in order, and no commit in part.
func TestTwoFaults(t *testing.T) {
	race.OneGoroutine(t)
	from, all := rand.Uint64(), 0
	for seed := from; seed < from+2; seed++ {
		points, _, err := twoFaults(seed, 0, 0)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for failAt := 1; failAt <= points; failAt++ {
			_, after, err := twoFaults(seed, failAt, 0)
			if err != nil {
				t.Fatalf("seed %d, failed at %d: %v", seed, failAt, err)
			}
			for cutAt := 1 + failAt%2; cutAt <= after; cutAt += 2 {
				if _, _, err := twoFaults(seed, failAt, cutAt); err != nil {
					t.Fatalf("seed %d, failed at %d, power lost at %d: %v", seed, failAt, cutAt, err)
				}
				all++
			}
		}
	}
	t.Logf("%d pairs of faults, of the seeds from %d on", all, from)
}
