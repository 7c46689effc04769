package failuretest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/wan"
)

// etcdProxy stands between a node of a site and etcd. It knows HTTP/2 frames, and so the
// calls of the node: it can strike at a call, lose an answer, delay everything, and cut the
// node off.
type etcdProxy struct {
	// members are the addresses of etcd's members, addrs the proxy's own for each of them.
	members, addrs []string

	ctx    context.Context //nolint:containedctx // the life of the proxy
	cancel context.CancelFunc
	all    sync.WaitGroup
	ends   []net.Listener

	mu    sync.Mutex
	open  chan struct{} // closed while frames pass
	delay time.Duration // of a round trip
	conns map[*proxied]struct{}
	plan  *strike
	seen  map[etcdCall]int
}

// newEtcdProxy starts a proxy that ends with the test.
func newEtcdProxy(t *testing.T, members []string) *etcdProxy {
	t.Helper()
	p := &etcdProxy{members: members, open: make(chan struct{}), conns: map[*proxied]struct{}{}, seen: map[etcdCall]int{}}
	close(p.open)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	t.Cleanup(p.close)
	for _, m := range members {
		l, err := (&net.ListenConfig{}).Listen(p.ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p.ends, p.addrs = append(p.ends, l), append(p.addrs, l.Addr().String())
		p.all.Go(func() { p.accept(l, m) })
	}
	return p
}

func (p *etcdProxy) close() {
	p.cancel()
	for _, l := range p.ends {
		_ = l.Close() // nothing rests on a listener any more
	}
	p.reset()
	p.all.Wait()
}

// reset breaks all connections.
func (p *etcdProxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.close()
	}
}

// cut lets nothing pass until heal.
func (p *etcdProxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

// heal ends a cut. With late, what was sent meanwhile arrives late, as on a network that
// repeats packets; otherwise the connections break.
func (p *etcdProxy) heal(late bool) {
	if !late {
		p.reset()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.open)
}

// slow delays each answer by d.
func (p *etcdProxy) slow(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *etcdProxy) accept(l net.Listener, member string) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.serve(client, member) })
	}
}

// proxied is a connection of a node to a member.
type proxied struct {
	proxy        *etcdProxy
	node, member net.Conn
	ctx          context.Context //nolint:containedctx // the life of the connection
	close        context.CancelFunc

	mu    sync.Mutex
	calls map[uint32]etcdCall // the first frame of each call tells its kind
}

// serve forwards frames both ways until an end fails.
func (p *etcdProxy) serve(node net.Conn, member string) {
	c := &proxied{proxy: p, node: node, calls: map[uint32]etcdCall{}}
	c.ctx, c.close = context.WithCancel(p.ctx)
	p.mu.Lock()
	p.conns[c] = struct{}{}
	p.mu.Unlock()
	defer func() {
		c.close()
		_ = node.Close() // the other end learns of the end, whatever the error
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
	}()
	if p.pass(c.ctx) != nil {
		return
	}
	var err error
	if c.member, err = (&net.Dialer{}).DialContext(c.ctx, "tcp", member); err != nil {
		return
	}
	defer func() { _ = c.member.Close() }() // as above
	stop := context.AfterFunc(c.ctx, func() {
		// Readers and writers return.
		_ = node.SetDeadline(time.Unix(1, 0))
		_ = c.member.SetDeadline(time.Unix(1, 0))
	})
	defer stop()
	preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if _, err := io.ReadFull(node, preface); err != nil {
		return
	}
	if _, err := c.member.Write(preface); err != nil {
		return
	}
	var ways sync.WaitGroup
	ways.Go(func() { c.forward(node, c.member, c.asked) })
	ways.Go(func() { c.forward(c.member, node, c.answered) })
	ways.Wait()
}

