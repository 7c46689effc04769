package rivals

import (
	"fmt"
	"slices"

	"github.com/samya-db/samya/lab/virtual"
)

// loans are sites that lend tokens to each other. The tokens of a message that
// the network drops are lost.
type loans struct {
	sites
	queues []queue
	// sent and got count tokens by place: sent[i][j] left i for j, got[j][i]
	// arrived.
	sent, got [][]int
	// away are the tokens that left a site and are not durable at another.
	away int
	// episodes counts the times that a site began to ask, asks its questions, lent
	// the answers with tokens, moved the tokens.
	episodes, asks, lent, moved int
}

// start divides the limit.
func (l *loans) start(w *virtual.World, limit int, answer func(*virtual.Request, virtual.Outcome)) error {
	if err := l.sites.start(w, limit, answer); err != nil {
		return err
	}
	l.queues = make([]queue, w.Places())
	for range w.Places() {
		l.sent, l.got = append(l.sent, make([]int, w.Places())), append(l.got, make([]int, w.Places()))
	}
	return nil
}

// handle serves a request; acquire serves an acquire, durably. A stale read returns
// the site's own tokens. An exact read asks all sites, again and again while tokens
// are on their way.
func (l *loans) handle(r *virtual.Request, acquire func(*site, *virtual.Request)) {
	l.w.Serve(r.Place, func() {
		if l.late(r) {
			return
		}
		at := l.at[r.Place]
		switch r.Kind {
		case virtual.ReadStale:
			l.settle(r, virtual.Granted)
		case virtual.ReadExact:
			l.read(r)
		case virtual.Release:
			at.commit(func() {
				at.left++
				at.net--
				l.settle(r, virtual.Granted)
				l.serve(at, &l.queues[at.place])
			})
		case virtual.Acquire:
			at.commit(func() { acquire(at, r) })
		}
	})
}

// grant grants an acquire if no other waits and a token is left.
func (l *loans) grant(at *site, r *virtual.Request) bool {
	if len(l.queues[at.place].all) > 0 || at.left == 0 {
		return false
	}
	at.left--
	at.net++
	l.settle(r, virtual.Granted)
	return true
}

// send moves n tokens of donor to a site, and calls then once they are durable.
func (l *loans) send(donor, to *site, n int, then func()) {
	donor.left -= n
	l.away += n
	l.sent[donor.place][to.place] += n
	l.w.Send(donor.place, to.place, tellBytes, func() {
		to.commit(func() {
			to.left += n
			l.away -= n
			l.got[to.place][donor.place] += n
			if n > 0 {
				l.lent++
				l.moved += n
			}
			l.serve(to, &l.queues[to.place])
			then()
		})
	})
}

// read asks all sites for their tokens. The answers belong together once all tokens
// sent have arrived, by the counts of the sites.
func (l *loans) read(r *virtual.Request) {
	n := len(l.at)
	sent, got := make([][]int, n), make([][]int, n)
	l.gather(r, func(p virtual.Place) {
		sent[p], got[p] = slices.Clone(l.sent[p]), slices.Clone(l.got[p])
	}, func() bool {
		for i := range n {
			for j := range n {
				if sent[i][j] != got[j][i] {
					return false
				}
			}
		}
		return true
	})
}

// Restarted does nothing: the durable state is there.
func (l *loans) Restarted(virtual.Place) {}

// Out returns the tokens granted and not released.
func (l *loans) Out() int { return l.out() }

// Free returns the tokens free for the clients of a place: at sites that it
// reaches, and between sites.
func (l *loans) Free(p virtual.Place) int {
	free := l.away
	for _, at := range l.at {
		if l.w.Reaches(p, at.place) {
			free += at.left
		}
	}
	return free
}

// Check checks that the sites have all tokens not granted, except for tokens lost
// in a crash or a cut, and that no request waits.
func (l *loans) Check() error {
	for i, at := range l.at {
		if at.left < 0 {
			return fmt.Errorf("site %d has %d tokens left", i, at.left)
		}
		if n := len(l.queues[i].all); n > 0 {
			return fmt.Errorf("%d requests still wait at site %d", n, i)
		}
	}
	if got := l.left() + l.out() + l.away; got != l.limit {
		return fmt.Errorf("%d tokens at sites, %d between them and %d out, the limit is %d", l.left(), l.away, l.out(), l.limit)
	}
	return nil
}

// Counters returns its counters. A redistribution begun is an occasion on which a
// site began to ask, however many sites it asked.
func (l *loans) Counters() map[string]float64 {
	c := l.counters()
	c[virtual.Begun+" borrow"], c["asks"], c["loans"] = float64(l.episodes), float64(l.asks), float64(l.lent)
	c[virtual.Moved], c["lost"] = float64(l.moved), float64(l.away)
	return c
}
