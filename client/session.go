package client

import (
	"crypto/rand"
	"sync"

	"github.com/oklog/ulid/v2"

	"github.com/samya-db/samya/internal/session"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// sessions names the requests of a client. Sites that know sessions find such requests without
// a search, and drop acknowledged requests at once. A request is acknowledged if its first
// attempt was answered for good: no attempt follows, and no site asks another about it. After
// any other end of a request another session begins, as the old session can acknowledge no
// more. The zero value is ready to use.
type sessions struct {
	mu   sync.Mutex
	open *openSession
}

// openSession is a session with requests under way. The lock of sessions guards its fields.
type openSession struct {
	text string
	// next is the sequence of the next request. Requests below acked are acknowledged.
	next, acked uint64
	// answered has a bit for each sequence from acked on, at the sequence modulo its length.
	answered [session.MaxOpen / 64]uint64
}

// ticket is a request's place in a session. The zero ticket is of no session.
type ticket struct {
	of       *openSession
	sequence uint64
}

// begin names a request. Requests below acked are acknowledged.
func (s *sessions) begin() (id string, acked uint64, t ticket) {
	s.mu.Lock()
	o := s.open
	if o == nil || o.next-o.acked >= session.MaxOpen || o.next > session.MaxSequence {
		var of session.ID
		// Read never fails: see package rand.
		_, _ = rand.Read(of[:])
		o = &openSession{text: of.Text()}
		s.open = o
	}
	t = ticket{o, o.next}
	o.next++
	acked = o.acked
	s.mu.Unlock()
	var room [64]byte
	return string(session.Append(append(room[:0], o.text...), t.sequence)), acked, t
}

// end notes the end of a request. If it was answered for good, it is acknowledged, once all
// earlier requests of the session are. Otherwise the session has ended.
func (s *sessions) end(t ticket, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := t.of
	if !answered {
		if s.open == o {
			s.open = nil
		}
		return
	}
	at, bit := place(t.sequence)
	for o.answered[at] |= bit; o.acked < o.next; o.acked++ {
		at, bit := place(o.acked)
		if o.answered[at]&bit == 0 {
			return
		}
		o.answered[at] &^= bit
	}
}

func place(sequence uint64) (at int, bit uint64) {
	return int(sequence % session.MaxOpen / 64), 1 << (sequence % 64)
}

// name gives a movement an id for a try at a target, unless it has an id. knows says that the
// target knows sessions.
func (s *sessions) name(m *movement, knows bool) {
	switch {
	case m.id == "" && knows:
		m.id, m.acked, m.ticket = s.begin()
	case m.id == "":
		m.named()
	case !knows:
		// An app manager may try several sites in its turn.
		m.beyond = true
	}
}

// named returns the id of a movement. Without an id, before the first try, it makes an id.
func (m *movement) named() string {
	if m.id == "" {
		m.id = ulid.Make().String()
	}
	return m.id
}

// over ends a movement. result is its last answer.
func (s *sessions) over(m *movement, result *samyav1.Result) {
	if m.ticket.of != nil {
		s.end(m.ticket, m.once() && !result.GetRelease().GetParked())
	}
}

// once reports whether no site asks another about the movement, and no attempt follows: at most
// a single attempt was begun, at a site that was chosen by this client, and its outcome is known.
func (m *movement) once() bool { return m.attempt == 1 && !m.indeterminate && !m.beyond }

// acknowledges returns the bound below which the next try acknowledges requests.
func (m *movement) acknowledges() uint64 {
	if m.beyond {
		return 0
	}
	return m.acked
}
