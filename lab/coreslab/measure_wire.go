package coreslab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/lab/compare"
	"github.com/samya-db/samya/lab/transports"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
)

// inMessage is the number of calls in the messages of measurements.
const inMessage = 256

// operation is a call of a stream, as package site has it.
type operation struct {
	mux.Entry
	acquire input.Acquire
	id      string
	// next and before are its place among the open calls, as in package engine.
	next, before *operation
}

// stream is a stream in memory. Its calls are answered at once, as they are begun.
type stream struct {
	grpc.ServerStream
	mux.Server[operation, *operation]
	m     *meter
	ctx   context.Context //nolint:containedctx // a stream has one
	raw   []byte
	left  int
	sent  chan struct{}
	began time.Time
	calls []*operation
	open  operation
	out   []byte
	made  []struct {
		is       samyav1.Result_Acquire
		response samyav1.AcquireResponse
	}
	told int
}

// Context implements grpc.ServerStream.
func (s *stream) Context() context.Context { return s.ctx }

// Recv gives the same message again, once all answers so far were sent.
func (s *stream) Recv() (*samyav1.StreamRequest, error) {
	<-s.sent
	if s.left == 0 {
		return nil, io.EOF
	}
	s.left--
	s.began = time.Now()
	r := new(samyav1.StreamRequest)
	return r, r.UnmarshalVT(s.raw)
}

// Send encodes answers.
func (s *stream) Send(r *samyav1.StreamResponse) error {
	n := r.SizeVT()
	s.out = slices.Grow(s.out[:0], n)[:n]
	_, err := r.MarshalToSizedBufferVT(s.out)
	if s.told += len(r.GetReplies()); s.told%inMessage == 0 {
		s.sent <- struct{}{}
	}
	return err
}

// Read implements mux.Handler.
func (s *stream) Read(o *operation, c *samyav1.Call) {
	r := c.GetOperation().GetAcquire()
	if err := (checks.Boundary{MaxSites: 1}).Acquire(r); err != nil {
		panic(err) // the meter's own call
	}
	o.id = r.GetRequestId()
	o.acquire = input.Acquire{Entity: r.GetEntity(), Tokens: input.MaxTokens, Request: attempt.KeyOf(o.id)}
	s.calls = append(s.calls, o)
}

// Start implements mux.Handler.
func (s *stream) Start(n int) {
	for _, o := range s.calls {
		last := s.open.before
		o.before, o.next = last, &s.open
		last.next, s.open.before = o, o
	}
	now := time.Now()
	s.m.note("decode", n, now.Sub(s.began))
	for _, o := range s.calls {
		o.before.next, o.next.before = o.next, o.before
		o.before, o.next = nil, nil
	}
	for _, o := range s.calls {
		s.Answered(o)
	}
	s.m.note("finish", n, time.Since(now))
	clear(s.calls)
	s.calls = s.calls[:0]
}

// Cancel implements mux.Handler.
func (*stream) Cancel(*operation, error) bool { return false }

// Answer implements mux.Handler.
func (s *stream) Answer(taken []*operation, replies []*samyav1.Reply) int {
	for i, o := range taken {
		a := &s.made[i]
		a.response.Tokens, a.response.RequestId, a.response.Site, a.response.Left = 1, o.id, "us", 1<<50
		a.is.Acquire = &a.response
		replies[i].Tag, replies[i].Result.Result = o.Tag, &a.is
	}
	return len(taken)
}

// calls are a message with n calls of entities drawn alike.
func (m *meter) calls(n int, rnd *rand.Rand, z *zipf) *samyav1.StreamRequest {
	r := new(samyav1.StreamRequest)
	for i := range n {
		r.Calls = append(r.Calls, &samyav1.Call{Tag: uint64(i + 1), Operation: &samyav1.Operation{Operation: &samyav1.Operation_Acquire{ //nolint:gosec // a count
			Acquire: &samyav1.AcquireRequest{Entity: entityName(z.draw(rnd)), Tokens: 1, RequestId: fmt.Sprintf("%016x%08x", rnd.Uint64(), i)},
		}}})
	}
	return r
}

