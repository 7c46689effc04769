package kvpart_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/samya-db/samya/kvpart"
)

const (
	accounts = 60
	deposit  = 1000
)

func account(i int) string { return fmt.Sprintf("account%03d", i) }

func balanceOf(value []byte) int {
	if len(value) < 8 {
		return 0
	}
	return int(int64(binary.BigEndian.Uint64(value)))
}

func valueOf(n int) []byte {
	v := make([]byte, 64)
	binary.BigEndian.PutUint64(v, uint64(n))
	return v
}

// TestTransfers has clients move amounts between keys that come and go, while the
// map switches all the time: the sum is the same in each scan, and in the end.
func TestTransfers(t *testing.T) {
	each(t, func(t *testing.T, c combination) {
		t.Helper()
		o := c.options(t)
		o.Policy = kvpart.Policy{}
		o.Generations = 2 + int(rand.Uint64N(3))
		s := open(t, o)
		for i := range accounts {
			if err := s.Write(t.Context(), account(i), valueOf(deposit)); err != nil {
				t.Fatal(err)
			}
		}
		rounds := 400
		if c.durable {
			rounds = 60
		}
		const least = 3 // switches
		ctx, cancel := context.WithCancel(t.Context())
		var clients, shuffler sync.WaitGroup
		var switches atomic.Int64
		if c.strategy != kvpart.Bare {
			shuffler.Go(func() {
				rng := rand.New(rand.NewPCG(1, 1))
				for ctx.Err() == nil || switches.Load() < least {
					// The scan waits for workers, who might not keep up with the switches.
					if err := errors.Join(s.Shuffle(rng), total(s)); err != nil {
						t.Error(err)
						return
					}
					switches.Add(1)
				}
			})
		}
		for seed := range uint64(6) {
			clients.Go(func() {
				if err := transfer(s, rand.New(rand.NewPCG(seed, 0)), rounds); err != nil {
					t.Error(err)
				}
			})
		}
		clients.Wait()
		cancel()
		shuffler.Wait()
		if err := total(s); err != nil {
			t.Error(err)
		}
		st := s.Stats()
		if st.Generations < 1 || st.Generations > o.Generations {
			t.Errorf("%d generations", st.Generations)
		}
		if n, err := s.Scan(t.Context(), "", 2*accounts, nil); err != nil || len(n) != st.Keys {
			t.Errorf("%d keys, counted %d, %v", len(n), st.Keys, err)
		}
		closing(t, s)
		if c.durable {
			s := open(t, o)
			defer closing(t, s)
			if err := total(s); err != nil {
				t.Errorf("opened again: %v", err)
			}
		}
	})
}

// total fails unless all accounts have as much as in the beginning.
func total(s *kvpart.Store) error {
	pairs, err := s.Scan(context.Background(), "", 2*accounts, nil)
	if err != nil {
		return err
	}
	sum := 0
	for _, p := range pairs {
		sum += balanceOf(p.Value)
	}
	if sum != accounts*deposit {
		return fmt.Errorf("%d accounts have %d, want %d", len(pairs), sum, accounts*deposit)
	}
	return nil
}

func transfer(s *kvpart.Store, rng *rand.Rand, rounds int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range rounds {
		if rng.IntN(8) == 0 {
			if err := total(s); err != nil {
				return err
			}
			continue
		}
		from, to := account(rng.IntN(accounts)), account(rng.IntN(accounts))
		if from == to {
			if _, err := s.Read(ctx, from, nil); err != nil && !errors.Is(err, kvpart.ErrNotFound) {
				return err
			}
			continue
		}
		all := rng.IntN(4) == 0
		err := s.Execute(ctx, []string{from, to}, func(tx kvpart.Tx) error {
			var has [2]int
			for i, key := range []string{from, to} {
				v, err := tx.Get(key, nil)
				if err != nil && !errors.Is(err, kvpart.ErrNotFound) {
					return err
				}
				has[i] = balanceOf(v)
			}
			n := has[0] / 2
			if all {
				n = has[0]
			}
			if err := tx.Put(to, valueOf(has[1]+n)); err != nil {
				return err
			}
			if n == has[0] { // an empty account is none
				return tx.Delete(from)
			}
			return tx.Put(from, valueOf(has[0]-n))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