// pass waits until frames may pass.
func (p *etcdProxy) pass(ctx context.Context) error {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// frame is a frame of HTTP/2, with its header.
type frame struct {
	bytes []byte
	due   time.Time
}

// The header of a frame, and the types and flags that matter here.
const (
	frameHeader  = 9
	frameData    = 0
	frameHeaders = 1
	endStream    = 1
)

func (f *frame) kind() byte { return f.bytes[3] }

// ends reports whether the frame ends its stream.
func (f *frame) ends() bool { return f.kind() <= frameHeaders && f.bytes[4]&endStream != 0 }

func (f *frame) stream() uint32 { return binary.BigEndian.Uint32(f.bytes[5:9]) &^ (1 << 31) }

func readFrame(r io.Reader) (*frame, error) {
	head := make([]byte, frameHeader)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	f := &frame{bytes: make([]byte, frameHeader+int(head[0])<<16+int(head[1])<<8+int(head[2]))}
	copy(f.bytes, head)
	_, err := io.ReadFull(r, f.bytes[frameHeader:])
	return f, err
}

// errStruck ends a connection on which an answer was lost.
var errStruck = errors.New("struck")

// forward forwards frames of a direction. look sees each frame just before and after it passes.
func (c *proxied) forward(from io.Reader, to io.Writer, look func(f *frame, passed bool) error) {
	defer c.close()
	frames := make(chan *frame, 1<<12)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer c.close() // before the wait, so that the reader returns
	reading.Go(func() {
		defer close(frames)
		for {
			f, err := readFrame(from)
			if err != nil {
				return
			}
			c.proxy.mu.Lock()
			f.due = time.Now().Add(c.proxy.delay / 2)
			c.proxy.mu.Unlock()
			select {
			case frames <- f:
			case <-c.ctx.Done():
				return
			}
		}
	})
	for f := range frames {
		if wan.Wait(c.ctx, time.Until(f.due)) != nil || c.proxy.pass(c.ctx) != nil || look(f, false) != nil {
			return
		}
		if _, err := to.Write(f.bytes); err != nil || look(f, true) != nil {
			return
		}
	}
}

// asked sees a frame of the node.
func (c *proxied) asked(f *frame, passed bool) error {
	if f.kind() != frameData {
		return nil
	}
	c.mu.Lock()
	kind, known := c.calls[f.stream()]
	if !known {
		kind = kindOf(f.bytes[frameHeader:])
		c.calls[f.stream()] = kind
	}
	c.mu.Unlock()
	if !f.ends() || passed {
		return nil // the call is not whole, or goes on for long as a watch does
	}
	return c.proxy.call(c, f.stream(), kind)
}

// answered sees a frame of the member.
func (c *proxied) answered(f *frame, passed bool) error {
	if f.kind() > frameHeaders {
		return nil
	}
	err := c.proxy.answer(c, f, passed)
	if f.ends() && passed {
		c.mu.Lock()
		delete(c.calls, f.stream())
		c.mu.Unlock()
	}
	return err
}

// etcdCall is a kind of call of a node to etcd.
type etcdCall string

// The kinds of calls.
const (
	etcdCommit  etcdCall = "commit"
	etcdBeat    etcdCall = "sign of life"
	etcdTell    etcdCall = "standing"
	etcdTrim    etcdCall = "trim"
	etcdConfirm etcdCall = "confirmation"
	etcdLead    etcdCall = "take-over"
	etcdRead    etcdCall = "read"
)

// kindOf tells the kind of a call by the keys in its request.
func kindOf(request []byte) etcdCall {
	has := func(text string) bool { return bytes.Contains(request, []byte(text)) }
	leaders := bytes.Count(request, []byte("/leader"))
	switch {
	case has(`"run":`):
		return etcdLead
	case has("/log/") && has("/part/") && leaders > 0:
		return etcdTrim
	case has("/log/") && leaders > 0:
		return etcdCommit
	case has("/beat") && leaders > 0:
		return etcdBeat
	case has("/nodes/") && has(`"node":`):
		return etcdTell
	case leaders > 1:
		return etcdConfirm
	}
	return etcdRead
}
