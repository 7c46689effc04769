//go:build linux && (amd64 || arm64)

package frames

import (
	"context"
	"net"
	"sync"
	"testing"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// quickOn returns the way to send on a connection without waiting; nil if there is none.
func quickOn(t *testing.T, c net.Conn) (*conn, *Quick) {
	t.Helper()
	framed := newConn(c, most)
	s := &serverStream{conn: framed, broken: func() {}}
	return framed, Quickly(context.WithValue(t.Context(), quickKey{}, s))
}

// TestQuick: messages to a client that does not read never wait. What the connection has
// not taken goes out before any other frame, and all frames are whole.
func TestQuick(t *testing.T) {
	a, b := pair(t)
	server, q := quickOn(t, quick(a))
	if q == nil {
		t.Fatal("no quick way")
	}
	sent := uint32(0)
	message := func() any {
		sent++
		m := &samyav1.StreamResponse{Window: sent}
		for range 1000 {
			m.Replies = append(m.Replies, &samyav1.Reply{Tag: 1 << 60})
		}
		return m
	}
	for full := false; !full; {
		tried, left, err := q.Try(message)
		if !tried || err != nil {
			t.Fatalf("message %d: tried %v, %v", sent, tried, err)
		}
		full = left
	}
	if tried, left, err := q.Try(message); tried || left || err != nil {
		t.Errorf("amid a message: tried %v, left %v, %v", tried, left, err)
	}
	var sending sync.WaitGroup
	last := message()
	sending.Go(func() {
		if err := server.sendMessage(last); err != nil {
			t.Error(err)
		}
		if err := q.Complete(); err != nil {
			t.Error(err)
		}
	})
	client := newConn(b, most)
	for want := uint32(1); want <= sent; want++ {
		var m samyav1.StreamResponse
		if err := client.receiveMessage(&m, nil); err != nil || m.GetWindow() != want || len(m.GetReplies()) != 1000 {
			t.Fatalf("message %d: window %d, %d replies: %v", want, m.GetWindow(), len(m.GetReplies()), err)
		}
	}
	sending.Wait()
	if tried, left, err := q.Try(message); !tried || left || err != nil {
		t.Errorf("after it: tried %v, left %v, %v", tried, left, err)
	}
}

// TestQuickCompletes: Complete sends what is left, without another message.
func TestQuickCompletes(t *testing.T) {
	a, b := pair(t)
	_, q := quickOn(t, quick(a))
	size := 0
	message := func() any {
		m := &samyav1.StreamResponse{Replies: []*samyav1.Reply{{Tag: 1, Result: &samyav1.Result{Result: &samyav1.Result_Failure{
			Failure: &samyav1.Failure{Message: string(make([]byte, 1<<19))},
		}}}}}
		size += headerBytes + m.SizeVT()
		return m
	}
	for left := false; !left; {
		var err error
		if _, left, err = q.Try(message); err != nil {
			t.Fatal(err)
		}
	}
	var completing sync.WaitGroup
	completing.Go(func() {
		if err := q.Complete(); err != nil {
			t.Error(err)
		}
	})
	room := make([]byte, 1<<16)
	for size > 0 {
		n, err := b.Read(room)
		if err != nil {
			t.Fatal(err)
		}
		size -= n
	}
	completing.Wait()
}

// TestQuickEnds: the end of a connection breaks its stream, as by SendMsg. A connection has no
// quick way if it offers no write without waiting.
func TestQuickEnds(t *testing.T) {
	a, _ := pair(t)
	_, q := quickOn(t, quick(a))
	broken := false
	q.stream.broken = func() { broken = true }
	_ = a.Close()
	if tried, left, err := q.Try(func() any { return &samyav1.StreamResponse{} }); !tried || left || err == nil || !broken || !q.stream.isOver() {
		t.Errorf("tried %v, left %v, %v", tried, left, err)
	}
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	if _, q := quickOn(t, near); q != nil {
		t.Error("a pipe has a quick way")
	}
	if Quickly(t.Context()) != nil {
		t.Error("a stream over gRPC has a quick way")
	}
}
