package mux

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/spanctx"
	"github.com/samya-db/samya/internal/testfuzz"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// traces are traces of calls.
var traces = []*spanctx.Context{nil, spanctx.Unrecorded, {Trace: [16]byte{1}, Span: [8]byte{2}}}

// TestStreamRequestEncoding: an encoding by hand reads as the message of the proto file.
func TestStreamRequestEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.UnixMilli(1 << 40)
		want := &samyav1.StreamRequest{Cancels: rapid.SliceOf(rapid.Uint64()).Draw(t, "cancels")}
		got := appendCancels(nil, want.GetCancels())
		for range rapid.IntRange(0, 5).Draw(t, "calls") {
			pb := &samyav1.Call{
				Tag:       rapid.Uint64().Draw(t, "tag"),
				Operation: operation(rapid.StringN(0, 200, -1).Draw(t, "id")),
				TimeoutMs: rapid.Uint32().Draw(t, "timeout"),
				Trace:     rapid.SampledFrom(traces).Draw(t, "trace").Bytes(),
			}
			want.Calls = append(want.Calls, pb)
			c := &call{tag: pb.GetTag(), trace: spanctx.Parse(pb.GetTrace())}
			if len(pb.GetTrace()) == 1 {
				c.trace = spanctx.Unrecorded
			}
			if err := c.encode(pb.GetOperation()); err != nil {
				t.Fatal(err)
			}
			if pb.GetTimeoutMs() > 0 {
				c.deadline = now.Add(time.Duration(pb.GetTimeoutMs()) * time.Millisecond)
			}
			before := len(got)
			got = appendCall(got, c, now)
			if over := len(got) - before - len(c.operation); over > callOverhead {
				t.Fatalf("%d bytes beyond the operation's, at most %d", over, callOverhead)
			}
		}
		read := &samyav1.StreamRequest{}
		if err := proto.Unmarshal(got, read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, read, protocmp.Transform()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzReadResponse compares the reading by hand with the generated code: the reading by
// hand takes every message of the generated code for the same.
func FuzzReadResponse(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, r := range []*samyav1.StreamResponse{
		{},
		{Window: 16_384},
		{Replies: []*samyav1.Reply{{Tag: 1 << 33, Result: &samyav1.Result{Result: &samyav1.Result_Failure{Failure: &samyav1.Failure{Code: 8}}}}, {}}},
		{Replies: []*samyav1.Reply{
			{Tag: 1, Result: &samyav1.Result{Result: &samyav1.Result_Acquire{Acquire: &samyav1.AcquireResponse{Tokens: 3, RequestId: "r", Site: "us", Left: -7}}}},
			{Tag: 2, Result: &samyav1.Result{Result: &samyav1.Result_Acquire{Acquire: &samyav1.AcquireResponse{}}}},
			{Tag: 3, Result: &samyav1.Result{Result: &samyav1.Result_Release{Release: &samyav1.ReleaseResponse{Tokens: 1}}}},
		}},
	} {
		b, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0xff})
	// A result with a known field of an unexpected kind: some decoders keep it as unknown.
	f.Add([]byte("\n\f\b\x80\x80\x80\x80 \x12\x04\x1a\x00\b\b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		replies, told, err := readResponse(b, nil)
		want := &samyav1.StreamResponse{}
		// Without unknown fields: no sender writes them, and decoders differ about them.
		if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, want) != nil {
			return
		}
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		again, err := proto.MarshalOptions{Deterministic: true}.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		// The generated code merges fields given twice; senders write each field once.
		if !bytes.Equal(again, b) {
			return
		}
		if told.window != want.GetWindow() || told.sessions != want.GetSessions() || len(replies) != len(want.GetReplies()) {
			t.Fatalf("%+v and %d replies, want %d, %v and %d", told, len(replies), want.GetWindow(), want.GetSessions(), len(want.GetReplies()))
		}
		for i, r := range replies {
			if r.tag != want.GetReplies()[i].GetTag() {
				t.Errorf("reply %d has tag %d, want %d", i, r.tag, want.GetReplies()[i].GetTag())
			}
			if want.GetReplies()[i].GetResult().GetResult() == nil {
				continue
			}
			got, err := decodeResult(r.result)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.GetReplies()[i].GetResult(), got, protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		}
	})
}
