package mux

import (
	"testing"
	"time"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// deaf is a Handler that answers nothing, and counts calls given up.
type deaf struct {
	Handler[*deafCall]
	cancelled int
}

type deafCall struct{ Entry }

func (d *deaf) Cancel(*deafCall, error) bool {
	d.cancelled++
	return true
}

// TestNextExpiry: a stream looks again when the next caller's time is up, and not at all
// if no caller has a time.
func TestNextExpiry(t *testing.T) {
	h, now := new(deaf), time.Unix(1000, 0)
	s := &Server[deafCall, *deafCall]{Handler: h, open: make(map[uint64]*deafCall), wake: make(chan struct{}, 1)}
	in := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	for i, at := range []time.Time{in(0), in(3), in(1), {}} {
		s.open[uint64(i)] = &deafCall{Entry{Tag: uint64(i), Deadline: at}}
	}
	for i, want := range []time.Time{in(1), in(3), in(3), {}} {
		if got := s.cancelExpired(in(i)); !got.Equal(want) || h.cancelled != min(i+1, 2)+i/3 {
			t.Errorf("after %d s: next %v, want %v; %d given up", i, got, want, h.cancelled)
		}
	}
}

// TestHandlersHeedDeadlines: without Expires, a stream gives up no call at a deadline.
func TestHandlersHeedDeadlines(t *testing.T) {
	for _, expires := range []bool{false, true} {
		s := &Server[deafCall, *deafCall]{
			Handler: reader{}, Window: 1, Expires: expires, open: make(map[uint64]*deafCall), wake: make(chan struct{}, 1),
		}
		if err := s.handle(&samyav1.StreamRequest{Calls: []*samyav1.Call{{Tag: 1, TimeoutMs: 5}}}); err != nil {
			t.Fatal(err)
		}
		if c := s.open[1]; c.Deadline.Sub(c.Began) != 5*time.Millisecond || s.expiry.IsZero() == expires {
			t.Errorf("expires %t: the call %+v, the next expiry %v", expires, c, s.expiry)
		}
	}
}

// reader is a Handler that reads calls, and begins nothing.
type reader struct{ Handler[*deafCall] }

func (reader) Read(*deafCall, *samyav1.Call) {}
func (reader) Start(int)                     {}
