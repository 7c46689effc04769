// Package grpccodec is the protobuf codec of samya's gRPC servers and clients: it
// uses the generated encoders and decoders of the messages that have them, and
// reflection for the others. It refuses to change a byte on the wire.
package grpccodec

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Codec returns the codec, for grpc.ForceServerCodecV2 and grpc.ForceCodecV2.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2(proto.Name)} }

// codec falls back to gRPC's own.
type codec struct{ encoding.CodecV2 }

// generated is what vtprotobuf generates for a message.
type generated interface {
	SizeVT() int
	MarshalToSizedBufferVT(into []byte) (int, error)
	UnmarshalVT(from []byte) error
}

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(generated)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	size := m.SizeVT()
	if mem.IsBelowBufferPoolingThreshold(size) {
		b := make([]byte, size)
		if _, err := m.MarshalToSizedBufferVT(b); err != nil {
			return nil, fmt.Errorf("encoding %T: %w", v, err)
		}
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	pool := mem.DefaultBufferPool()
	b := pool.Get(size)
	if _, err := m.MarshalToSizedBufferVT((*b)[:size]); err != nil {
		pool.Put(b)
		return nil, fmt.Errorf("encoding %T: %w", v, err)
	}
	return mem.BufferSlice{mem.NewBuffer(b, pool)}, nil
}

// Unmarshal implements encoding.CodecV2. The message holds no part of data.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(generated)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	b := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	if err := m.UnmarshalVT(b.ReadOnlyData()); err != nil {
		return fmt.Errorf("decoding %T: %w", v, err)
	}
	return nil
}
