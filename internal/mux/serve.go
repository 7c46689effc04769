package mux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// expiryPause is the shortest time between two looks for expired calls.
const expiryPause = 10 * time.Millisecond

// Entry is a call as its stream knows it. A Handler's type of calls embeds it.
type Entry struct {
	// Tag is the call's name, given by its caller.
	Tag uint64
	// Began is when the call came. Deadline is the end of its caller's wait; zero for
	// no end.
	Began, Deadline time.Time
	// cancelled: the call was given up. It is not used again.
	cancelled bool
	// kept: the call is not used again for its Handler's sake.
	kept bool
}

// Keep has the call not be used again, as the Handler may still know the call. Handlers
// call it before the Server is told of the answer.
func (e *Entry) Keep() { e.kept = true }

// Kept reports whether Keep was called.
func (e *Entry) Kept() bool { return e.kept }

func (e *Entry) entry() *Entry { return e }

// Entered is a pointer to a Handler's type of calls, T, which embeds Entry.
type Entered[T any] interface {
	*T
	entry() *Entry
}

// Handler runs the calls of a stream; C points to a call. Read, Start and Cancel are
// never called at the same time. Methods may not block. Of the Server, they may call
// Answered alone.
type Handler[C any] interface {
	// Read makes a call of a message ready, and may begin it. A call may be of an
	// earlier use, so Read sets all fields but Entry.
	Read(c C, m *samyav1.Call)
	// Start begins the calls read since the last Start; n calls were in the message.
	// Answered must be told of each call that was begun or refused, once.
	Start(n int)
	// Cancel gives up a call that nobody waits for any more. If it returns true, the
	// call has its answer, and Answered is not told.
	Cancel(c C, cause error) bool
	// Answer fills in tags and results of answered calls, and returns how many fit in a
	// message: at least one.
	Answer(calls []C, replies []*samyav1.Reply) int
}

// Server serves a stream. One goroutine reads, at all times, so that it hears of cancels.
// Another sends, in each message, all answers there are by then, unless Flush has sent them.
type Server[T any, C Entered[T]] struct {
	// Handler runs the calls.
	Handler Handler[C]
	// Window is the most calls without an answer. A call counts until its answer is
	// about to be sent.
	Window int
	// MaxReplies is the most answers in a message.
	MaxReplies int
	// Expires: calls are cancelled at their deadlines. Otherwise Handler heeds deadlines.
	Expires bool
	// Passing says that rpc keeps nothing of an answer once it is sent. Answers then share
	// memory.
	Passing bool
	// Sessions, if not nil, reports whether all sites of the cluster know sessions (package
	// session). Once it has, it always does. The client is told.
	Sessions func() bool
	// Quick, if not nil, sends on the stream without waiting, so that Flush can send answers.
	Quick Quick
	// Stopping is closed when the server stops. The stream then begins no call, and ends
	// with the error Stopped.
	Stopping <-chan struct{}
	Stopped  error

	// sending is held while answers are sent, and guards the fields up to turn. It is taken
	// before turn and mu.
	sending sync.Mutex
	// context is the stream's; nil before the window is told, and after the end.
	context context.Context //nolint:containedctx // it stands for the stream's
	// left: the stream has taken a part of a message. broken is why Flush could not send.
	left   bool
	broken error
	// flushed is memory of Flush.
	flushed []C
	// sessions: the client was told that sessions are known.
	sessions bool
	// answers and replies are the memory of the last message, see Passing.
	answers []replied
	replies []*samyav1.Reply

	// turn is held while calls are begun or cancelled, so that no call is given out
	// again meanwhile. It is taken before mu. The sender takes it only when a caller's
	// time is up, so that answers go on while calls are begun.
	turn sync.Mutex

	// mu guards the fields below, up to outMu.
	mu sync.Mutex
	// open has the calls without a sent answer, by tag.
	open map[uint64]C
	// free are calls to be used again.
	free []C
	// closed: no calls are begun any more.
	closed bool
	// expiry is no later than the first caller's deadline; zero if no caller has a
	// deadline, and without Expires.
	expiry time.Time

	// out are the calls that have answers. Its lock is taken after those of Handler.
	outMu sync.Mutex
	out   []C
	// wake holds one token when the sender has something to look at.
	wake chan struct{}
}

