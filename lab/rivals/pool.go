package rivals

import (
	"fmt"
	"time"

	"github.com/samya-db/samya/lab/virtual"
)

var _ virtual.Knower = (*Pool)(nil)

const (
	// centre is the place of a Pool's server, or of the owner of an Approximate
	// counter, beside the site there.
	centre virtual.Place = 0
	// refresh is the interval between renewals of a lease, lease the length of a
	// lease.
	refresh, lease = time.Second, time.Minute
	// unanswered is the time after which a site asks again.
	unanswered = 2 * time.Second
	// headPart and headLeast bound the tokens that a site wants beyond its need: its
	// need divided by headPart, plus headLeast.
	headPart, headLeast = 5, 20
	// growPart sets the growth of these tokens with each question, as a part of the
	// bound. While the limit does not suffice, each question divides them by
	// shrinkTo instead.
	growPart, shrinkTo = 8, 4
)

// Pool is a central pool, after the design of Doorman: a server leases each site a
// share of the limit, and each site serves from its lease. Every second a site
// tells the server its wants: the most tokens that its clients held and waited for
// since the last question, and a fifth more. The server leases all wants while the
// limit suffices. Otherwise it leases proportional shares: an equal share to each
// site that wants as much, and the rest in proportion to the wants beyond an equal
// share.
//
// It is kinder than the original. A site asks at once when an acquire waits, and
// gives back at once the tokens beyond its share. It wants less beyond its need
// while the limit does not suffice.
//
// Tokens are held here, for longer than a lease may last, while Doorman shares out
// rates. So a share shrinks by the tokens that a site gives back of its own accord,
// never below the tokens of its clients. A site that cannot renew its lease in a
// minute grants no more until it can. The server takes nothing back meanwhile. It
// does not know the tokens of the clients there, and might lease out more than the
// limit. So the sum of all leases is never above the limit.
//
// A waiting acquire is refused by an answer which says that the server has nothing,
// and that no other site has unused tokens.
type Pool struct {
	sites
	members []member
	// free are the tokens that the server has not leased.
	free int
	// asks counts questions, changed the questions that moved tokens, moved the
	// tokens.
	asks, changed, moved int
}

// member is a site in its own view and in the server's. The tokens left in the
// escrow are the unused part of the lease.
type member struct {
	queue queue
	// number is the number of the latest question, since its time. open is set until
	// its answer.
	number int
	since  time.Duration
	open   bool
	// counted is the last acquire that waited at the question.
	counted int
	// peak is the most tokens that clients held and waited for since the last
	// question.
	peak int
	// head is the number of tokens that the site wants beyond its need.
	head int
	// share is the site's share by the server's last answer. short says that sites
	// want more than the limit. until is the end of the lease.
	share int
	short bool
	until time.Duration

	// known is the server's knowledge.
	known struct{ number, leased, unused, wants int }
}

// answer is the server's answer to a site.
type answer struct {
	number, more, share int
	// short says that sites want more than the limit, hope that other sites may give
	// back tokens.
	short, hope bool
}

// NewPool makes the system.
func NewPool() *Pool { return &Pool{} }

// Start leaves all tokens with the server; sites ask for their shares at once.
func (p *Pool) Start(w *virtual.World, limit int, answer func(*virtual.Request, virtual.Outcome)) error {
	if err := p.start(w, limit, answer); err != nil {
		return err
	}
	p.free, p.members = limit, make([]member, w.Places())
	for i, at := range p.at {
		at.left = 0
		p.members[i].share, p.members[i].head = limit, headLeast
		p.tick(at)
	}
	return nil
}

// tick renews the lease of a site, and schedules the next renewal.
func (p *Pool) tick(at *site) {
	if p.w.Up(at.place) {
		p.ask(at)
	}
	p.w.At(p.w.Now()+refresh, func() { p.tick(at) })
}

// Handle serves a request. A stale read returns the site's own tokens, an exact
// read asks all sites.
func (p *Pool) Handle(r *virtual.Request) {
	p.w.Serve(r.Place, func() {
		if p.late(r) {
			return
		}
		at, m := p.at[r.Place], &p.members[r.Place]
		switch r.Kind {
		case virtual.ReadStale:
			p.settle(r, virtual.Granted)
		case virtual.ReadExact:
			p.gather(r, func(virtual.Place) {}, nil)
		case virtual.Release:
			at.commit(func() {
				at.left++
				at.net--
				p.settle(r, virtual.Granted)
				p.serveLeased(at)
			})
		case virtual.Acquire:
			at.commit(func() { p.acquire(at, m, r) })
		}
	})
}

func (p *Pool) acquire(at *site, m *member, r *virtual.Request) {
	if len(m.queue.all) == 0 && at.left > 0 && p.w.Now() <= m.until {
		at.left--
		at.net++
		m.peak = max(m.peak, at.net)
		p.settle(r, virtual.Granted)
		return
	}
	p.wait(&m.queue, r)
	m.peak = max(m.peak, at.net+len(m.queue.all))
	p.ask(at)
}

// serveLeased serves waiting acquires while the lease lasts.
func (p *Pool) serveLeased(at *site) {
	if m := &p.members[at.place]; p.w.Now() <= m.until {
		p.serve(at, &m.queue)
	}
}

