package frames

import (
	"context"
)

// Quick sends messages on a stream without waiting; see Quickly.
type Quick struct {
	stream *serverStream
	at     attempter
}

// attempter is a connection that can write without waiting.
type attempter interface {
	// attempt writes as much of b as the connection takes at once, perhaps nothing, and
	// returns how much that was.
	attempt(b []byte) (n int, err error)
}

type quickKey struct{}

// Quickly returns a way to send on the stream of a context without waiting; nil if there is
// none: over gRPC, over TLS, and on systems for which this package has no such way.
func Quickly(ctx context.Context) *Quick {
	s, ok := ctx.Value(quickKey{}).(*serverStream)
	if !ok {
		return nil
	}
	at, ok := s.conn.Conn.(attempter)
	if !ok {
		return nil
	}
	return &Quick{stream: s, at: at}
}

// Try sends the message that made returns, as far as the connection takes it without
// waiting. If something else is being sent, Try does not call made, and returns false. left
// says that a part of the message is not sent yet: Complete sends it, and any other message
// sends it before. Errors are those of SendMsg.
func (q *Quick) Try(made func() any) (tried, left bool, err error) {
	tried, left, err = q.stream.conn.try(q.at, made)
	return tried, left, q.stream.ended(err)
}

// Complete sends what Try left, and waits until the connection has taken it. Errors are
// those of SendMsg.
func (q *Quick) Complete() error {
	c := q.stream.conn
	c.sending.Lock()
	defer c.sending.Unlock()
	return q.stream.ended(c.complete())
}

// try is Try for a connection, with the errors of sendMessage.
func (c *conn) try(at attempter, made func() any) (tried, left bool, _ error) {
	if !c.sending.TryLock() {
		return false, false, nil
	}
	defer c.sending.Unlock()
	if len(c.left) > 0 {
		return false, false, nil
	}
	if err := c.encode(made()); err != nil {
		return true, false, err
	}
	if err := c.begin(message); err != nil {
		return true, false, err
	}
	n, err := at.attempt(c.out)
	if err != nil || n == len(c.out) {
		c.sent()
		return true, false, err
	}
	c.left = c.out[n:]
	return true, true, nil
}

// complete sends what is left of a frame. c.sending is held.
func (c *conn) complete() error {
	if len(c.left) == 0 {
		return nil
	}
	_, err := c.Write(c.left)
	c.sent()
	return err
}
