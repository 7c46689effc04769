package sim

import (
	"math/rand/v2"

	"github.com/samya-db/samya/internal/session"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/stored"
)

// sessions name the requests of some clients, and acknowledge them, as the client SDK does.
type sessions struct {
	// r draws apart from all else: a seed draws the same with sessions and without.
	r    *rand.Rand
	open []*openSession
	// often is how many of a thousand requests are of a session; 0 without sessions.
	often int
}

// openSession is a session. Its requests below acked are acknowledged.
type openSession struct {
	id          session.ID
	next, acked uint64
	answered    map[uint64]bool
}

// ticket is the place of a request in a session; of is nil without a session.
type ticket struct {
	of       *openSession
	sequence uint64
}

// mostSessions are open at a time.
const mostSessions = 4

// startSessions has three of four seeds name requests in sessions, in some of them all. Seeds
// with small tables judge the number of records, and rings have more places than records.
func (s *sim) startSessions() {
	s.sessions.r = rand.New(rand.NewPCG(s.o.Seed, 0x5e55))
	if s.o.Sessions && s.o.Seed%4 > 0 && !s.crowded() {
		s.sessions.often = []int{300, 800, 1000}[s.sessions.r.IntN(3)]
		s.report.Sessions = 1
	}
}

// maxOpen is the longest ring of a site: in most seeds sessions are often longer.
func (s *sim) maxOpen() int { return []int{8, 16, 64, session.MaxOpen}[s.o.Seed/4%4] }

// name names a request in a session, or returns false.
func (s *sessions) name(p *op) bool {
	if s.often == 0 || s.r.IntN(1000) >= s.often {
		return false
	}
	if len(s.open) < mostSessions && s.r.IntN(4) == 0 || len(s.open) == 0 {
		o := &openSession{answered: make(map[uint64]bool)}
		for i := range o.id {
			o.id[i] = byte(s.r.Uint32())
		}
		s.open = append(s.open, o)
	}
	o := s.open[s.r.IntN(len(s.open))]
	p.ticket = ticket{o, o.next}
	p.requestID = string(session.Append([]byte(o.id.Text()), o.next))
	o.next++
	return true
}

// acks is the bound below which an attempt sent now acknowledges requests.
func (t *ticket) acks() uint64 {
	if t.of == nil {
		return 0
	}
	return min(t.of.acked, t.sequence)
}

// acknowledged reports whether the client has acknowledged the request: any site may know.
func (t *ticket) acknowledged() bool { return t.of != nil && t.sequence < t.of.acked }

// over takes in the end of a request, with its answer or nil. Answered for good at the only site
// that it was sent to, it is acknowledged. Else its session ends, but for an eighth: some
// clients acknowledge late.
func (s *sessions) over(p *op, a *answer.Answer) {
	o := p.ticket.of
	if o == nil {
		return
	}
	if !p.answeredForGood(a) {
		if s.r.IntN(8) > 0 {
			s.drop(o)
		}
		return
	}
	for o.answered[p.ticket.sequence] = true; o.answered[o.acked]; o.acked++ {
		delete(o.answered, o.acked)
		p.s.report.Acknowledged++
	}
}

func (s *sessions) drop(gone *openSession) {
	for i, o := range s.open {
		if o == gone {
			s.open = append(s.open[:i], s.open[i+1:]...)
			return
		}
	}
}

// answeredForGood reports whether no attempt follows, and no site asks another about an attempt.
func (p *op) answeredForGood(a *answer.Answer) bool {
	if a == nil || a.Parked || p.tries.count > 1 || len(p.tries.sites) > 1 || p.tries.blind || p.tries.manager != nil && len(p.tries.manager.sites) > 1 {
		return false
	}
	switch a.Code {
	case answer.OK, answer.OutOfTokens, answer.ExceedsLimit, answer.NoLease:
	default:
		return false
	}
	// A release of another site's lease is settled between the sites.
	for i := range p.at {
		if q := &p.at[i]; q.state == stored.Parked || q.asked != nil {
			return false
		}
	}
	return true
}
