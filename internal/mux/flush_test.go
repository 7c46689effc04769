package mux

import (
	"context"
	"errors"
	"testing"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// tagging is a Handler that answers tags alone, at most so many in a message.
type tagging struct {
	Handler[*deafCall]
	most int
}

// Answer implements Handler.
func (h tagging) Answer(calls []*deafCall, replies []*samyav1.Reply) int {
	n := min(len(calls), h.most)
	for i, c := range calls[:n] {
		replies[i].Tag = c.Tag
	}
	return n
}

// quickly is a Quick that notes what happens.
type quickly struct {
	busy, full bool
	err        error
	sent       []uint64 // tags
	completed  int
}

// Try implements Quick.
func (q *quickly) Try(made func() any) (tried, left bool, err error) {
	if q.busy {
		return false, false, nil
	}
	for _, r := range made().(*samyav1.StreamResponse).GetReplies() {
		q.sent = append(q.sent, r.GetTag())
	}
	return true, q.full, q.err
}

// Complete implements Quick.
func (q *quickly) Complete() error {
	q.completed++
	return nil
}

// slowly is a stream that notes what the sender sends.
type slowly struct {
	samyav1.TokenService_StreamServer
	sent []uint64
}

// Send implements samyav1.TokenService_StreamServer.
func (r *slowly) Send(m *samyav1.StreamResponse) error {
	for _, reply := range m.GetReplies() {
		r.sent = append(r.sent, reply.GetTag())
	}
	return nil
}

var errQuick = errors.New("the stream has broken")

// TestFlush: answers are sent at once where nothing must be waited for. Whatever is left,
// the sender is woken for, and sends it in the right order. No answer is sent twice.
func TestFlush(t *testing.T) {
	type server = Server[deafCall, *deafCall]
	for name, tc := range map[string]struct {
		set     func(*server, *quickly)
		later   bool // Flush shall not send
		answers int
		quick   int // answers that Flush sends
		woken   bool
	}{
		"all":                 {answers: 3, quick: 3},
		"nothing":             {},
		"later":               {later: true, answers: 3, woken: true},
		"no quick way":        {set: func(s *server, _ *quickly) { s.Quick = nil }, answers: 3, woken: true},
		"a frame goes out":    {set: func(_ *server, q *quickly) { q.busy = true }, answers: 3, woken: true},
		"the sender sends":    {set: func(s *server, _ *quickly) { s.sending.Lock() }, answers: 3, woken: true},
		"calls are begun":     {set: func(s *server, _ *quickly) { s.mu.Lock() }, answers: 3, woken: true},
		"no stream":           {set: func(s *server, _ *quickly) { s.quicken(nil) }, answers: 3, woken: true}, //nolint:staticcheck // none
		"a stream that ended": {set: func(s *server, _ *quickly) { s.quicken(ended()) }, answers: 3, woken: true},
		"many":                {answers: mostFlushed + 1, woken: true},
		"not many":            {answers: mostFlushed, quick: mostFlushed},
		"few fit":             {set: func(s *server, _ *quickly) { s.Handler = tagging{most: 2} }, answers: 3, quick: 2, woken: true},
		"a slow caller":       {set: func(_ *server, q *quickly) { q.full = true }, answers: 3, quick: 3, woken: true},
		"a broken stream":     {set: func(_ *server, q *quickly) { q.err = errQuick }, answers: 3, quick: 3, woken: true},
		"a closed stream":     {set: func(s *server, _ *quickly) { s.closed = true }, answers: 3, quick: 3, woken: true},
	} {
		t.Run(name, func(t *testing.T) {
			q := new(quickly)
			s := &server{
				Handler: tagging{most: 1000}, MaxReplies: 1000, Passing: true, Quick: q,
				open: make(map[uint64]*deafCall), wake: make(chan struct{}, 1), context: t.Context(),
			}
			for tag := range uint64(tc.answers) {
				c := &deafCall{Entry{Tag: tag}}
				s.open[tag] = c
				if first := s.Gather(c); first != (tag == 0) {
					t.Errorf("call %d is the first: %v", tag, first)
				}
			}
			if tc.set != nil {
				tc.set(s, q)
			}
			s.Flush(!tc.later)
			if woken := len(s.wake) > 0; woken != tc.woken || len(q.sent) != tc.quick {
				t.Fatalf("%d answers are sent, and the sender is woken: %v", len(q.sent), woken)
			}
			if !s.mu.TryLock() {
				s.mu.Unlock()
				s.mu.Lock()
			}
			if open := len(s.open); open != tc.answers-tc.quick {
				t.Errorf("%d calls are open", open)
			}
			s.mu.Unlock()
			if !s.sending.TryLock() {
				s.sending.Unlock()
				s.sending.Lock()
			}
			s.sending.Unlock()
			if q.full || q.err != nil {
				// Nothing more goes out by Flush.
				s.Gather(&deafCall{Entry{Tag: uint64(tc.answers)}})
				s.Flush(true)
				tc.answers++
			}
			rpc := new(slowly)
			_, err := s.sendAll(rpc, nil)
			if !errors.Is(err, q.err) || q.completed != map[bool]int{true: 1}[q.full] {
				t.Errorf("the sender completed %d messages: %v", q.completed, err)
			}
			if q.err != nil {
				return
			}
			all := append(q.sent, rpc.sent...)
			for i, tag := range all {
				if tag != uint64(i) {
					t.Fatalf("answer %d is of call %d", i, tag)
				}
			}
			if len(all) != tc.answers {
				t.Errorf("%d answers, of %d", len(all), tc.answers)
			}
		})
	}
}

// ended is a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
