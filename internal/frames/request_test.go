package frames

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/testfuzz"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// drawn is a message with calls and cancels by a random source.
func drawn(r *rand.Rand) *samyav1.StreamRequest {
	text := func() string { return strings.Repeat("é", r.IntN(4)) }
	m := &samyav1.StreamRequest{}
	for range r.IntN(5) {
		m.Cancels = append(m.Cancels, r.Uint64()>>r.IntN(64))
	}
	for range r.IntN(8) {
		c := &samyav1.Call{Tag: r.Uint64() >> r.IntN(64), TimeoutMs: r.Uint32() >> r.IntN(32), Trace: []byte(strings.Repeat("\x00", r.IntN(3)))}
		switch r.IntN(4) {
		case 0:
		case 1:
			c.Operation = &samyav1.Operation{}
		case 2:
			a := &samyav1.AcquireRequest{Entity: text(), RequestId: text(), Tokens: r.Int64() - r.Int64(), DryRun: r.IntN(2) == 0}
			if r.IntN(2) == 0 {
				a.NotAfter, a.Wait = &timestamppb.Timestamp{Seconds: r.Int64()}, durationpb.New(1)
				a.Lease, a.Tried = &samyav1.LeaseTerms{Holder: text()}, []string{text(), text()}
			}
			c.Operation = &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: a}}
		default:
			c.Operation = &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: &samyav1.ReleaseRequest{Entity: text(), Tokens: r.Int64(), Lease: text()}}}
		}
		m.Calls = append(m.Calls, c)
	}
	return m
}

// TestReusedRequests: each message is decoded as by the generated decoder, whatever messages
// came before.
func TestReusedRequests(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var d requests
	for i := range 5000 {
		want := drawn(r)
		b, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got samyav1.StreamRequest
		if err := d.read(&got, b); err != nil || !proto.Equal(&got, want) {
			t.Fatalf("message %d: %v\ngot  %v\nwant %v", i, err, &got, want)
		}
	}
}

// FuzzRequests: the decoder reads the same as the generated decoder, and takes all that an
// encoder writes.
func FuzzRequests(tf *testing.F) {
	f := testfuzz.On(tf)
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		b, err := proto.Marshal(drawn(r))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("\x0a\x06\x12\x04\x0a\x00\x12\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var d requests
		var got, want samyav1.StreamRequest
		before, _ := proto.Marshal(drawn(rand.New(rand.NewPCG(5, 6))))
		if err := d.read(&got, before); err != nil {
			t.Fatal(err)
		}
		got.Reset()
		err, wantErr := d.read(&got, b), want.UnmarshalVT(b)
		if wantErr != nil {
			if err == nil {
				t.Fatalf("the generated decoder says %v", wantErr)
			}
			return
		}
		dropUnknown(&want)
		if err != nil {
			// No encoder writes that. The same message as an encoder writes it is read.
			if b, err = want.MarshalVT(); err != nil {
				t.Fatal(err)
			}
			got.Reset()
			if err := d.read(&got, b); err != nil {
				t.Fatal(err)
			}
		}
		if !proto.Equal(&got, &want) {
			t.Errorf("got  %v\nwant %v", &got, &want)
		}
	})
}

// dropUnknown drops unknown fields of the outer messages.
func dropUnknown(m *samyav1.StreamRequest) {
	m.ProtoReflect().SetUnknown(nil)
	for _, c := range m.GetCalls() {
		c.ProtoReflect().SetUnknown(nil)
		if c.GetOperation() != nil {
			c.GetOperation().ProtoReflect().SetUnknown(nil)
		}
	}
}

// TestRequestsMemory: a large message does not leave its memory behind, and messages of a
// usual size take texts alone.
func TestRequestsMemory(t *testing.T) {
	message := func(calls int) []byte {
		m := &samyav1.StreamRequest{}
		for range calls {
			m.Calls = append(m.Calls, &samyav1.Call{Operation: &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: "e", RequestId: "r"}}}})
		}
		b, err := m.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var d requests
	read := func(b []byte) {
		var m samyav1.StreamRequest
		if err := d.read(&m, b); err != nil {
			t.Fatal(err)
		}
		runtime.KeepAlive(&m)
	}
	read(message(10_000))
	small := message(100)
	read(small)
	if len(d.calls) > keptCalls {
		t.Errorf("memory of %d calls is kept", len(d.calls))
	}
	if n := testing.AllocsPerRun(100, func() { read(small) }); n > 210 {
		t.Errorf("%v allocations for 100 calls", n)
	}
}
