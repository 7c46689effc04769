package site

import (
	"testing"
	"time"

	"github.com/samya-db/samya/site/engine"
)

// deaf is an engine that answers nothing, and counts calls given up.
type deaf struct{ cancelled int }

func (*deaf) Start([]*engine.Call) error { return nil }

func (d *deaf) Cancel(*engine.Call) bool {
	d.cancelled++
	return true
}

// TestNextExpiry: a stream looks again when the next caller's time is up, and not at all
// if no caller has a time.
func TestNextExpiry(t *testing.T) {
	e, now := new(deaf), time.Unix(1000, 0)
	st := &stream{site: shell(), engine: e, open: make(map[uint64]*operation), wake: make(chan struct{}, 1)}
	in := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	for i, at := range []time.Time{in(0), in(3), in(1), {}} {
		st.open[uint64(i)] = &operation{to: st, tag: uint64(i), deadline: at}
	}
	for i, want := range []time.Time{in(1), in(3), in(3), {}} {
		if got := st.cancelExpired(in(i)); !got.Equal(want) || e.cancelled != min(i+1, 2)+i/3 {
			t.Errorf("after %d s: next %v, want %v; %d given up", i, got, want, e.cancelled)
		}
	}
}
