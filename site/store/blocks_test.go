package store_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/store"
	bolt "go.etcd.io/bbolt"
)

// blocksOf reads the blocks of requests.
func blocksOf(t *testing.T, r stored.Restored) stored.BlockList {
	t.Helper()
	all, err := r.AllBlocks()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// loadAll loads a store and its blocks of requests. The first error ends it.
func loadAll(s *store.Store) (stored.Restored, error) {
	r, err := s.Load()
	if err == nil {
		_, err = r.AllBlocks()
	}
	return r, err
}

// TestDamagedBlockStopsTheStart: a start reads the blocks of requests one after the other,
// after all else. The error of a damaged block in their midst reaches the site.
func TestDamagedBlockStopsTheStart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, options(dir))
	for n := range uint64(5) {
		r := stored.Records{Commits: message.Commits(n + 1), Block: stored.Block{Sequence: n + 1, Records: []stored.Request{{Key: attempt.Key{byte(n)}}}}}
		if err := s.Commit(&r); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, s)
	start := func() (int, error) {
		s := open(t, options(dir))
		defer closed(t, s)
		state, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		c, err := core.New(core.Config{
			Self: "us", Members: []core.SiteID{"as", "eu", "us"}, Rand: rand.New(rand.NewPCG(1, 2)), Retention: 300_000, Run: 1,
		}, state)
		if err != nil {
			return 0, err
		}
		return c.Status().Requests, nil
	}
	if n, err := start(); err != nil || n != 5 {
		t.Fatalf("before the damage: %d requests are remembered, want 5; %v", n, err)
	}
	db, err := bolt.Open(filepath.Join(dir, "site.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		requests := tx.Bucket([]byte("requests"))
		raw := bytes.Clone(requests.Get([]byte{7: 3}))
		return requests.Put([]byte{7: 3}, raw[:len(raw)-1])
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if n, err := start(); err == nil || !strings.Contains(err.Error(), "request block 3") {
		t.Errorf("%d requests are remembered, %v; want an error that says request block 3", n, err)
	}
}
