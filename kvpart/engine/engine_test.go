package engine_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/samya-db/samya/kvpart/engine"
	_ "github.com/samya-db/samya/kvpart/engine/bbolt"
	_ "github.com/samya-db/samya/kvpart/engine/btree"
	"github.com/samya-db/samya/kvpart/engine/enginetest"
	_ "github.com/samya-db/samya/kvpart/engine/hash"
)

func TestEngines(t *testing.T) {
	t.Parallel()
	for _, name := range engine.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := engine.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			enginetest.Run(t, f)
		})
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	if got, want := engine.Names(), []string{"bbolt", "btree", "hash"}; !slices.Equal(got, want) {
		t.Errorf("backends %v, want %v", got, want)
	}
	if _, err := engine.Lookup("rocksdb"); !errors.Is(err, engine.ErrBackend) {
		t.Errorf("an unknown backend: %v", err)
	}
}
