package kvoracle

import (
	"errors"
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/testfuzz"
)

// FuzzParse: a value is read back as it was written, or not at all.
func FuzzParse(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add(3, value{key: 3, id: 1<<idBits | 70, version: 9, amount: -4}.append(nil))
	f.Add(0, []byte{})
	f.Fuzz(func(t *testing.T, key int, b []byte) {
		v, err := parse(key, b)
		if err != nil {
			if !errors.Is(err, errTorn) {
				t.Fatal(err)
			}
			return
		}
		if again := v.append(nil); !slices.Equal(again, b) {
			t.Fatalf("%x is read as %+v, which is written as %x", b, v, again)
		}
	})
}
