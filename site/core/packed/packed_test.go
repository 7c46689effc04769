package packed_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/packed"
	"github.com/samya-db/samya/site/core/stored"
)

func request(t *rapid.T) stored.Request {
	r := stored.Request{
		Key: attempt.Key(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "key")), Body: rapid.Uint64().Draw(t, "body"),
		Kind: rapid.SampledFrom([]stored.RequestKind{stored.AcquireRequest, stored.AllRequest}).Draw(t, "kind"),
		Left: avantan.Tokens(rapid.Int64().Draw(t, "left")), Tokens: avantan.Tokens(rapid.Int64().Draw(t, "tokens")),
		Generation: rapid.Uint64().Draw(t, "generation"), Attempt: attempt.Number(rapid.Uint32().Draw(t, "attempt")),
	}
	for range rapid.IntRange(0, 2).Draw(t, "parts") {
		r.Parts = append(r.Parts, stored.Part{Part: input.Part{Entity: rapid.String().Draw(t, "entity"), Tokens: 3}, Generation: 7})
	}
	return r
}

// TestBlock: whatever part of a block is encoded already, its stored form is that of its
// records, one after the other.
func TestBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b stored.Block
		var want []byte
		for range rapid.IntRange(0, 6).Draw(t, "parts") {
			var some []stored.Request
			var form []byte
			for range rapid.IntRange(0, 3).Draw(t, "records") {
				r := request(t)
				some, form = append(some, r), packed.Append(form, &r)
			}
			want = append(want, form...)
			if rapid.Bool().Draw(t, "packed") {
				b.Join(some, form)
			} else {
				b.Records = append(b.Records, some...)
			}
		}
		if got := packed.Block([]byte("rest"), &b); !bytes.Equal(got, want) {
			t.Fatalf("runs %+v of %d records: %x, want %x", b.Runs, len(b.Records), got, want)
		}
		if b.Whole() && len(b.Records) > 0 && &packed.Block(nil, &b)[0] != &b.Packed[0] {
			t.Fatal("a block that is whole was copied")
		}
		b.Unpack()
		if got := packed.Block(nil, &b); !bytes.Equal(got, want) {
			t.Fatalf("unpacked: %x, want %x", got, want)
		}
	})
}
