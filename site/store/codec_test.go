package store

import (
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/samya-db/samya/site/core"
)

// TestShortParts: requests of several entities are found as they were, however short
// their names and numbers are.
func TestShortParts(t *testing.T) {
	for n := range 5 {
		for _, name := range []string{"c", "ab", strings.Repeat("n", 127), strings.Repeat("n", 128)} {
			r := core.RequestRecord{Kind: core.AllRequest, State: core.Ran}
			for range n {
				r.Parts = append(r.Parts, core.RecordedPart{Part: core.Part{Entity: name, Tokens: 1}, Generation: 1})
			}
			want := core.RequestBlock{Sequence: 9, Wall: 1, Records: []core.RequestRecord{r, r}}
			got, err := decodeBlock(9, encodeBlock(&want))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%d parts of names of %d bytes: got %+v, %v", n, len(name), got, err)
			}
		}
	}
}

// TestRefusedBlocks: a block with numbers out of range is refused.
func TestRefusedBlocks(t *testing.T) {
	block := func(r core.RequestRecord) []byte {
		return encodeBlock(&core.RequestBlock{Wall: 1, Records: []core.RequestRecord{r}})
	}
	of := func(record uint64) []byte {
		tenant := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), record)
		return protowire.AppendBytes(protowire.AppendTag(block(core.RequestRecord{}), 3, protowire.BytesType), tenant)
	}
	for name, tc := range map[string]struct {
		raw  []byte
		good bool
	}{
		"tokens":                    {block(core.RequestRecord{Tokens: core.MaxTokens}), true},
		"tokens below 0":            {block(core.RequestRecord{Tokens: -1}), false},
		"tokens of a part below 0":  {block(core.RequestRecord{Kind: core.AllRequest, Parts: []core.RecordedPart{{Part: core.Part{Entity: "e", Tokens: -1}}}}), false},
		"a tenant of the last":      {of(0), true},
		"a tenant behind the last":  {of(1), false},
		"a tenant far behind":       {of(1 << 31), false},
		"a record that is cut":      {block(core.RequestRecord{})[:20], false},
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
	return appendBlock(nil, 1, packed)
}
