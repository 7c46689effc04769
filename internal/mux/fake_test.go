package mux

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// fakeConn is a connection with the test as its server. It serves streams alone: a test
// with a unary call fails.
type fakeConn struct {
	grpc.ClientConnInterface
	window uint32 // told at once; 0: left to the test
	refuse error  // opening a stream fails with it

	mu      sync.Mutex
	opened  int
	current *fakeStream
}

func (c *fakeConn) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened++
	if c.refuse != nil {
		return nil, c.refuse
	}
	s := &fakeStream{
		ctx: ctx, in: make(chan *samyav1.StreamRequest, 100), out: make(chan []byte, 100),
		ended: make(chan struct{}), stalled: make(chan struct{}),
	}
	close(s.stalled)
	if c.window > 0 {
		s.tell(&samyav1.StreamResponse{Window: c.window})
	}
	c.current = s
	return s, nil
}

// Invoke refuses a unary call: the server is reached, and may have begun it.
func (c *fakeConn) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return errors.New("a unary call is made")
}

// stream returns the stream that was opened last, once all is quiet.
func (c *fakeConn) stream() *fakeStream {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

type fakeStream struct {
	grpc.ClientStream
	ctx     context.Context
	in      chan *samyav1.StreamRequest // messages of the client
	out     chan []byte
	ended   chan struct{} // the server has ended it, with err
	err     error
	stalled chan struct{} // closed: messages flow
}

func (s *fakeStream) SendMsg(m any) error {
	data, err := codec{}.Marshal(m)
	if err != nil {
		return err
	}
	r := &samyav1.StreamRequest{}
	if err := proto.Unmarshal(data.Materialize(), r); err != nil {
		return err
	}
	select {
	case <-s.stalled:
	case <-s.ctx.Done():
		return io.EOF
	case <-s.ended:
		return io.EOF
	}
	select {
	case <-s.ended:
		return io.EOF
	case s.in <- r:
		return nil
	}
}

func (s *fakeStream) RecvMsg(m any) error {
	select {
	case b := <-s.out:
		m.(*frame).data = b
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	case <-s.ended:
		return s.err
	}
}

func (s *fakeStream) tell(r *samyav1.StreamResponse) {
	b, err := proto.Marshal(r)
	if err != nil {
		panic(err)
	}
	s.out <- b
}

// end ends the stream as its server would.
func (s *fakeStream) end(err error) {
	s.err = err
	close(s.ended)
}

// stall holds messages back until the function returned is called.
func (s *fakeStream) stall() (flow func()) {
	s.stalled = make(chan struct{})
	return func() { close(s.stalled) }
}

// taken returns the messages sent since it was asked last, once all is quiet.
func (s *fakeStream) taken() []*samyav1.StreamRequest {
	synctest.Wait()
	var ms []*samyav1.StreamRequest
	for {
		select {
		case m := <-s.in:
			ms = append(ms, m)
		default:
			return ms
		}
	}
}

// grant answers calls, each with its id.
func (s *fakeStream) grant(calls ...*samyav1.Call) {
	r := &samyav1.StreamResponse{}
	for _, c := range calls {
		r.Replies = append(r.Replies, &samyav1.Reply{Tag: c.GetTag(), Result: &samyav1.Result{
			Result: &samyav1.Result_Acquire{Acquire: &samyav1.AcquireResponse{RequestId: c.GetOperation().GetAcquire().GetRequestId()}},
		}})
	}
	s.tell(r)
}

func operation(id string) *samyav1.Operation {
	return &samyav1.Operation{Operation: &samyav1.Operation_Acquire{
		Acquire: &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: id},
	}}
}

// outcome is the result of Do.
type outcome struct {
	result *samyav1.Result
	fate   Fate
	err    error
}

// start makes a call in the background.
func start(ctx context.Context, m *Mux, id string) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		r, f, err := m.Do(ctx, operation(id))
		done <- outcome{r, f, err}
	}()
	return done
}

// want waits for the end of a call.
func want(t *testing.T, what string, done <-chan outcome, fate Fate, err error) outcome {
	t.Helper()
	synctest.Wait()
	select {
	case o := <-done:
		if o.fate != fate || !errors.Is(o.err, err) {
			t.Errorf("%s: %v, %v; want %v, %v", what, o.fate, o.err, fate, err)
		}
		return o
	default:
		t.Fatalf("%s: it has not ended", what)
		return outcome{}
	}
}

func pending(t *testing.T, what string, done <-chan outcome) {
	t.Helper()
	synctest.Wait()
	select {
	case o := <-done:
		t.Errorf("%s: ended with %v, %v", what, o.fate, o.err)
	default:
	}
}
