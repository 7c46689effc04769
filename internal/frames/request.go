package frames

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/samya-db/samya/internal/fields"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Fields of StreamRequest, Call and Operation in proto/samya/v1/tokens.proto.
const (
	fieldCalls     = 1
	fieldCancels   = 2
	fieldTag       = 1
	fieldOperation = 2
	fieldTimeout   = 3
	fieldTrace     = 4
	fieldAcquire   = 1
	fieldRelease   = 2
)

const (
	// keptCalls bounds the calls whose memory is kept for the next message.
	keptCalls = 512
	// mostCalls bounds the calls of a message that is decoded here. The generated decoder takes
	// less memory for a call of a few bytes, and no server begins so many.
	mostCalls = 16384
)

// requests decodes messages of calls into memory that the next message uses again. Of a
// message, nothing but texts may be kept for longer.
type requests struct {
	calls []call
	list  []*samyav1.Call
}

// call is the memory of a call.
type call struct {
	is        samyav1.Call
	operation samyav1.Operation
	isAcquire samyav1.Operation_Acquire
	isRelease samyav1.Operation_Release
	acquire   samyav1.AcquireRequest
	release   samyav1.ReleaseRequest
}

// read decodes a message. It takes the messages that the generated decoder takes, and passes
// over unknown fields.
func (d *requests) read(m *samyav1.StreamRequest, b []byte) error {
	n := 0
	if err := fields.Each(b, func(f fields.Field) error {
		if f.Num == fieldCalls {
			n++
		}
		return nil
	}); err != nil {
		return err
	}
	if n > mostCalls {
		return m.UnmarshalVT(b)
	}
	d.grow(n)
	m.Calls, m.Cancels = d.list[:0], nil
	return fields.Each(b, func(f fields.Field) error {
		switch f.Num {
		case fieldCalls:
			if f.Kind != protowire.BytesType {
				return errWireType
			}
			c := &d.calls[len(m.Calls)]
			m.Calls = append(m.Calls, &c.is)
			return c.read(f.Bytes)
		case fieldCancels:
			return appendNumbers(&m.Cancels, f)
		}
		return nil
	})
}

// grow makes room for n calls, or gives back the room of a large message before.
func (d *requests) grow(n int) {
	if n <= len(d.calls) && (len(d.calls) <= keptCalls || n > keptCalls) {
		return
	}
	size := max(n, min(len(d.calls), keptCalls))
	d.calls, d.list = make([]call, size), make([]*samyav1.Call, 0, size)
}

var errWireType = fmt.Errorf("%w: a field of another type", errMalformed)

// read decodes a call.
func (c *call) read(b []byte) error {
	c.is.Tag, c.is.Operation, c.is.TimeoutMs, c.is.Trace = 0, nil, 0, nil
	return fields.Each(b, func(f fields.Field) error {
		switch f.Num {
		case fieldTag:
			c.is.Tag = f.Number
			return is(f, protowire.VarintType)
		case fieldTimeout:
			c.is.TimeoutMs = uint32(f.Number) //nolint:gosec // as the generated decoder does
			return is(f, protowire.VarintType)
		case fieldTrace:
			c.is.Trace = f.Bytes // of the message; nobody keeps it
			return is(f, protowire.BytesType)
		case fieldOperation:
			if f.Kind != protowire.BytesType {
				return errWireType
			}
			if c.is.Operation == nil {
				c.is.Operation, c.operation.Operation = &c.operation, nil
			}
			return c.readOperation(f.Bytes)
		}
		return nil
	})
}

// readOperation decodes an operation, or merges it with an earlier one of the same call.
func (c *call) readOperation(b []byte) error {
	return fields.Each(b, func(f fields.Field) error {
		if f.Num != fieldAcquire && f.Num != fieldRelease {
			return nil
		}
		if f.Kind != protowire.BytesType {
			return errWireType
		}
		if f.Num == fieldAcquire {
			if c.operation.Operation != &c.isAcquire {
				c.acquire.Reset()
				c.isAcquire.Acquire = &c.acquire
				c.operation.Operation = &c.isAcquire
			}
			return c.acquire.UnmarshalVT(f.Bytes)
		}
		if c.operation.Operation != &c.isRelease {
			c.release.Reset()
			c.isRelease.Release = &c.release
			c.operation.Operation = &c.isRelease
		}
		return c.release.UnmarshalVT(f.Bytes)
	})
}

// appendNumbers appends the numbers of a repeated field, packed or not.
func appendNumbers(to *[]uint64, f fields.Field) error {
	if f.Kind == protowire.VarintType {
		*to = append(*to, f.Number)
		return nil
	}
	if f.Kind != protowire.BytesType {
		return errWireType
	}
	for b := f.Bytes; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", errMalformed, protowire.ParseError(n))
		}
		*to, b = append(*to, v), b[n:]
	}
	return nil
}

// is returns an error unless a field has a type.
func is(f fields.Field, kind protowire.Type) error {
	if f.Kind != kind {
		return errWireType
	}
	return nil
}
