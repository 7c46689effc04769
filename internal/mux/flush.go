package mux

import (
	"context"
	"fmt"
	"slices"
)

// Quick sends on a stream without waiting.
type Quick interface {
	// Try sends the message that made returns, as far as the stream takes it without
	// waiting. If something else is being sent, Try does not call made, and returns false.
	// left says that a part of the message is not sent yet: Complete sends it, and any
	// other message sends it before.
	Try(made func() any) (tried, left bool, err error)
	// Complete sends what Try left, and waits until the stream has taken it.
	Complete() error
}

// mostFlushed bounds the answers that Flush sends itself: its caller has more to do.
const mostFlushed = 256 // answers

// Gather notes that a call has its answer. If it returns true, the caller must call Flush
// once it has no further answers at hand. It does not block.
func (s *Server[T, C]) Gather(c C) (first bool) {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	s.out = append(s.out, c)
	return len(s.out) == 1
}

// Flush has the gathered answers sent. With now it sends them itself, which saves waking
// the sender, unless it had to wait: for the stream's caller or for another goroutine. It
// does not block.
func (s *Server[T, C]) Flush(now bool) {
	if now && s.Quick != nil && s.sending.TryLock() {
		all := s.flush()
		s.sending.Unlock()
		if all {
			return
		}
	}
	s.nudge()
}

// flush sends the gathered answers, and reports whether nothing is left to the sender.
// s.sending is held.
func (s *Server[T, C]) flush() (all bool) {
	if s.context == nil || s.context.Err() != nil || s.left || s.broken != nil {
		return false
	}
	if n := s.gathered(); n == 0 || n > mostFlushed {
		return n == 0
	}
	// While calls are begun, mu may be held for long.
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	rest := false
	tried, left, err := s.Quick.Try(func() any {
		taken := s.take(s.flushed)
		s.flushed = taken
		resp := s.response(taken)
		n := len(resp.GetReplies())
		rest = s.putBack(taken[n:])
		s.remove(taken[:n])
		return resp
	})
	s.left = left
	if err != nil {
		s.broken = fmt.Errorf("sending answers: %w", err)
	}
	return tried && !left && err == nil && !rest && !s.closed
}

// complete sends what Flush has left of a message. It returns the error of Flush, if any.
// s.sending is held.
func (s *Server[T, C]) complete() error {
	if s.broken != nil || !s.left {
		return s.broken
	}
	s.left = false
	if err := s.Quick.Complete(); err != nil {
		return fmt.Errorf("sending answers: %w", err)
	}
	return nil
}

// gathered returns the number of answers to be sent.
func (s *Server[T, C]) gathered() int {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	return len(s.out)
}

// putBack puts back calls whose answers did not fit in a message, and reports whether there
// were any.
func (s *Server[T, C]) putBack(calls []C) bool {
	if len(calls) == 0 {
		return false
	}
	s.outMu.Lock()
	defer s.outMu.Unlock()
	s.out = append(slices.Clone(calls), s.out...)
	clear(calls)
	return true
}

// quicken begins the time in which Flush may send, or ends it.
func (s *Server[T, C]) quicken(ctx context.Context) {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.context = ctx
}
