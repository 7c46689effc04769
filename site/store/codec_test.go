package store

import (
	"reflect"
	"strings"
	"testing"

	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"google.golang.org/protobuf/encoding/protowire"
)

// TestShortParts: requests of several entities are found as they were, however short
// their names and numbers are.
func TestShortParts(t *testing.T) {
	for n := range 5 {
		for _, name := range []string{"c", "ab", strings.Repeat("n", 127), strings.Repeat("n", 128)} {
			r := stored.Request{Kind: stored.AllRequest, State: stored.Ran}
			for range n {
				r.Parts = append(r.Parts, stored.Part{Part: input.Part{Entity: name, Tokens: 1}, Generation: 1})
			}
			want := stored.Block{Sequence: 9, Wall: 1, Records: []stored.Request{r, r}}
			got, err := decodeBlock(9, encodeBlock(&want))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%d parts of names of %d bytes: got %+v, %v", n, len(name), got, err)
			}
		}
	}
}

// TestRefusedBlocks: a block with numbers out of range is refused.
func TestRefusedBlocks(t *testing.T) {
	block := func(r stored.Request) []byte {
		return encodeBlock(&stored.Block{Wall: 1, Records: []stored.Request{r}})
	}
	of := func(record uint64) []byte {
		tenant := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), record)
		return protowire.AppendBytes(protowire.AppendTag(block(stored.Request{}), 3, protowire.BytesType), tenant)
	}
	for name, tc := range map[string]struct {
		raw  []byte
		good bool
	}{
		"tokens":                    {block(stored.Request{Tokens: input.MaxTokens}), true},
		"tokens below 0":            {block(stored.Request{Tokens: -1}), false},
		"tokens of a part below 0":  {block(stored.Request{Kind: stored.AllRequest, Parts: []stored.Part{{Part: input.Part{Entity: "e", Tokens: -1}}}}), false},
		"a tenant of the last":      {of(0), true},
		"a tenant behind the last":  {of(1), false},
		"a tenant far behind":       {of(1 << 31), false},
		"a record that is cut":      {block(stored.Request{})[:20], false},
		"an attempt beyond 32 bits": {attemptBeyond(), false},
	} {
		func() {
			defer func() {
				if v := recover(); v != nil {
					t.Errorf("%s: %v", name, v)
				}
			}()
			if b, err := decodeBlock(9, tc.raw); (err == nil) != tc.good {
				t.Errorf("%s: %+v, %v", name, b, err)
			}
		}()
	}
}

// attemptBeyond is a block of a record with an attempt of too many bits.
func attemptBeyond() []byte {
	packed := append([]byte(nil), make([]byte, requestFixed)...)
	packed = protowire.AppendVarint(packed, 1<<32)
	packed = append(packed, 0, 0, 0)
	return appendBlock(nil, &stored.Block{Wall: 1}, packed)
}