// messages measures a stream's calls and answers, without sockets.
func (m *meter) messages(c *Costs) error {
	raw, err := m.calls(inMessage, rand.New(rand.NewPCG(3, 4)), newZipf(m.Entities)).MarshalVT() //nolint:gosec // a load
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	rounds := 10 * m.Rounds
	s := &stream{m: m, ctx: context.Background(), raw: raw, left: rounds, sent: make(chan struct{}, 1)}
	s.open.next, s.open.before = &s.open, &s.open
	s.made = make([]struct {
		is       samyav1.Result_Acquire
		response samyav1.AcquireResponse
	}, inMessage)
	s.Handler, s.Window, s.MaxReplies, s.Passing, s.Stopping = s, 1<<14, maxReplies, true, make(chan struct{})
	before, err := compare.UsageOf(nil)
	if err != nil {
		return err
	}
	if err := s.Serve(s); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("serve a stream: %w", err)
	}
	after, err := compare.UsageOf(nil)
	if err != nil {
		return err
	}
	all := float64((after.Client - before.Client).Nanoseconds()) / float64(rounds*inMessage)
	c.Decode, c.Finish = m.median("decode"), m.median("finish")
	c.Reply = max(1, all-c.Decode-c.Finish)
	return nil
}

// sockets measures messages of a real connection: the processor time of both ends over
// messages of few calls and of many, to a server that answers at once.
func (m *meter) sockets(ctx context.Context, c *Costs) (err error) {
	addr, pid, end, err := m.echo(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to the other end: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	const connections, fewCalls, manyCalls = 16, 4, 256
	span := time.Duration(m.Rounds) * 5 * time.Millisecond
	var server, client [2]float64 // of a message
	for i, calls := range []int{fewCalls, manyCalls} {
		d := &drive{conn: conn, addr: addr, pid: pid, entities: m.Entities, callers: connections * calls, connections: connections, warmup: span / 4, time: span}
		if err := d.run(ctx); err != nil {
			return fmt.Errorf("ask the other end: %w", err)
		}
		server[i] = float64(d.server.Nanoseconds()) / float64(d.messages)
		client[i] = float64(d.client.Nanoseconds()) / float64(d.messages)
	}
	c.Client = max(1, (client[1]-client[0])/(manyCalls-fewCalls))
	c.ClientMessage = max(1, client[0]-fewCalls*c.Client)
	message := max(2, server[0]-fewCalls*(server[1]-server[0])/(manyCalls-fewCalls))
	// Reading and writing are about alike: half of the time is for each.
	c.Receive, c.Send = message/2, message/2
	return nil
}

// echo starts the other end of messages, and returns its address, its process and its end.
func (m *meter) echo(ctx context.Context) (addr string, pid int, end func() error, err error) {
	ports, err := proc.FreePorts(ctx, 1)
	if err != nil {
		return "", 0, nil, fmt.Errorf("find a port: %w", err)
	}
	addr = ports[0]
	args := []string{addr, transports.Frames}
	ctx, cancel := context.WithCancel(ctx)
	if m.Self == "" {
		ended := make(chan error, 1)
		go func() { ended <- transports.Serve(ctx, args) }()
		return addr, os.Getpid(), func() error { cancel(); return <-ended }, awaitListener(ctx, addr)
	}
	p := exec.CommandContext(ctx, m.Self, append([]string{transports.ServeCommand}, args...)...) //nolint:gosec // this program
	p.Cancel = func() error { return p.Process.Signal(os.Interrupt) }
	if err := p.Start(); err != nil {
		cancel()
		return "", 0, nil, fmt.Errorf("start the other end: %w", err)
	}
	return addr, p.Process.Pid, func() error { cancel(); _ = p.Wait(); return nil }, awaitListener(ctx, addr)
}

// awaitListener waits until somebody listens at an address.
func awaitListener(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the other end: %w", err)
		}
	}
}
