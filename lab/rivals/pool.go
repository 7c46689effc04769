package rivals

import (
	"fmt"
	"time"

	"github.com/samya-db/samya/lab/virtual"
)

var _ virtual.Knower = (*Pool)(nil)

const (
	// centre is the place with the server of a Pool, or the owner of an Approximate
	// counter, beside the site there.
	centre virtual.Place = 0
	// refresh is how often a site renews its lease, lease how long one lasts.
	refresh, lease = time.Second, time.Minute
	// unanswered is after how long a site asks anew.
	unanswered = 2 * time.Second
	// headPart and headLeast are what a site wants beyond its need at most: a part of
	// it, and so many tokens more.
	headPart, headLeast = 5, 20
	// growPart is the part of that by which it wants more after each answer, shrinkTo
	// the part that it goes on wanting once the limit does not suffice.
	growPart, shrinkTo = 8, 4
)

// Pool is a central pool, after the design of Doorman: a server leases each site a
// share of the limit, and each site serves from its lease. Sites tell the server every
// second what they want, which is the most that their clients held and waited for
// since the last question, and a fifth more. The server leases all of that as long
// as the limit suffices, and else proportional shares: an equal one to whoever wants
// that much, and of the rest as much more as is wanted beyond.
//
// Kinder than the original: a site asks at once when an acquire waits, and gives back
// at once what is beyond its share; it wants less beyond its need while the limit does
// not suffice.
//
// Tokens are held here, for longer than a lease may last, while Doorman shares out
// rates. So a share shrinks by what a site gives back of its own accord, never below
// what its clients hold. A site that cannot renew its lease in a minute grants no
// more until it can. The server takes nothing back of it meanwhile: it cannot know
// what the clients there hold, and would lease out more than the limit. The sum of
// all leases is thus never above the limit.
//
// An acquire that waits is refused by an answer which says that the server has
// nothing, and that no other site has unused tokens.
type Pool struct {
	sites
	members []member
	// free are the tokens that the server leases to nobody.
	free int
	// asks count questions, changed those that moved tokens, moved the tokens.
	asks, changed, moved int
}

// member is a site as it and as the server knows it. The unused part of its lease is
// what its escrow has left.
type member struct {
	queue queue
	// number is that of the latest question, since when it was asked; open is set
	// while it has no answer.
	number int
	since  time.Duration
	open   bool
	// counted is the last of the acquires that waited as it was asked.
	counted int
	// peak is the most that clients held and waited for since the last question.
	peak int
	// head is what the site wants beyond its need.
	head int
	// share is what the server last said is the site's, short that sites want more
	// than the limit; until is when the lease ends.
	share int
	short bool
	until time.Duration

	// known is what the server knows.
	known struct{ number, leased, unused, wants int }
}

// answer is what the server tells a site.
type answer struct {
	number, more, share int
	// short says that sites want more than the limit, hope that tokens may come free
	// by what other sites give back.
	short, hope bool
}

// NewPool makes one.
func NewPool() *Pool { return &Pool{} }

// Start leaves all tokens with the server; sites ask for theirs at once.
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

// tick renews the lease of a site, and has it renewed again.
func (p *Pool) tick(at *site) {
	if p.w.Up(at.place) {
		p.ask(at)
	}
	p.w.At(p.w.Now()+refresh, func() { p.tick(at) })
}

// Handle serves a request. A stale read tells what the site has, an exact one asks
// all sites.
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

// serveLeased serves who waits, while the lease lasts.
func (p *Pool) serveLeased(at *site) {
	if m := &p.members[at.place]; p.w.Now() <= m.until {
		p.serve(at, &m.queue)
	}
}

// ask tells the server what the site wants, and gives back what it has beyond that
// or beyond its share.
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

// plan settles what a site wants beyond its need: much less once the limit does not
// suffice, and then a little more with each answer.
func (m *member) plan(need int) {
	if most := headLeast + need/headPart; m.short {
		m.head /= shrinkTo
	} else {
		m.head = min(most, m.head+1+most/growPart)
	}
}

// decide is the server's answer to a question, unless it knows a later one.
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

// shareOf is the share of a site that wants so much.
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

// wanted is what all sites want.
func (p *Pool) wanted() int {
	sum := 0
	for i := range p.members {
		sum += p.members[i].known.wants
	}
	return sum
}

// spare is what other sites have unused, by what they told.
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
		return // the server learns by the next question that the site does not have it
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

// Crashed forgets what is not durable at a place, who waits there among it. A site
// asks the server before it grants again.
func (p *Pool) Crashed(place virtual.Place) {
	p.at[place].crash()
	m := &p.members[place]
	m.queue.all, m.open, m.until, m.peak = nil, false, 0, 0
}

// Restarted has nothing to do: what is durable is there.
func (p *Pool) Restarted(virtual.Place) {}

// Out is how many tokens are granted and not released.
func (p *Pool) Out() int { return p.out() }

// Free is how many tokens are free for the clients of a place: at it, at those it
// reaches, and with the server if it reaches that.
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

// leased is what all sites have, used and unused. What is on its way is with the
// server.
func (p *Pool) leased() int { return p.left() + p.out() }

// Check looks whether the server's books cover what sites have, and nobody waits.
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

// Counters tell what it did. Redistributions begun are the questions that changed a
// lease.
func (p *Pool) Counters() map[string]float64 {
	c := p.counters()
	c[virtual.Begun+" lease"], c["asks"], c[virtual.Moved] = float64(p.changed), float64(p.asks), float64(p.moved)
	return c
}
