package rivals

import (
	"fmt"
	"slices"

	"github.com/samya-db/samya/lab/virtual"
)

// loans are sites that lend tokens to each other. A loss of the network loses the
// tokens of the message.
type loans struct {
	sites
	queues []queue
	// sent and got count tokens by place: sent[i][j] left i for j, got[j][i] arrived.
	sent, got [][]int
	// away are the tokens that left a site and are not durable at another.
	away int
	// episodes count the occasions on which a site began to ask, asks its questions,
	// lent the answers with tokens, moved those tokens.
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

// handle serves a request; acquire serves an acquire, durably. A stale read tells
// what the site has. An exact one asks all, again and again as long as tokens are on
// their way between them.
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

// grant grants an acquire if nobody waits and a token is left.
func (l *loans) grant(at *site, r *virtual.Request) bool {
	if len(l.queues[at.place].all) > 0 || at.left == 0 {
		return false
	}
	at.left--
	at.net++
	l.settle(r, virtual.Granted)
	return true
}

// send moves tokens that donor has, and calls then once they are durable.
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

// read asks all sites what they have. The answers belong together once all tokens
// sent, as far as the sites know, have arrived.
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

// Restarted has nothing to do: what is durable is there.
func (l *loans) Restarted(virtual.Place) {}

// Out is how many tokens are granted and not released.
func (l *loans) Out() int { return l.out() }

// Free is how many tokens are free for the clients of a place: at it and at those it
// reaches, and between them.
func (l *loans) Free(p virtual.Place) int {
	free := l.away
	for _, at := range l.at {
		if l.w.Reaches(p, at.place) {
			free += at.left
		}
	}
	return free
}

// Check looks whether the sites have what was not granted, but for what a crash or
// a cut lost on its way, and whether nobody waits.
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

// Counters tell what it did. Redistributions begun are the occasions on which a site
// began to ask, however many it asked.
func (l *loans) Counters() map[string]float64 {
	c := l.counters()
	c[virtual.Begun+" borrow"], c["asks"], c["loans"] = float64(l.episodes), float64(l.asks), float64(l.lent)
	c[virtual.Moved], c["lost"] = float64(l.moved), float64(l.away)
	return c
}
