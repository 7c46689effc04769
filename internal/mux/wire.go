package mux

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/fields"
	"github.com/samya-db/samya/internal/spanctx"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Fields of the messages of proto/samya/v1/tokens.proto. Only the outer messages are
// written and read here. Each caller encodes its own operation and decodes its own
// result. So an operation that cannot be encoded hurts nobody else, and the work is
// spread over the callers' goroutines.
const (
	fieldCalls     = 1 // StreamRequest
	fieldCancels   = 2
	fieldTag       = 1 // Call, Reply
	fieldOperation = 2
	fieldTimeout   = 3
	fieldTrace     = 4
	fieldResult    = 2 // Reply
	fieldReplies   = 1 // StreamResponse
	fieldWindow    = 2
	fieldSessions  = 3
)

// encode encodes the operation of c.
func (c *call) encode(op *samyav1.Operation) error {
	n := op.SizeVT()
	if n > maxOperation {
		return tooLarge(n)
	}
	if !isText(op) {
		return apierr.New(apierr.InvalidField, "a text that is not UTF-8")
	}
	c.operation = slices.Grow(c.operation[:0], n)[:n]
	if _, err := op.MarshalToSizedBufferVT(c.operation); err != nil {
		return apierr.Wrap(apierr.InvalidField, fmt.Errorf("encoding an operation: %w", err))
	}
	return nil
}

// isText reports whether the texts of an operation are UTF-8, as protobuf requires. For a
// bad text a server may reject the whole message, with all calls in it.
func isText(op *samyav1.Operation) bool {
	var texts [4]string
	var tried []string
	switch op := op.GetOperation().(type) {
	case *samyav1.Operation_Acquire:
		r := op.Acquire
		texts = [...]string{r.GetEntity(), r.GetRequestId(), r.GetSite(), r.GetLease().GetHolder()}
		tried = r.GetTried()
	case *samyav1.Operation_Release:
		r := op.Release
		texts = [...]string{r.GetEntity(), r.GetRequestId(), r.GetSite(), r.GetLease()}
		tried = r.GetTried()
	}
	bad := func(s string) bool { return !utf8.ValidString(s) }
	return !slices.ContainsFunc(texts[:], bad) && !slices.ContainsFunc(tried, bad)
}

// appendCall appends c to a StreamRequest.
func appendCall(b []byte, c *call, now time.Time) []byte {
	var ms uint64
	if !c.deadline.IsZero() {
		// At least 1: 0 means no bound.
		ms = uint64(max(1, min(c.deadline.Sub(now).Milliseconds(), 1<<32-1)))
	}
	size := 1 + protowire.SizeVarint(c.tag) + 1 + protowire.SizeBytes(len(c.operation))
	if ms > 0 {
		size += 1 + protowire.SizeVarint(ms)
	}
	if c.trace != nil {
		size += 1 + protowire.SizeBytes(c.trace.Size())
	}
	b = protowire.AppendTag(b, fieldCalls, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	b = protowire.AppendTag(b, fieldTag, protowire.VarintType)
	b = protowire.AppendVarint(b, c.tag)
	b = protowire.AppendTag(b, fieldOperation, protowire.BytesType)
	b = protowire.AppendBytes(b, c.operation)
	if ms > 0 {
		b = protowire.AppendTag(b, fieldTimeout, protowire.VarintType)
		b = protowire.AppendVarint(b, ms)
	}
	if c.trace != nil {
		b = protowire.AppendTag(b, fieldTrace, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(c.trace.Size())) //nolint:gosec // not negative
		b = c.trace.Append(b)
	}
	return b
}

// callOverhead is the most that appendCall adds to an operation, in bytes.
const callOverhead = 32 + 2 + spanctx.Size

// appendCancels appends the tags of calls given up to a StreamRequest.
func appendCancels(b []byte, tags []uint64) []byte {
	if len(tags) == 0 {
		return b
	}
	size := 0
	for _, t := range tags {
		size += protowire.SizeVarint(t)
	}
	b = protowire.AppendTag(b, fieldCancels, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	for _, t := range tags {
		b = protowire.AppendVarint(b, t)
	}
	return b
}

// reply is an answer on the stream; its result is still encoded.
type reply struct {
	tag    uint64
	result []byte
}

// told is what a StreamResponse tells beside replies. The window is 0 if it tells none.
type told struct {
	window   uint32
	sessions bool
}

// readResponse reads a StreamResponse and appends its replies to into. The results are
// parts of b.
func readResponse(b []byte, into []reply) (_ []reply, told told, _ error) {
	err := fields.Each(b, func(f fields.Field) error {
		switch {
		case f.Num == fieldReplies && f.Kind == protowire.BytesType:
			var r reply
			err := fields.Each(f.Bytes, func(f fields.Field) error {
				switch {
				case f.Num == fieldTag && f.Kind == protowire.VarintType:
					r.tag = f.Number
				case f.Num == fieldResult && f.Kind == protowire.BytesType:
					r.result = f.Bytes
				}
				return nil
			})
			into = append(into, r)
			return err
		case f.Num == fieldWindow && f.Kind == protowire.VarintType:
			told.window = uint32(f.Number)
		case f.Num == fieldSessions && f.Kind == protowire.VarintType:
			told.sessions = f.Number != 0
		}
		return nil
	})
	if err != nil {
		return nil, told, fmt.Errorf("reading an answer of the stream: %w", err)
	}
	return into, told, nil
}

// decodeResult reads a result.
func decodeResult(b []byte) (*samyav1.Result, error) {
	r := &samyav1.Result{}
	if err := r.UnmarshalVT(b); err != nil {
		return nil, fmt.Errorf("reading a result: %w", err)
	}
	if r.GetResult() == nil {
		return nil, errors.New("reading a result: it is empty")
	}
	return r, nil
}

// frame is an encoded message. Its methods are those of generated messages.
type frame struct{ data []byte }

// SizeVT returns the number of bytes.
func (f *frame) SizeVT() int { return len(f.data) }

// MarshalToSizedBufferVT copies the bytes to the end of into.
func (f *frame) MarshalToSizedBufferVT(into []byte) (int, error) {
	return copy(into[len(into)-len(f.data):], f.data), nil
}

// UnmarshalVT copies the bytes.
func (f *frame) UnmarshalVT(from []byte) error {
	f.data = slices.Clone(from)
	return nil
}

// codec passes encoded messages to the transport and back.
type codec struct{}

// Name implements encoding.CodecV2: the wire format is protobuf.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2. The transport may hold on to the bytes after it
// returned, so they are copied into memory that the transport gives back.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("mux: a message of type %T", v)
	}
	return mem.BufferSlice{mem.Copy(f.data, mem.DefaultBufferPool())}, nil
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("mux: a message of type %T", v)
	}
	f.data = data.Materialize()
	return nil
}
