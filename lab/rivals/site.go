package rivals

import (
	"fmt"

	"github.com/samya-db/samya/lab/virtual"
)

const (
	// The bytes of messages between sites: of a question, and of an answer with
	// numbers.
	askBytes, tellBytes = 24, 32
)

// site is the durable escrow of a place.
type site struct {
	disk
	left, net int
}

// sites is the common part of all systems that divide the tokens.
type sites struct {
	w      *virtual.World
	answer func(*virtual.Request, virtual.Outcome)
	limit  int
	at     []*site
	// reads, granted, refused and timedOut count answers, waited counts acquires
	// that joined a queue.
	reads, granted, refused, timedOut, waited int
}

// start gives each place an equal part of the limit. If the limit does not divide,
// the first places get a token more.
func (s *sites) start(w *virtual.World, limit int, answer func(*virtual.Request, virtual.Outcome)) error {
	if w.Places() == 0 || limit < 0 {
		return fmt.Errorf("%d places and a limit of %d: want at least 1 and 0", w.Places(), limit)
	}
	s.w, s.limit, s.answer = w, limit, answer
	for i := range w.Places() {
		left := limit / w.Places()
		if i < limit%w.Places() {
			left++
		}
		s.at = append(s.at, &site{disk: disk{w: w, place: virtual.Place(i)}, left: left})
	}
	return nil
}

// settle answers a request.
func (s *sites) settle(r *virtual.Request, o virtual.Outcome) {
	switch {
	case r.Kind == virtual.ReadStale || r.Kind == virtual.ReadExact:
		s.reads++
	case o == virtual.Refused:
		s.refused++
	case o == virtual.TimedOut:
		s.timedOut++
	case r.Kind == virtual.Acquire:
		s.granted++
	}
	s.answer(r, o)
}

// late reports whether a request has passed its deadline, and then answers it.
func (s *sites) late(r *virtual.Request) bool {
	if r.Kind == virtual.Release || s.w.Now() <= r.Deadline {
		return false
	}
	s.settle(r, virtual.TimedOut)
	return true
}

// gather reads at all sites, and gives up at the deadline. Each site calls look on
// its durable books. Then whole reports whether the readings belong together; if
// not, all sites are asked again.
func (s *sites) gather(r *virtual.Request, look func(virtual.Place), whole func() bool) {
	done, home := false, r.Place
	s.w.After(home, r.Deadline-s.w.Now(), func() {
		if !done {
			done = true
			s.settle(r, virtual.TimedOut)
		}
	})
	var ask func()
	ask = func() {
		missing := s.w.Places()
		told := func() {
			if missing--; missing > 0 || done {
				return
			}
			if whole != nil && !whole() {
				ask()
				return
			}
			done = true
			s.settle(r, virtual.Granted)
		}
		for i := range s.at {
			p := virtual.Place(i)
			if p == home {
				continue
			}
			s.w.Send(home, p, askBytes, func() {
				s.w.Serve(p, func() {
					look(p)
					s.w.Send(p, home, tellBytes, told)
				})
			})
		}
		look(home)
		told()
	}
	ask()
}

// out returns the tokens granted and not released.
func (s *sites) out() int {
	net := 0
	for _, at := range s.at {
		net += at.net
	}
	return net
}

// left returns the tokens left at all sites.
func (s *sites) left() int {
	left := 0
	for _, at := range s.at {
		left += at.left
	}
	return left
}

func (s *sites) counters() map[string]float64 {
	return map[string]float64{
		virtual.Messages: float64(s.w.Messages), virtual.MessageBytes: float64(s.w.Bytes), "reads": float64(s.reads),
		"granted": float64(s.granted), "refused": float64(s.refused), "timed-out": float64(s.timedOut),
		virtual.Waited: float64(s.waited),
	}
}
