package mux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// errNoStream ends the calls on a stream that the server does not serve: they are made as
// unary calls.
var errNoStream = errors.New("mux: the server has no Stream")

var streamDesc = grpc.StreamDesc{StreamName: "Stream", ClientStreams: true, ServerStreams: true}

// stream is an open stream. Unless another guard is named, the lock of the Mux guards its
// fields.
type stream struct {
	m      *Mux
	client grpc.ClientStream
	cancel context.CancelFunc

	table   table
	window  int      // how many calls may lack an answer
	cancels []uint64 // tags to be cancelled, at most as many as the window
	broken  bool
	heard   bool // the server has sent something
	err     error

	out []byte // the sender's: the message being made
}

// open opens a stream. Until the server tells its window, the stream carries a single
// call.
func (m *Mux) open() (*stream, error) {
	ctx, cancel := context.WithCancel(m.ctx)
	opts := append([]grpc.CallOption{grpc.ForceCodecV2(codec{})}, m.options...)
	client, err := m.conn.NewStream(ctx, &streamDesc, samyav1.TokenService_Stream_FullMethodName, opts...)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &stream{m: m, client: client, cancel: cancel, window: 1}
	m.mu.Lock()
	m.stream = s
	m.mu.Unlock()
	return s, nil
}

// run sends and receives until the stream has broken, and returns why.
func (s *stream) run() error {
	var receiver sync.WaitGroup
	receiver.Go(func() { s.fail(s.receive()) })
	for s.gather() {
		if err := s.client.SendMsg(&frame{s.out}); err != nil {
			// The receiver gets the reason why the stream ended.
			if !errors.Is(err, io.EOF) {
				s.fail(err)
			}
			break
		}
	}
	if s.closing() {
		s.cancel()
	}
	receiver.Wait()
	s.cancel()
	return s.err
}

// closing reports whether the Mux is closed or the stream has an error of its own.
func (s *stream) closing() bool {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return s.m.closed || s.broken
}

// fail sets why the stream has broken; the first reason counts.
func (s *stream) fail(err error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if !s.broken {
		s.broken, s.err = true, err
	}
	s.m.work.Signal()
	s.cancel()
}

// gather waits for something to send and makes a message of all waiting calls and
// cancels, as far as window and size allow. It reports false once the stream has broken
// or the Mux is closed.
func (s *stream) gather() bool {
	if !s.await() {
		return false
	}
	// Let callers that are about to queue a call go first: it leaves with this message.
	runtime.Gosched()
	now := time.Now()
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.broken || m.closed {
		return false
	}
	s.out = appendCancels(s.out[:0], s.cancels)
	s.cancels = s.cancels[:0]
	for s.table.used < s.window && m.queue.first != nil {
		if len(s.out)+len(m.queue.first.operation)+callOverhead > maxMessage && len(s.out) > 0 {
			break
		}
		c := m.queue.pop()
		s.table.add(c)
		c.state = sent
		s.out = appendCall(s.out, c, now)
	}
	return true
}

// await waits for something to send. While callers are being woken with answers, and may
// ask again, it waits until there are manyCalls. It reports false once the stream has
// broken or the Mux is closed.
func (s *stream) await() bool {
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	for !s.broken && !m.closed && len(s.cancels) == 0 &&
		(m.queue.first == nil || s.table.used >= s.window || m.telling.Load() > 0 && m.queue.count < manyCalls) {
		m.work.Wait()
	}
	return !s.broken && !m.closed
}

// abandon notes that nobody waits for c any more. The server still answers c; until then
// c counts towards the window.
func (s *stream) abandon(c *call) {
	s.table.at(c.tag).call = nil
	s.cancels = append(s.cancels, c.tag)
}

// receive gives answers to their callers until the stream has ended, and returns why.
func (s *stream) receive() error {
	var replies []reply
	var answered []*call
	for {
		f := frame{}
		if err := s.client.RecvMsg(&f); err != nil {
			return err
		}
		var told told
		var err error
		replies, told, err = readResponse(f.data, replies[:0])
		if err != nil {
			return err
		}
		answered, err = s.settle(replies, told, answered[:0])
		s.m.telling.Add(int64(len(answered)))
		for _, c := range answered {
			c.done <- struct{}{}
		}
		clear(replies)
		clear(answered)
		if err != nil {
			return err
		}
	}
}

// settle removes the answered calls from the table and appends the calls with a waiting
// caller to answered.
func (s *stream) settle(replies []reply, told told, answered []*call) ([]*call, error) {
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	full := s.table.used >= s.window
	if told.window > 0 && !s.heard {
		s.window = int(told.window)
	}
	if told.sessions || !s.heard {
		m.sessions.Store(told.sessions)
	}
	s.heard = true
	for _, r := range replies {
		c, ok := s.table.take(r.tag)
		if !ok {
			return answered, fmt.Errorf("the server answers a call %d that is not under way", r.tag)
		}
		if c == nil {
			continue
		}
		c.state, c.fate, c.answer = idle, Answered, r.result
		answered = append(answered, c)
	}
	if full && m.queue.first != nil {
		m.work.Signal()
	}
	return answered, nil
}

// verdict returns the error for the calls of a broken stream.
func (s *stream) verdict(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return status.Error(codes.Unavailable, "the server ended the stream")
	case !s.heard && status.Code(err) == codes.Unimplemented:
		return errNoStream
	}
	return err
}