// replied is the memory of an answer.
type replied struct {
	is     samyav1.Reply
	result samyav1.Result
}

// keptReplies bounds the answers whose memory is kept for the next message.
const keptReplies = 512

// Answered notes that a call has its answer, and has it sent. It does not block.
func (s *Server[T, C]) Answered(c C) {
	if s.Gather(c) {
		s.nudge()
	}
}

func (s *Server[T, C]) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Serve serves rpc until its caller has closed it and has all answers, or until it fails;
// calls without an answer are then cancelled. If the server stops, Serve answers all
// calls it has begun, and then returns Stopped: a call without an answer was not begun.
// Other errors are WindowExceeded, InvalidField for a tag in use, Canceled, and errors of
// rpc. A Server serves once.
func (s *Server[T, C]) Serve(rpc samyav1.TokenService_StreamServer) error {
	s.open, s.wake = make(map[uint64]C), make(chan struct{}, 1)
	defer s.abandon()
	if err := rpc.Send(&samyav1.StreamResponse{Window: uint32(s.Window), Sessions: s.news()}); err != nil {
		return fmt.Errorf("telling the window: %w", err)
	}
	s.quicken(rpc.Context())
	defer s.quicken(nil) //nolint:staticcheck // nil: the stream has ended
	// The goroutine ends with the stream, perhaps after this function has returned.
	ended := make(chan error, 1)
	go func() { ended <- s.read(rpc) }()
	stopping := s.Stopping
	var end error
	timer := time.NewTimer(0)
	defer timer.Stop()
	var taken []C
	for {
		var err error
		if taken, err = s.sendAll(rpc, taken); err != nil {
			return err
		}
		if len(taken) > 0 {
			continue
		}
		if s.drained() {
			return end
		}
		s.expire(timer)
		select {
		case <-s.wake:
		case <-timer.C:
		case <-rpc.Context().Done():
			return apierr.Wrap(apierr.Canceled, context.Cause(rpc.Context()))
		case err := <-ended:
			if !errors.Is(err, io.EOF) {
				return err
			}
			s.close()
		case <-stopping:
			stopping, end = nil, s.Stopped
			s.close()
		}
	}
}

// read begins and cancels calls at the caller's request, until the stream ends.
func (s *Server[T, C]) read(rpc samyav1.TokenService_StreamServer) error {
	for {
		r, err := rpc.Recv()
		if err != nil {
			return err
		}
		if err := s.handle(r); err != nil {
			return err
		}
	}
}

func (s *Server[T, C]) handle(r *samyav1.StreamRequest) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if n := len(r.GetCalls()); n > 0 {
		if err := s.enter(r.GetCalls(), time.Now()); err != nil {
			return err
		}
		s.Handler.Start(n)
	}
	for _, tag := range r.GetCancels() {
		s.mu.Lock()
		c := s.open[tag]
		s.mu.Unlock()
		if c != nil {
			s.cancel(c, context.Canceled)
		}
	}
	return nil
}

// enter makes calls ready to be begun. A closed stream takes no calls.
func (s *Server[T, C]) enter(in []*samyav1.Call, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if n := len(s.open) + len(in); n > s.Window {
		return apierr.New(apierr.WindowExceeded, "%d calls without an answer, the window is %d", n, s.Window)
	}
	for i, m := range in {
		if _, ok := s.open[m.GetTag()]; ok {
			return apierr.Invalid(fmt.Sprintf("calls[%d].tag", i), fmt.Sprintf("%d is that of a call without an answer", m.GetTag()))
		}
		c := s.unused()
		e := c.entry()
		e.Tag, e.Began, e.Deadline = m.GetTag(), now, time.Time{}
		if ms := m.GetTimeoutMs(); ms > 0 {
			e.Deadline = now.Add(time.Duration(ms) * time.Millisecond)
			if s.Expires && (s.expiry.IsZero() || e.Deadline.Before(s.expiry)) {
				s.expiry = e.Deadline
				s.nudge()
			}
		}
		s.open[e.Tag] = c
		s.Handler.Read(c, m)
	}
	return nil
}

// unused returns an unused call.
func (s *Server[T, C]) unused() C {
	if n := len(s.free); n > 0 {
		c := s.free[n-1]
		s.free = s.free[:n-1]
		return c
	}
	return new(T)
}

