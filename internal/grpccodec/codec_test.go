package grpccodec_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/grpccodec"
	"github.com/samya-db/samya/internal/testfuzz"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// messages returns a message of every kind on the fast path between clients and sites,
// and a message without code of its own.
func messages() []proto.Message {
	acquire := &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{
		Entity: "acme/vm", Tokens: 3, RequestId: "id", Wait: durationpb.New(1500 * time.Millisecond), Site: "us", MinTokens: 2, DryRun: true,
		Lease: &samyav1.LeaseTerms{Ttl: durationpb.New(time.Minute), Holder: "me"}, Attempt: 2, Tried: []string{"eu", "as"},
		NotAfter: timestamppb.New(time.Unix(1_700_000_000, 5)), Relay: 1,
	}}}
	release := &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: &samyav1.ReleaseRequest{
		Entity: "acme/vm", Tokens: 1 << 52, Lease: "us/x", Attempt: 1,
	}}}
	results := []*samyav1.Result{
		{},
		{Result: &samyav1.Result_Acquire{Acquire: &samyav1.AcquireResponse{
			Tokens: 3, RequestId: "id", Site: "us", Left: -1, Lease: &samyav1.Lease{Name: "us/id", Remaining: durationpb.New(time.Second)},
		}}},
		{Result: &samyav1.Result_Release{Release: &samyav1.ReleaseResponse{Tokens: 1, Parked: true}}},
		{Result: &samyav1.Result_Failure{Failure: refuse.NoTokens("acme/vm", "us", 3, 0, time.Second).Failure()}},
	}
	stream := &samyav1.StreamRequest{Cancels: []uint64{1, 1 << 40}}
	replies := &samyav1.StreamResponse{Window: 16384}
	for i := range 200 {
		stream.Calls = append(stream.Calls, &samyav1.Call{Tag: uint64(i), Operation: acquire, TimeoutMs: 1000}, &samyav1.Call{Operation: release}, &samyav1.Call{})
		replies.Replies = append(replies.Replies, &samyav1.Reply{Tag: 1 << 63, Result: results[i%len(results)]})
	}
	return []proto.Message{
		acquire.GetAcquire(), release.GetRelease(), &samyav1.BatchRequest{Operations: []*samyav1.Operation{{}, acquire, release}},
		&samyav1.BatchRequest{Operations: []*samyav1.Operation{acquire, acquire, acquire}, Wait: durationpb.New(time.Second), RequestId: "id"},
		&samyav1.BatchResponse{Results: results}, stream, replies, &samyav1.AcquireRequest{},
		&samyav1.CreateEntityRequest{Name: "acme/vm", Limit: 5},
	}
}

// TestCodec: gRPC's own codec reads the messages of the codec, and the other way round.
func TestCodec(t *testing.T) {
	plain, codec := encoding.GetCodecV2(grpcproto.Name), grpccodec.Codec()
	if codec.Name() != plain.Name() {
		t.Errorf("the codec is called %q on the wire", codec.Name())
	}
	for _, m := range messages() {
		for _, way := range []struct{ write, read encoding.CodecV2 }{{plain, codec}, {codec, plain}, {codec, codec}} {
			data, err := way.write.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			// As they come from a connection, in pieces.
			var pieces mem.BufferSlice
			for chunk := range slices.Chunk(data.Materialize(), 7) {
				pieces = append(pieces, mem.SliceBuffer(chunk))
			}
			got := m.ProtoReflect().New().Interface()
			if err := way.read.Unmarshal(pieces, got); err != nil {
				t.Fatalf("%T: %v", m, err)
			}
			if !proto.Equal(m, got) {
				t.Errorf("%T became %.300s", m, got)
			}
			data.Free()
		}
	}
}

// TestCodecRefuses: the codec refuses bytes that are no message of the type, and a value
// that is no message at all.
func TestCodecRefuses(t *testing.T) {
	codec := grpccodec.Codec()
	err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer("\x0a\xff")}, &samyav1.BatchRequest{})
	if err == nil || !strings.Contains(err.Error(), "BatchRequest") {
		t.Error(err)
	}
	if _, err := codec.Marshal(3); err == nil {
		t.Error("a number was encoded")
	}
}

// FuzzDecode: the generated decoder reads alike every message that protobuf's own decoder
// takes, or refuses a field with another wire type. The generated decoder may take more,
// such as strings that are not UTF-8. Unknown fields are kept, if not byte for byte,
// except in durations.
func FuzzDecode(tf *testing.F) {
	f := testfuzz.On(tf)
	for i, m := range messages() {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), b)
	}
	codec := grpccodec.Codec()
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		all := messages()
		m := all[int(kind)%len(all)].ProtoReflect()
		want, got := m.New().Interface(), m.New().Interface()
		wantErr, gotErr := proto.Unmarshal(data, want), codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, got)
		if wantErr != nil || gotErr != nil && strings.Contains(gotErr.Error(), "wrong wireType") {
			return
		}
		kept := (len(want.ProtoReflect().GetUnknown()) > 0) == (len(got.ProtoReflect().GetUnknown()) > 0)
		forget(want.ProtoReflect())
		forget(got.ProtoReflect())
		if gotErr != nil || !kept || !proto.Equal(want, got) {
			t.Fatalf("%T %x: read as %v, %v; want %v", want, data, got, gotErr, want)
		}
	})
}

// forget removes the unknown fields of a message and of the messages in it.
func forget(m protoreflect.Message) {
	m.SetUnknown(nil)
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range v.List().Len() {
				forget(v.List().Get(i).Message())
			}
		default:
			forget(v.Message())
		}
		return true
	})
}

// BenchmarkBatch decodes a batch of 100 acquires.
func BenchmarkBatch(b *testing.B) {
	in := &samyav1.BatchRequest{}
	for i := range 100 {
		in.Operations = append(in.Operations, &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{
			Entity: "acme/vm", Tokens: 1, RequestId: fmt.Sprintf("s.k3J9x_-Qa1Zb.%x", i), Wait: durationpb.New(0), Acknowledged: 1000,
		}}})
	}
	codec := grpccodec.Codec()
	data, err := codec.Marshal(in)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := codec.Unmarshal(data, &samyav1.BatchRequest{}); err != nil {
			b.Fatal(err)
		}
	}
}
