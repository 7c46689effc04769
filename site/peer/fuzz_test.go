package peer

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/testfuzz"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
)

// FuzzParts: whatever frames a member sends, the memory for them is bounded, and a batch
// in parts comes whole.
func FuzzParts(tf *testing.F) {
	f := testfuzz.On(tf)
	whole, err := proto.Marshal(&peerv1.Batch{Messages: []*peerv1.ProtocolMessage{{Entity: "e", Generation: 1}, {Entity: "f"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, uint16(3))
	f.Add(whole, uint16(0))
	f.Add([]byte{0xff}, uint16(1))
	// The next byte fits. A byte more is refused before anything is copied.
	nearlyWhole := make([]byte, maxWhole-1, maxWhole)
	f.Fuzz(func(t *testing.T, raw []byte, size uint16) {
		var frame peerv1.LinkRequest
		if proto.Unmarshal(raw, &frame) == nil && frame.GetPart() != nil {
			if parts, _, err := join(nearlyWhole, frame.GetPart()); err == nil && len(parts) > maxWhole {
				t.Fatalf("%d bytes are kept", len(parts))
			}
		}
		var want peerv1.Batch
		wantErr := proto.Unmarshal(raw, &want)
		var parts []byte
		var got *peerv1.Batch
		rest := raw
		for got == nil {
			n := min(len(rest), int(size)+1)
			var err error
			parts, got, err = join(parts, &peerv1.Part{Data: rest[:n], Last: n == len(rest)})
			rest = rest[n:]
			if err != nil {
				if wantErr == nil {
					t.Fatalf("the parts of a batch are refused: %v", err)
				}
				return
			}
		}
		if wantErr != nil || !proto.Equal(got, &want) {
			t.Fatalf("%v: of %v came %v", wantErr, &want, got)
		}
	})
}
