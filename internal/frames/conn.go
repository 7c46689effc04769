package frames

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// quietTime is how long a side may hear nothing before it asks.
	quietTime = 10 * time.Second
	// patience is how long it waits for an answer then.
	patience = 5 * time.Second
	// writeTime bounds the time in which the other side takes a frame.
	writeTime = 15 * time.Second
	// armEvery is how often the deadline of writes is moved at most.
	armEvery = time.Second
	// roomBytes is the memory kept for bytes that come in, and for a frame that goes out.
	roomBytes = 32 << 10
)

// encoded is a message with generated code to write and read it.
type encoded interface {
	SizeVT() int
	MarshalToSizedBufferVT(into []byte) (int, error)
	UnmarshalVT(from []byte) error
}

// conn is a connection that carries frames. A goroutine reads, another sends messages;
// pings and pongs go between.
type conn struct {
	net.Conn
	// most and theirs bound the messages that this and the other side take, in bytes.
	most, theirs int

	// in[r:w] has come and is not read yet.
	in   []byte
	r, w int
	// heard: something has come since the last look.
	heard atomic.Bool

	// sending guards out, left and wrote, and keeps frames whole.
	sending sync.Mutex
	// calls, if not nil, decodes messages of calls.
	calls *requests
	out   []byte
	// left is the part of out that the connection has not taken yet.
	left []byte
	// wrote is when the deadline of writes was last moved.
	wrote time.Time
}

func newConn(c net.Conn, most int) *conn {
	return &conn{Conn: c, most: most, theirs: mostContent, in: make([]byte, roomBytes)}
}

// next returns the next frame but pings and pongs. Its content is good until the next call.
func (c *conn) next() (kind, []byte, error) {
	for {
		k, content, err := c.read()
		switch {
		case err != nil:
			return 0, nil, err
		case k == pong:
		case k == ping:
			if err := c.send(pong, nil); err != nil {
				return 0, nil, err
			}
		default:
			return k, content, nil
		}
	}
}

// read returns the next frame.
func (c *conn) read() (kind, []byte, error) {
	if err := c.await(headerBytes); err != nil {
		return 0, nil, err
	}
	k, size := header(c.in[c.r:])
	most := c.most
	if k != message {
		most = maxHello
	}
	switch {
	case k < hello || k > pong, (k == ping || k == pong) && size > 0:
		return 0, nil, fmt.Errorf("%w: a frame of kind %d and %d bytes", errMalformed, k, size)
	case size > most:
		return 0, nil, status.Errorf(codes.ResourceExhausted, "frames: a frame of %d bytes, at most %d", size, most)
	}
	if err := c.await(headerBytes + size); err != nil {
		return 0, nil, noEOF(err)
	}
	content := c.in[c.r+headerBytes : c.r+headerBytes+size : c.r+headerBytes+size]
	c.r += headerBytes + size
	return k, content, nil
}

// noEOF turns the end of a connection amid a frame into an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// await reads until n bytes are there.
func (c *conn) await(n int) error {
	if c.r == c.w {
		c.r, c.w = 0, 0
		if len(c.in) > roomBytes && n <= roomBytes {
			c.in = make([]byte, roomBytes) // after a large frame
		}
	}
	for c.w-c.r < n {
		if len(c.in)-c.r < n {
			into := c.in
			if len(into) < n {
				into = make([]byte, n)
			}
			c.w = copy(into, c.in[c.r:c.w])
			c.in, c.r = into, 0
		}
		if err := c.fill(); err != nil {
			return err
		}
	}
	return nil
}

// fill reads bytes that have come, at least a byte.
func (c *conn) fill() error {
	n, err := c.Read(c.in[c.w:])
	if n > 0 {
		c.w += n
		c.heard.Store(true)
		return nil
	}
	return err
}

// watch asks the other side when it is silent, and closes the connection if it stays so.
// The caller must call stop at the end.
func (c *conn) watch() (stop func()) {
	var timer *time.Timer
	asked := false
	ready := make(chan struct{})
	timer = time.AfterFunc(quietTime, func() {
		<-ready
		switch {
		case c.heard.Swap(false):
			asked = false
			timer.Reset(quietTime)
		case asked || c.send(ping, nil) != nil:
			_ = c.Close()
		default:
			asked = true
			timer.Reset(patience)
		}
	})
	close(ready)
	return func() { timer.Stop() }
}

// send sends a frame.
func (c *conn) send(k kind, content []byte) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := c.complete(); err != nil {
		return err
	}
	c.out = append(append(c.out[:0], 0, 0, 0, 0), content...)
	return c.flush(k)
}

// sendMessage sends a message. The error is a status if the connection is still good.
func (c *conn) sendMessage(m any) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := c.complete(); err != nil {
		return err
	}
	if err := c.encode(m); err != nil {
		return err
	}
	return c.flush(message)
}

// encode makes out the frame of a message, but for the head. The error is a status if the
// connection is still good.
func (c *conn) encode(m any) error {
	e, ok := m.(encoded)
	if !ok {
		return status.Errorf(codes.Internal, "frames: a message of type %T", m)
	}
	size := e.SizeVT()
	if size > c.theirs {
		return status.Errorf(codes.ResourceExhausted, "frames: a message of %d bytes, at most %d", size, c.theirs)
	}
	c.out = slices.Grow(c.out[:0], headerBytes+size)[:headerBytes+size]
	if _, err := e.MarshalToSizedBufferVT(c.out[headerBytes:]); err != nil {
		return fmt.Errorf("frames: encoding %T: %w", m, err)
	}
	return nil
}

// flush fills in the head of the frame in out, and sends the frame.
func (c *conn) flush(k kind) error {
	if err := c.begin(k); err != nil {
		return err
	}
	_, err := c.Write(c.out)
	c.sent()
	return err
}

// begin fills in the head of the frame in out, and sees to the deadline of writes.
func (c *conn) begin(k kind) error {
	putHeader(c.out, k, len(c.out)-headerBytes)
	now := time.Now()
	if now.Sub(c.wrote) <= armEvery {
		return nil
	}
	c.wrote = now
	return c.SetWriteDeadline(now.Add(writeTime))
}

// sent notes that nothing of out is to be sent any more.
func (c *conn) sent() {
	if c.left = nil; cap(c.out) > roomBytes {
		c.out = nil // after a large message
	}
}

// receiveMessage receives a message, or returns io.EOF at the end of the connection.
// Another frame is handed to other.
func (c *conn) receiveMessage(m any, other func(kind, []byte) error) error {
	e, ok := m.(encoded)
	if !ok {
		return fmt.Errorf("frames: a message of type %T", m)
	}
	k, content, err := c.next()
	switch {
	case err != nil:
		return err
	case k != message:
		return other(k, content)
	}
	if r, ok := m.(*samyav1.StreamRequest); ok && c.calls != nil {
		err = c.calls.read(r, content)
	} else {
		err = e.UnmarshalVT(content)
	}
	if err != nil {
		return fmt.Errorf("frames: decoding %T: %w", m, err)
	}
	return nil
}