// cancel gives up a call, unless its answer is on its way.
func (s *Server[T, C]) cancel(c C, cause error) {
	if s.Handler.Cancel(c, cause) {
		c.entry().cancelled = true
		s.Answered(c)
	}
}

// expire gives up the expired calls, and sets the timer for the next deadline.
func (s *Server[T, C]) expire(timer *time.Timer) {
	s.mu.Lock()
	next := s.expiry
	s.mu.Unlock()
	now := time.Now()
	if !next.IsZero() && !now.Before(next) {
		next = s.cancelExpired(now)
	}
	if next.IsZero() {
		timer.Stop()
		return
	}
	timer.Reset(max(expiryPause, next.Sub(now)))
}

// cancelExpired gives up the expired calls, and returns the next deadline of a call;
// zero if there is none.
func (s *Server[T, C]) cancelExpired(now time.Time) time.Time {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiry = time.Time{}
	for _, c := range s.open {
		switch e := c.entry(); {
		case e.Deadline.IsZero() || e.cancelled:
		case !now.Before(e.Deadline):
			s.cancel(c, context.DeadlineExceeded)
		case s.expiry.IsZero() || e.Deadline.Before(s.expiry):
			s.expiry = e.Deadline
		}
	}
	return s.expiry
}

// close stops the stream from beginning further calls.
func (s *Server[T, C]) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// drained reports whether the stream is closed and has sent all answers.
func (s *Server[T, C]) drained() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed && len(s.open) == 0
}

// abandon closes the stream and gives up all calls without an answer.
func (s *Server[T, C]) abandon() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, c := range s.open {
		s.Handler.Cancel(c, context.Canceled)
	}
}

// take returns the calls that have answers.
func (s *Server[T, C]) take(into []C) []C {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	taken := s.out
	s.out = into[:0]
	return taken
}

// sendAll sends all answers there are, and returns their calls in the memory of others.
func (s *Server[T, C]) sendAll(rpc samyav1.TokenService_StreamServer, memory []C) (taken []C, _ error) {
	s.sending.Lock()
	defer s.sending.Unlock()
	if err := s.complete(); err != nil {
		return nil, err
	}
	taken = s.take(memory)
	return taken, s.send(rpc, taken)
}

// send sends the answers of calls, in as many messages as necessary. s.sending is held.
func (s *Server[T, C]) send(rpc samyav1.TokenService_StreamServer, taken []C) error {
	for len(taken) > 0 {
		resp := s.response(taken)
		n := len(resp.GetReplies())
		s.reuse(taken[:n])
		if err := rpc.Send(resp); err != nil {
			return fmt.Errorf("sending answers: %w", err)
		}
		taken = taken[n:]
	}
	return nil
}

// response returns a message with the answers of the first calls. s.sending is held.
func (s *Server[T, C]) response(taken []C) *samyav1.StreamResponse {
	taken = taken[:min(len(taken), s.MaxReplies)]
	if n := len(taken); !s.Passing || n > len(s.answers) || len(s.answers) > keptReplies {
		s.answers, s.replies = make([]replied, n), make([]*samyav1.Reply, n)
		for i := range s.answers {
			s.answers[i].is.Result = &s.answers[i].result
			s.replies[i] = &s.answers[i].is
		}
	}
	replies := s.replies[:len(taken)]
	return &samyav1.StreamResponse{Replies: replies[:s.Handler.Answer(taken, replies)], Sessions: s.news()}
}

// news reports whether the client is to be told that sessions are known: once. s.sending is
// held, or nothing is sent yet.
func (s *Server[T, C]) news() bool {
	if s.sessions || s.Sessions == nil || !s.Sessions() {
		return false
	}
	s.sessions = true
	return true
}

// reuse takes out calls whose answers are about to be sent.
func (s *Server[T, C]) reuse(sent []C) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(sent)
}

// remove is reuse with s.mu held.
func (s *Server[T, C]) remove(sent []C) {
	for i, c := range sent {
		e := c.entry()
		delete(s.open, e.Tag)
		if !e.cancelled && !e.kept {
			s.free = append(s.free, c)
		}
		sent[i] = nil
	}
}