// ask tells the server the site's wants, and gives back the tokens beyond its wants
// or its share.
func (p *Pool) ask(at *site) {
	m := &p.members[at.place]
	if m.open && p.w.Now() < m.since+unanswered {
		return
	}
	m.open, m.since = true, p.w.Now()
	at.commit(func() {
		need := max(m.peak, at.net+len(m.queue.all))
		m.plan(need)
		wants := need + m.head
		m.peak = 0
		m.number++
		m.counted = m.queue.last
		held := at.left + at.net
		back := max(0, min(at.left, held-min(wants, m.share)))
		at.left -= back
		p.asks++
		p.moved += back
		number, leased, unused := m.number, held-back, at.left
		p.w.Send(at.place, centre, tellBytes, func() {
			p.w.Serve(centre, func() {
				p.at[centre].commit(func() { p.decide(at, number, leased, unused, wants) })
			})
		})
	})
}

// plan sets the tokens that a site wants beyond its need: much fewer while the
// limit does not suffice, then a few more with each question.
func (m *member) plan(need int) {
	if most := headLeast + need/headPart; m.short {
		m.head /= shrinkTo
	} else {
		m.head = min(most, m.head+1+most/growPart)
	}
}

// decide answers a question at the server, unless the server knows a later
// question.
func (p *Pool) decide(at *site, number, leased, unused, wants int) {
	k := &p.members[at.place].known
	if number <= k.number {
		return
	}
	moved := k.leased != leased
	p.free += k.leased - leased
	k.number, k.leased, k.unused, k.wants = number, leased, unused, wants
	a := answer{number: number, share: p.shareOf(wants), short: p.wanted() > p.limit}
	a.more = max(0, min(p.free, a.share-leased))
	p.free -= a.more
	k.leased += a.more
	k.unused += a.more
	if moved || a.more > 0 {
		p.changed++
	}
	a.hope = p.free > 0 || p.spare(at.place) > 0
	p.w.Send(centre, at.place, tellBytes, func() { at.commit(func() { p.answered(at, a) }) })
}

// shareOf returns the share of a site with these wants.
func (p *Pool) shareOf(wants int) int {
	equal := p.limit / len(p.members)
	rest, beyond := p.limit, 0
	for i := range p.members {
		w := p.members[i].known.wants
		rest -= min(w, equal)
		beyond += max(0, w-equal)
	}
	if p.wanted() <= p.limit || wants <= equal {
		return wants
	}
	return equal + (wants-equal)*rest/beyond
}

// wanted returns the wants of all sites.
func (p *Pool) wanted() int {
	sum := 0
	for i := range p.members {
		sum += p.members[i].known.wants
	}
	return sum
}

// spare returns the unused tokens of other sites, by their last questions.
func (p *Pool) spare(but virtual.Place) int {
	spare := 0
	for i := range p.members {
		if virtual.Place(i) != but {
			spare += p.members[i].known.unused
		}
	}
	return spare
}

// answered renews the lease of a site.
func (p *Pool) answered(at *site, a answer) {
	m := &p.members[at.place]
	if !m.open || a.number != m.number {
		return // the next question shows the server that the site lacks these tokens
	}
	m.open, m.share, m.short, m.until = false, a.share, a.short, p.w.Now()+lease
	at.left += a.more
	p.moved += a.more
	p.serve(at, &m.queue)
	if !a.hope {
		p.refuse(&m.queue, m.counted)
	}
	if more := m.queue.last > m.counted && len(m.queue.all) > 0; more || at.left > 0 && at.left+at.net > m.share {
		p.ask(at)
	}
}

// Crashed forgets the state of a place that is not durable, waiting acquires
// included. A site asks the server before it grants again.
func (p *Pool) Crashed(place virtual.Place) {
	p.at[place].crash()
	m := &p.members[place]
	m.queue.all, m.open, m.until, m.peak = nil, false, 0, 0
}

// Restarted does nothing: the durable state is there.
func (p *Pool) Restarted(virtual.Place) {}

// Out returns the tokens granted and not released.
func (p *Pool) Out() int { return p.out() }

// Free returns the tokens free for the clients of a place: at the sites that it
// reaches, and at the server if it reaches the server.
func (p *Pool) Free(place virtual.Place) int {
	free := 0
	if p.w.Reaches(place, centre) {
		free = p.limit - p.leased()
	}
	for _, at := range p.at {
		if p.w.Reaches(place, at.place) {
			free += at.left
		}
	}
	return free
}

// leased returns the tokens of all sites, used and unused. Tokens on their way
// count as the server's.
func (p *Pool) leased() int { return p.left() + p.out() }

// Check checks that the server's books cover the tokens of sites, and that no
// request waits.
func (p *Pool) Check() error {
	sum := p.free
	for i, at := range p.at {
		m := &p.members[i]
		sum += m.known.leased
		if at.left < 0 || at.left+at.net > m.known.leased {
			return fmt.Errorf("site %d has %d tokens left and %d out, and a lease of %d", i, at.left, at.net, m.known.leased)
		}
		if n := len(m.queue.all); n > 0 {
			return fmt.Errorf("%d requests still wait at site %d", n, i)
		}
	}
	if sum != p.limit || p.free < 0 {
		return fmt.Errorf("%d tokens leased and free, %d of them free, the limit is %d", sum, p.free, p.limit)
	}
	return nil
}

// Counters returns its counters. A redistribution begun is a question that changed
// a lease.
func (p *Pool) Counters() map[string]float64 {
	c := p.counters()
	c[virtual.Begun+" lease"], c["asks"], c[virtual.Moved] = float64(p.changed), float64(p.asks), float64(p.moved)
	return c
}
