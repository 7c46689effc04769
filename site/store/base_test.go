package store_test

import (
	"fmt"
	stdmaps "maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/samya-db/samya/site/journal"
)

// TestApplyInOrder: a base carries out operations in their order, wherever a deletion of
// more keys than fit a transaction stands among them.
func TestApplyInOrder(t *testing.T) {
	const many = 5000 // more than deleteAtOnce
	key := func(i int) []byte { return fmt.Appendf(nil, "%05d", i) }
	below := func(i int) journal.Op { return journal.Op{Kind: journal.DeleteBelow, Bucket: 3, Key: key(i)} }
	put := func(i int) journal.Op {
		return journal.Op{Kind: journal.Put, Bucket: 3, Key: key(i), Value: []byte{1}}
	}
	gone := func(i int) journal.Op { return journal.Op{Kind: journal.Delete, Bucket: 3, Key: key(i)} }
	for name, ops := range map[string][]journal.Op{
		"alone":             {below(many - 3)},
		"first":             {below(many - 3), put(1), put(many)},
		"twice":             {below(many / 2), below(many - 3), put(2)},
		"behind a put":      {put(1), below(many - 3)},
		"behind a deletion": {gone(many - 1), below(many - 3), put(3)},
		"between":           {put(many), below(many - 3), put(1)},
		"all":               {put(many), below(many + 1)},
		"none":              {below(0), put(many)},
	} {
		t.Run(name, func(t *testing.T) {
			f := openBaseFile(t, filepath.Join(inMemory(t), "base"))
			want := make(map[string]bool)
			var all []journal.Op
			for _, i := range rand.Perm(many) {
				all, want[string(key(i))] = append(all, put(i)), true
			}
			for n, part := range [][]journal.Op{all, ops} {
				if err := f.base.Apply(part, new(journal.Number(n))); err != nil {
					t.Fatal(err)
				}
			}
			for _, op := range ops {
				switch op.Kind {
				case journal.Put:
					want[string(op.Key)] = true
				case journal.Delete:
					delete(want, string(op.Key))
				case journal.DeleteBelow:
					stdmaps.DeleteFunc(want, func(k string, _ bool) bool { return k < string(op.Key) })
				}
			}
			if got := slices.Sorted(stdmaps.Keys(f.held())); !slices.Equal(got, slices.Sorted(stdmaps.Keys(want))) {
				t.Errorf("%d keys are left, want %d", len(got), len(want))
			}
			if err := f.close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
