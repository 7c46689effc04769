package store

import (
	"cmp"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/site/journal"
)

// plainBase is a base in memory, as plain as can be.
type plainBase map[string]string

func (b plainBase) Through() (journal.Number, bool, error) { return 7, true, nil }

func (b plainBase) Apply(ops []journal.Op, _ *journal.Number) error {
	for _, op := range ops {
		switch op.Kind {
		case journal.Put:
			b[string(op.Key)] = string(op.Value)
		case journal.Delete:
			delete(b, string(op.Key))
		default:
			for k := range b {
				if k < string(op.Key) {
					delete(b, k)
				}
			}
		}
	}
	return nil
}

func (b plainBase) Each(_ journal.Bucket, f func(key, value []byte) error) error {
	var keys []string
	for k := range b {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, cmp.Compare)
	for _, k := range keys {
		if err := f([]byte(k), []byte(b[k])); err != nil {
			return err
		}
	}
	return nil
}

func all(base journal.Base) (got [][2]string, err error) {
	err = base.Each(bucketBooks, func(k, v []byte) error { got = append(got, [2]string{string(k), string(v)}); return nil })
	return got, err
}

// TestShadowBase: a view of a base shows what the base would hold, and the base stays as
// it was.
func TestShadowBase(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		key := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 1, 2, -1)
		op := rapid.Custom(func(rt *rapid.T) journal.Op {
			return journal.Op{
				Kind: rapid.SampledFrom([]journal.Kind{journal.Put, journal.Delete, journal.DeleteBelow}).Draw(rt, "kind"), Bucket: bucketBooks,
				Key: []byte(key.Draw(rt, "key")), Value: []byte(rapid.StringN(0, 2, -1).Draw(rt, "value")),
			}
		})
		first := rapid.SliceOfN(op, 0, 8).Draw(rt, "first")
		base, want := plainBase{}, plainBase{}
		shadow := newShadowBase(base)
		_, _ = base.Apply(first, nil), want.Apply(first, nil)
		before, _ := all(base)
		for range rapid.IntRange(0, 4).Draw(rt, "times") {
			ops := rapid.SliceOfN(op, 1, 6).Draw(rt, "ops")
			if err := shadow.Apply(ops, nil); err != nil {
				rt.Fatal(err)
			}
			_ = want.Apply(ops, nil)
			got, err := all(shadow)
			expected, _ := all(want)
			if err != nil || !reflect.DeepEqual(got, expected) {
				rt.Fatalf("%q, %v, want %q", got, err, expected)
			}
		}
		if after, _ := all(base); !reflect.DeepEqual(before, after) {
			rt.Fatalf("%q became %q", before, after)
		}
		if n, known, err := shadow.Through(); n != 7 || !known || err != nil {
			rt.Fatal(n, known, err)
		}
		if err := shadow.Apply(nil, new(journal.Number(9))); err != nil {
			rt.Fatal(err)
		}
		if n, _, _ := shadow.Through(); n != 9 {
			rt.Fatal(n)
		}
	})
}
