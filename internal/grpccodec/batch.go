package grpccodec

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Fields of BatchRequest and Operation in proto/samya/v1/tokens.proto.
const (
	fieldOperations = 1
	fieldAcquire    = 1
)

// mostShared bounds the operations that share memory: as many as a batch may have. The bytes
// of a longer message are no measure of the memory it needs.
const mostShared = 1000

// acquire is the memory of an operation that is an acquire.
type acquire struct {
	operation samyav1.Operation
	is        samyav1.Operation_Acquire
	request   samyav1.AcquireRequest
}

// readBatch decodes a batch as the generated decoder does. Its acquires share memory: most of a
// batch are acquires, and separate memory for each part costs more than the decoding.
func readBatch(m *samyav1.BatchRequest, b []byte) error {
	n, err := countOperations(b)
	if err != nil || n < 2 || n > mostShared {
		return m.UnmarshalVT(b)
	}
	acquires := make([]acquire, n)
	m.Operations = append(make([]*samyav1.Operation, 0, len(m.Operations)+n), m.Operations...)
	var rest []byte
	for len(b) > 0 {
		num, kind, size := protowire.ConsumeTag(b)
		if num != fieldOperations || kind != protowire.BytesType {
			size += protowire.ConsumeFieldValue(num, kind, b[size:])
			rest, b = append(rest, b[:size]...), b[size:]
			continue
		}
		content, length := protowire.ConsumeBytes(b[size:])
		b = b[size+length:]
		op, err := acquires[0].read(content)
		if err != nil {
			return err
		}
		acquires = acquires[1:]
		m.Operations = append(m.Operations, op)
	}
	if len(rest) == 0 {
		return nil
	}
	return m.UnmarshalVT(rest)
}

// countOperations counts the operations of an encoded batch.
func countOperations(b []byte) (n int, _ error) {
	for len(b) > 0 {
		num, kind, size := protowire.ConsumeField(b)
		if size < 0 {
			return 0, protowire.ParseError(size)
		}
		if num == fieldOperations && kind == protowire.BytesType {
			n++
		}
		b = b[size:]
	}
	return n, nil
}

// read decodes an operation, into a's memory if it is an acquire and nothing else.
func (a *acquire) read(b []byte) (*samyav1.Operation, error) {
	num, kind, size := protowire.ConsumeTag(b)
	if size > 0 && num == fieldAcquire && kind == protowire.BytesType {
		if content, length := protowire.ConsumeBytes(b[size:]); length > 0 && size+length == len(b) {
			a.is.Acquire, a.operation.Operation = &a.request, &a.is
			if err := a.request.UnmarshalVT(content); err != nil {
				return nil, fmt.Errorf("decoding an acquire: %w", err)
			}
			return &a.operation, nil
		}
	}
	op := &samyav1.Operation{}
	return op, op.UnmarshalVT(b)
}
