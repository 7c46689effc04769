package spanctx

import (
	"bytes"
	"testing"

	"github.com/samya-db/samya/internal/testfuzz"
)

var example = Context{Trace: [16]byte{1, 15: 2}, Span: [8]byte{3, 7: 4}}

// TestWire: a Context comes back from its form on the wire; all else is no recorded trace.
func TestWire(t *testing.T) {
	wire := example.Bytes()
	if len(wire) != Size || cap(wire) != Size {
		t.Errorf("%d bytes, want %d", len(wire), Size)
	}
	if got := Parse(wire); got == nil || *got != example || !Decided(wire) {
		t.Errorf("%v came back as %v", example, got)
	}
	if (*Context)(nil).Bytes() != nil || (*Context)(nil).Size() != 0 {
		t.Error("nil has a form on the wire")
	}
	if b := Unrecorded.Bytes(); len(b) != 1 || Unrecorded.Size() != 1 || Parse(b) != nil || !Decided(b) {
		t.Error("an unrecorded trace is recorded, or undecided")
	}
	noTrace, noSpan, off := bytes.Clone(wire), bytes.Clone(wire), bytes.Clone(wire)
	clear(noTrace[:16])
	clear(noSpan[16:24])
	off[24] = 0xfe
	for _, b := range [][]byte{nil, {1}, {0, 0}, wire[:24], append(wire, 1), noTrace, noSpan, off} {
		if Parse(b) != nil || Decided(b) {
			t.Errorf("%x is taken for a trace", b)
		}
	}
}

// TestChild: children are in the trace, have ids of their own, and the same ones each time.
func TestChild(t *testing.T) {
	seen := map[[8]byte]bool{example.Span: true}
	for salt := range uint64(20) {
		for n := range uint64(100) {
			c := example.Child(salt, n)
			if c.Trace != example.Trace || seen[c.Span] || c.Span == [8]byte{} {
				t.Fatalf("child %d of %d is %v", n, salt, c)
			}
			seen[c.Span] = true
			if *example.Child(salt, n) != *c {
				t.Fatalf("child %d of %d differs the second time", n, salt)
			}
		}
	}
	if (*Context)(nil).Child(1, 1) != nil {
		t.Error("nil has a child")
	}
}

// FuzzParse: whatever is read as a trace is written as the same bytes, but for the flags.
func FuzzParse(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add(example.Bytes())
	f.Add(Unrecorded.Bytes())
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := Parse(b)
		if c == nil {
			return
		}
		if got := c.Bytes(); !bytes.Equal(got[:24], b[:24]) || got[24] != 1 || !Decided(b) {
			t.Errorf("%x was read as %v and written as %x", b, c, got)
		}
	})
}
