package journal

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/samya-db/samya/internal/testfuzz"
)

// FuzzPayload: decoding any payload ends, and the decoded operations are encoded to the
// same payload again.
func FuzzPayload(tf *testing.F) {
	f := testfuzz.On(tf)
	var b Batch
	b.Put(1, []byte("key"), []byte("value"))
	b.PutWith(2, []byte("k"), func(dst []byte) []byte { return append(dst, "appended"...) })
	b.Delete(3, []byte("gone"))
	b.DeleteBelow(255, nil)
	f.Add(b.buf[frameBytes:])
	f.Add([]byte{1, 1, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, payload []byte) {
		var again Batch
		again.Reset()
		for rest := payload; len(rest) > 0; {
			op, behind, err := next(rest)
			if err != nil {
				if !errors.Is(err, errPayload) {
					t.Fatal(err)
				}
				return
			}
			switch op.Kind {
			case Put:
				again.Put(op.Bucket, op.Key, op.Value)
			case Delete:
				again.Delete(op.Bucket, op.Key)
			case DeleteBelow:
				again.DeleteBelow(op.Bucket, op.Key)
			}
			rest = behind
		}
		if !bytes.Equal(again.buf[frameBytes:], payload) {
			t.Fatalf("%x is encoded to %x", payload, again.buf[frameBytes:])
		}
	})
}

// content is a file that is only read.
type content struct{ *bytes.Reader }

func (content) WriteAt([]byte, int64) (int, error) { return 0, io.ErrClosedPipe }
func (c content) Size() (int64, error)             { return c.Reader.Size(), nil }
func (content) Sync() error                        { return nil }
func (content) Close() error                       { return nil }

// FuzzSegment: reading ends, whatever bytes follow a segment's header. It finds frames in
// order with all operations inside the file, or damage.
func FuzzSegment(tf *testing.F) {
	f := testfuzz.On(tf)
	h := header{owner: 7, first: 3}
	var b Batch
	var whole []byte
	for n := Number(3); n < 6; n++ {
		b.Reset()
		b.Put(1, []byte{byte(n)}, bytes.Repeat([]byte{byte(n)}, 20))
		whole = append(whole, seal(b.buf, h.seed(), n, n-1)...)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-9])
	f.Add(append(make([]byte, 80), whole[80:]...))
	f.Add(seal(append(make([]byte, frameBytes), 1, 1, 0, 0, 255, 0, 0, 0), h.seed(), 3, 2))
	f.Fuzz(func(t *testing.T, raw []byte) {
		file := content{bytes.NewReader(append(h.encode(), raw...))}
		g := &segment{name: "s", first: h.first, file: file, seed: h.seed(), size: file.Reader.Size()}
		s := newScan([]*segment{g}, h.first-1, 0)
		for done := false; !done; {
			var err error
			if done, err = s.piece(); err != nil {
				if damage, ok := errors.AsType[*DamageError](err); !ok || damage.Offset < headerBytes || damage.Offset > g.size {
					t.Fatal(err)
				}
				return
			}
		}
		for _, p := range s.overlay.operations() {
			if p.kind == Put && (p.at < headerBytes || p.at+int64(p.length) > g.size) {
				t.Fatalf("%+v is not in a file of %d bytes", p, g.size)
			}
		}
	})
}
