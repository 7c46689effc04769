package kvpart_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/kvpart/engine"
)

// TestLoadsSpread begins with all keys in a single range on the first of two partitions. Half of the
// requests take processor time, half write. In the end both partitions have both kinds of
// load, and the data has followed.
func TestLoadsSpread(t *testing.T) {
	t.Parallel()
	const keys, patience = 200, time.Minute
	for _, balance := range []kvpart.Balance{kvpart.BalanceLibra, kvpart.BalanceBoth} {
		t.Run(string(balance), func(t *testing.T) {
			t.Parallel()
			f, err := engine.Lookup("bbolt")
			if err != nil {
				t.Fatal(err)
			}
			dir := tempDir(t)
			s := open(t, kvpart.Options{
				Strategy: kvpart.HardThreaded, Partitions: 2, Place: kvpart.Within, Backend: "bbolt", Engine: &f,
				Dirs:   []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")},
				Policy: kvpart.Policy{Kind: kvpart.Async, Balance: balance},
			})
			defer closing(t, s)
			compute := func(i int) string { return fmt.Sprintf("c%04d", i) }
			write := func(i int) string { return fmt.Sprintf("w%04d", i) }
			for i := range keys {
				for _, key := range []string{compute(i), write(i)} {
					if err := s.Load(t.Context(), key, []byte("v")); err != nil {
						t.Fatal(err)
					}
				}
			}
			// use makes some requests from four goroutines.
			use := func() {
				var clients errgroup.Group
				for c := range 4 {
					clients.Go(func() error {
						for i := range keys / 4 {
							i = i*4 + c
							err := s.Execute(t.Context(), []string{compute(i)}, func(tx kvpart.Tx) error {
								v, err := tx.Get(compute(i), nil)
								for range 400 {
									sum := sha256.Sum256(v)
									v = sum[:]
								}
								return err
							})
							if err != nil {
								return err
							}
							if err := s.Write(t.Context(), write(i), make([]byte, 4<<10)); err != nil {
								return err
							}
						}
						return nil
					})
				}
				if err := clients.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			for {
				before := s.Stats()
				use()
				after := s.Stats()
				cpu, disk := spread(after.CPU, before.CPU), spread(after.Written, before.Written)
				if cpu < 1.4 && disk < 1.4 && after.Followed > 0 {
					return
				}
				if time.Since(began) > patience {
					t.Fatalf("a partition has %.2f of the mean processor time, and %.2f of the bytes written; %+v", cpu, disk, after)
				}
			}
		})
	}
}

// spread is the largest growth over the mean growth.
func spread[T int64 | time.Duration](after, before []T) float64 {
	sum, grown := 0., make([]float64, len(after))
	for i := range after {
		grown[i] = float64(after[i] - before[i])
		sum += grown[i]
	}
	return slices.Max(grown) * float64(len(after)) / sum
}
