package coreslab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// syncBlock is about the bytes of a commit of some hundred requests.
const syncBlock = 16 << 10

// Syncs measures n syncs of a file in a directory, each after a write, and n beside another
// sync of the file. It returns their times in nanoseconds, sorted, without the longest.
func Syncs(dir string, n int) (alone, pairs []float64, err error) {
	dir, err = os.MkdirTemp(dir, "cores-*.tmp")
	if err != nil {
		return nil, nil, fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f, err := os.Create(filepath.Join(dir, "synced"))
	if err != nil {
		return nil, nil, fmt.Errorf("make a file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(make([]byte, syncBlock*3*n)); err != nil {
		return nil, nil, fmt.Errorf("write a file: %w", err)
	}
	if err := f.Sync(); err != nil {
		return nil, nil, fmt.Errorf("sync a file: %w", err)
	}
	buf := make([]byte, syncBlock)
	var failed error
	one := func(at int) float64 {
		_, err := f.WriteAt(buf, int64(at)*syncBlock)
		began := time.Now()
		if err = errors.Join(err, syncData(f)); err != nil {
			failed = err
		}
		return float64(time.Since(began).Nanoseconds())
	}
	for i := range n {
		alone = append(alone, one(i))
	}
	var both sync.WaitGroup
	var sides [2][]float64
	for side := range sides {
		both.Go(func() {
			for i := range (n + side) / 2 {
				sides[side] = append(sides[side], one(n+2*i+side))
			}
		})
	}
	both.Wait()
	if failed != nil {
		return nil, nil, fmt.Errorf("sync a file: %w", failed)
	}
	pairs = append(sides[0], sides[1]...)
	return sorted(alone), sorted(pairs), nil
}

// sorted returns times in their order, without the longest hundredth: a short run in virtual
// time would depend on whether it meets such a sync.
func sorted(times []float64) []float64 {
	slices.Sort(times)
	return times[:max(1, len(times)*99/100)]
}
