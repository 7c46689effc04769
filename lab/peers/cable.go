package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/samya-db/samya/internal/wan"
)

// Cable is a listener that passes connections on to a server, and holds all bytes back by
// the way to it.
type Cable struct {
	listener net.Listener
	to       string
	way      time.Duration
	open     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	ended bool
}

// underWay bounds the pieces of a connection on a cable at a time.
const underWay = 1 << 14

// NewCable lays a cable to a server; way is the time of each direction.
func NewCable(ctx context.Context, to string, way time.Duration) (*Cable, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("lay a cable to %s: %w", to, err)
	}
	c := &Cable{listener: l, to: to, way: way, conns: make(map[net.Conn]struct{})}
	c.open.Go(c.accept)
	return c, nil
}

// Addr is the address of the near end.
func (c *Cable) Addr() string { return c.listener.Addr().String() }

// Close cuts all connections.
func (c *Cable) Close() error {
	err := c.listener.Close()
	c.mu.Lock()
	c.ended = true
	for conn := range c.conns {
		_ = conn.Close() // its copies end
	}
	c.mu.Unlock()
	c.open.Wait()
	return err
}

func (c *Cable) accept() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.open.Go(func() { c.connect(near) })
	}
}

// keep has Close close a connection. It reports whether the cable still lies.
func (c *Cable) keep(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.conns[conn] = struct{}{}
	}
	return !c.ended
}

func (c *Cable) drop(conn net.Conn) {
	c.mu.Lock()
	delete(c.conns, conn)
	c.mu.Unlock()
	_ = conn.Close() // it may be closed already
}

func (c *Cable) connect(near net.Conn) {
	defer c.drop(near)
	far, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(context.Background(), "tcp", c.to)
	if err != nil {
		return
	}
	defer c.drop(far)
	if !c.keep(near) || !c.keep(far) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { c.carry(far, near) })
	both.Go(func() { c.carry(near, far) })
	both.Wait()
}

// carry carries all bytes in a direction, and closes both ends when the source ends.
func (c *Cable) carry(to, from net.Conn) {
	done := make(chan struct{})
	line := wan.NewDelayLine(underWay, func(piece []byte) {
		if piece == nil {
			close(done)
			return
		}
		if _, err := to.Write(piece); err != nil {
			_ = from.Close() // the reader ends
		}
	})
	defer line.Close()
	for {
		piece := make([]byte, 16<<10)
		n, err := from.Read(piece)
		if n > 0 && !line.Send(piece[:n], c.way) {
			break // the bytes are lost: the connection is of no use any more
		}
		if errors.Is(err, io.EOF) && line.Send(nil, c.way) {
			<-done
		}
		if err != nil {
			break
		}
	}
	_ = to.Close()
	_ = from.Close()
}
