package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/store"
)

const (
	// calibrationRounds is the number of rounds, of which the median counts.
	// calibrationAcquires is the number of acquires in a round.
	calibrationRounds, calibrationAcquires = 5, 100_000
	// calibrationBatch is the number of acquires in a transaction, as at a busy
	// site.
	calibrationBatch = 16
)

// Calibrate measures the processor time of an acquire at a site on this machine:
// through a real core, and encoded into the log of a store in a new directory,
// without waiting for a disk. It leaves out the network's protocols. All work of
// the process counts, so the process must do nothing else meanwhile.
func Calibrate(ctx context.Context) (service time.Duration, err error) {
	dir, err := os.MkdirTemp("", "samya-calibrate-")
	if err != nil {
		return 0, fmt.Errorf("calibrating: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	const site = "a"
	disk, err := store.Open(store.Options{
		Dir: dir, Cluster: "calibration", Site: site, Members: []core.SiteID{site},
		CheckpointBytes: 1 << 30, CheckpointEvery: time.Hour,
	})
	if err != nil {
		return 0, fmt.Errorf("calibrating: %w", err)
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	c, err := core.New(core.Config{
		Self: site, Members: []core.SiteID{site}, Rand: rand.New(rand.NewPCG(1, 2)), Retention: retentionOfCalibration, //nolint:gosec // no secret
	}, stored.Restored{
		Catalogue: &stored.Catalogue{Generation: 1},
		Entities:  []stored.Entity{{Name: "vm", Generation: 1, Initial: input.MaxTokens, Limit: input.MaxTokens, Version: 1}},
		Books:     []stored.Books{{Name: "vm", Generation: 1, Left: input.MaxTokens}},
	})
	if err != nil {
		return 0, fmt.Errorf("calibrating: %w", err)
	}
	a := &calibration{core: c, disk: disk}
	// The first round is the warm-up.
	rounds := make([]time.Duration, 0, calibrationRounds+1)
	for range cap(rounds) {
		if ctx.Err() != nil {
			return 0, fmt.Errorf("calibrating: %w", context.Cause(ctx))
		}
		took, err := a.round()
		if err != nil {
			return 0, fmt.Errorf("calibrating: %w", err)
		}
		rounds = append(rounds, took/calibrationAcquires)
	}
	rounds = rounds[1:]
	slices.Sort(rounds)
	return max(1, rounds[len(rounds)/2]), nil
}

// retentionOfCalibration is the time for which requests are remembered, in
// milliseconds. Each batch takes a millisecond.
const retentionOfCalibration = 1000

// calibration makes acquires at a core, in batches.
type calibration struct {
	core  *core.Core
	disk  *store.Store
	now   input.Now
	batch core.Effects
	made  uint64
	in    [calibrationBatch]input.Acquire
}

// round makes a round of acquires, and returns their processor time.
func (a *calibration) round() (time.Duration, error) {
	before, err := processorTime()
	if err != nil {
		return 0, err
	}
	for range calibrationAcquires / calibrationBatch {
		a.now.Tick++
		a.now.Wall++
		for i := range a.in {
			a.made++
			in := &a.in[i]
			*in = input.Acquire{Call: in, Entity: "vm", Tokens: 1}
			// Spread, like the keys of real requests.
			binary.LittleEndian.PutUint64(in.Request[:], a.made*0x9e3779b97f4a7c15)
			binary.LittleEndian.PutUint64(in.Request[8:], a.made)
			a.core.Step(a.now, in)
		}
		a.core.Drain(&a.batch)
		if err := a.disk.Append(&a.batch.Records); err != nil {
			return 0, err
		}
		for i := range a.batch.Replies {
			if code := a.batch.Replies[i].Answer.Code; code != answer.OK {
				return 0, fmt.Errorf("an acquire is answered %v", code)
			}
		}
		a.batch.Reset()
	}
	after, err := processorTime()
	return after - before, err
}

// processorTime returns the processor time of this process so far.
func processorTime() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("reading the processor time of this process: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}
