// Package spanctx has the place of a span in a recorded trace as plain data, and its form on
// the wire. Pure packages hand it on, as they hand on the call that waits for a reply. It
// refuses to make spans, to record anything, and to choose the traces to record: package tracing
// does so.
package spanctx

import (
	"encoding/binary"
)

// Context names a span of a trace that is recorded. It is never changed. Work that belongs to
// no trace has a nil *Context.
type Context struct {
	// Trace is the id of the trace, not zero.
	Trace [16]byte
	// Span is the id of the span, not zero.
	Span [8]byte
}

// Size is the length in bytes of a Context on the wire.
const Size = 16 + 8 + 1

// sampled is the flag of W3C Trace Context that says that the trace is recorded.
const sampled = 1

// Unrecorded stands for a span of a trace that its process does not record: the processes that it
// calls do not record the trace either.
var Unrecorded = new(Context)

// unrecorded is the form of Unrecorded on the wire.
const unrecorded = 0

// Append appends the form on the wire: the trace id, the span id, and the flags; a single byte 0 for
// Unrecorded. Nil has no form.
func (c *Context) Append(b []byte) []byte {
	switch {
	case c == nil:
		return b
	case *c == (Context{}):
		return append(b, unrecorded)
	}
	return append(append(append(b, c.Trace[:]...), c.Span[:]...), sampled)
}

// Size returns the length of the form on the wire.
func (c *Context) Size() int {
	switch {
	case c == nil:
		return 0
	case *c == (Context{}):
		return 1
	}
	return Size
}

// Bytes returns the form on the wire in memory of its own; nil for nil.
func (c *Context) Bytes() []byte {
	if c == nil {
		return nil
	}
	return c.Append(make([]byte, 0, c.Size()))
}

// Parse reads the form on the wire. It returns nil for bytes that name no recorded trace:
// none, Unrecorded, or malformed ones. It keeps no part of b.
func Parse(b []byte) *Context {
	if len(b) != Size || b[Size-1]&sampled == 0 {
		return nil
	}
	c := &Context{Trace: [16]byte(b[:16]), Span: [8]byte(b[16:24])}
	if c.Trace == [16]byte{} || c.Span == [8]byte{} {
		return nil
	}
	return c
}

// Decided reports whether b tells that the caller has decided about the trace. Otherwise the
// callee may begin a trace.
func Decided(b []byte) bool { return len(b) == 1 && b[0] == unrecorded || Parse(b) != nil }

// Child returns another span of the same trace. The id of the span is a function of c, salt
// and n, so that the same inputs have the same ids. salt names the process, and n counts
// the process's spans. The child of nil is nil.
func (c *Context) Child(salt, n uint64) *Context {
	if c == nil {
		return nil
	}
	id := mix(mix(binary.BigEndian.Uint64(c.Span[:])^salt) + n)
	child := &Context{Trace: c.Trace}
	binary.BigEndian.PutUint64(child.Span[:], max(1, id))
	return child
}

// mix is the finalizer of SplitMix64, a bijection.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
