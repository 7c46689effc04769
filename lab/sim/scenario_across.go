package sim

import (
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/stored"
)

// acrossScenarios are stories of requests that go from site to site, of leases, and of a
// limit below the tokens out.
func acrossScenarios() []Scenario {
	var list []Scenario
	for _, l := range []struct {
		name, about, expected string
		play                  func(st *stage)
	}{
		{
			"retry-while-down", "a site grants and crashes, its answer is lost; the next attempt is granted elsewhere, and the site comes back",
			"back, it undoes the acquire", func(st *stage) { st.playRetry(true) },
		},
		{
			"retry-answer-lost", "the answer to an acquire is lost, and the next attempt is granted elsewhere",
			"the first is undone", func(st *stage) { st.playRetry(false) },
		},
		{
			"cancel-overtakes", "an attempt comes after the site was asked about it", "it is refused", playOvertaken,
		},
		{
			"retry-grant-lost", "a site crashes with a grant that is not durable, and is given the attempt again once another site has granted the next",
			"it is refused", playGrantLost,
		},
		{
			"manager-dies", "an app manager tries two sites and dies with the answers; the caller tries a third and names none",
			"both are undone", playManagerDies,
		},
		{
			"release-parked", "a release is done, its answer is lost, and the site cut off; the next attempt is parked elsewhere",
			"it counts once: it stays parked until the site is back, and is dropped then", playParked,
		},
		{
			"lease-expires-down", "a lease's time is over while its site is down", "back, the site takes it back within 2 s, once", playExpiresDown,
		},
		{
			"lease-returned-elsewhere", "part of a lease is given back at another site while its home is down",
			"back, the home takes that part back, once", playReturned,
		},
		{
			"limit-below-usage", "a limit is lowered far below what is out, and tokens are given back at one site alone",
			"that pays the debts of all sites", playLowered,
		},
	} {
		list = append(list, Scenario{
			Name: l.name, About: l.about, Seeds: 20, play: l.play,
			expected: map[string]string{"majority": l.expected, "star": l.expected, "auto": l.expected},
		})
	}
	return list
}

// settles bounds how long sites take to settle a request, once all are back: the longest
// pause between two asks, and two more.
const settles = 20 * second

// request registers an acquire or release with its attempts sent by hand.
func (st *stage) request(p *op) *asked {
	a := &asked{op: p, began: st.now}
	p.once, p.tries.roams = true, true
	if p.kind != acquireAll {
		p.entity = stageEntity
	}
	p.then = func(got *answer.Answer) {
		if a.ended = st.now; got != nil {
			a.answer = new(*got)
			if p.kind.acquires() && got.Code == answer.OK {
				st.observe.taken(p, got)
			}
		}
	}
	st.register(p)
	p.tries.kept = 30 * second
	p.tries.notAfter = epoch + (st.now+25*second)/millisecond
	return a
}

// send hands an attempt to a site; lost says that its client never gets an answer.
func (st *stage) send(a *asked, site int, attempt attempt.Number, lost bool, tried ...int) *call {
	c := &call{op: a.op, attempt: attempt, done: lost}
	if tried != nil {
		c.tried = st.others(tried, site, nil)
	}
	if !lost {
		a.op.tries.latest = attempt
		a.op.open++
	}
	st.nodes[site].hand(c)
	return c
}

func (st *stage) stateAt(a *asked, site int) stored.RequestState { return a.op.at[site].state }

// becomes waits until a site's record of a request is in a state.
func (st *stage) becomes(a *asked, site int, state stored.RequestState) {
	began := st.now
	if !st.until(settles, func() bool { return st.stateAt(a, site) == state }) {
		st.wrong("%v is in state %d at %s, not %d", a.op, st.stateAt(a, site), st.names[site], state)
		return
	}
	st.millis("settled after", st.now-began)
}

func (st *stage) answered(a *asked) {
	if !st.until(5*second, a.ok) {
		st.wrong("%v", a)
	}
}

// finish ends a story: nothing is owed, each request has run once, and every token that
// is not out can be acquired.
func (st *stage) finish(out core.Tokens) {
	if !st.until(settles, func() bool { return st.owed() == 0 && st.out() == out }) {
		st.wrong("%d claims are not settled, %d tokens are out, of %d", st.owed(), st.out(), out)
	}
	st.observe.onceEach()
	st.allAcquired()
}

const (
	first = attempt.Number(1 << 8)
	next  = attempt.Number(2 << 8)
)

func (st *stage) playRetry(down bool) {
	a := st.request(&op{kind: acquire, tokens: 10})
	st.send(a, 0, first, true)
	if !st.until(second, func() bool { return st.stateAt(a, 0) == stored.Ran }) {
		st.wrong("%v has not run", a.op)
	}
	if down {
		st.nodes[0].crash()
		st.detect()
	}
	st.send(a, 1, next, false, 0)
	st.answered(a)
	st.run(micros(st.r.IntN(5000)) * millisecond)
	st.mend()
	st.becomes(a, 0, stored.Undone)
	st.finish(10)
}

func playOvertaken(st *stage) {
	a := st.request(&op{kind: acquire, tokens: 10})
	st.send(a, 1, next, false, 0)
	st.answered(a)
	st.becomes(a, 0, stored.Undone)
	st.send(a, 0, first, true)
	st.run(second)
	if st.stateAt(a, 0) != stored.Undone || st.report.Superseded == 0 {
		st.wrong("the late attempt was not refused: state %d", st.stateAt(a, 0))
	}
	st.mend()
	st.finish(10)
}

func playGrantLost(st *stage) {
	a := st.request(&op{kind: acquire, tokens: 10})
	st.send(a, 0, first, true)
	st.nodes[0].crash()
	st.send(a, 1, next, false, 0)
	st.answered(a)
	st.mend()
	st.becomes(a, 0, stored.Undone)
	st.send(a, 0, first, true)
	st.run(second)
	if a.op.at[0].ran {
		st.wrong("the attempt ran")
	}
	st.finish(10)
}

func playManagerDies(st *stage) {
	a := st.request(&op{kind: acquire, tokens: 10})
	st.send(a, 0, attempt.Of(1, 0), true)
	st.run(micros(st.r.IntN(200)) * millisecond)
	st.send(a, 1, attempt.Of(1, 1), true, 0)
	st.run(micros(st.r.IntN(200)) * millisecond)
	st.send(a, 2, next, false)
	st.answered(a)
	st.mend()
	st.becomes(a, 0, stored.Undone)
	st.becomes(a, 1, stored.Undone)
	st.finish(10)
}

func playParked(st *stage) {
	if got := st.acquire(0, 10, 0); !st.until(second, got.ok) {
		st.wrong("%v", got)
	}
	st.observe.outstanding[stageEntity] -= 10
	a := st.request(&op{kind: release, tokens: 10})
	st.send(a, 0, first, true)
	st.run(second)
	st.split(0)
	st.detect()
	st.send(a, 1, next, false, 0)
	st.answered(a)
	st.run(5 * second)
	if st.stateAt(a, 1) != stored.Parked || !a.answer.Parked {
		st.wrong("it is in state %d where it was to be parked", st.stateAt(a, 1))
	}
	st.mend()
	st.becomes(a, 1, stored.Dropped)
	st.finish(0)
}

// lend has a site grant a lease.
func (st *stage) lend(site int, tokens core.Tokens, ttl micros) *lease {
	a := st.request(&op{kind: acquire, tokens: tokens, ttl: ttl})
	st.send(a, site, first, false)
	st.answered(a)
	return a.op.at[site].lease
}

func playExpiresDown(st *stage) {
	l := st.lend(0, 10, 3*second)
	st.nodes[0].crash()
	st.detect()
	st.run(5 * second)
	st.mend()
	began := st.now
	if !st.until(2*second, func() bool { return l.ended }) {
		st.wrong("the lease has not ended")
	}
	st.millis("ended after", st.now-began)
	st.nodes[0].crash()
	st.nodes[0].boot()
	st.finish(0)
}

func playReturned(st *stage) {
	l := st.lend(0, 10, 100*second)
	st.nodes[0].crash()
	st.detect()
	st.observe.less(l, 6)
	a := st.request(&op{kind: release, tokens: 4, lease: l})
	st.send(a, 1, first, false)
	st.answered(a)
	st.run(3 * second)
	st.mend()
	st.becomes(a, 1, stored.Dropped)
	if l.tokens != 6 {
		st.wrong("the lease holds %d tokens", l.tokens)
	}
	st.finish(6)
}

func playLowered(st *stage) {
	for i := range st.nodes {
		st.acquire(i, 90, 0)
	}
	st.run(second)
	if a := st.ask(&op{kind: setLimit, entity: stageEntity, limit: 300, wait: 5 * second, site: 1}); !st.until(8*second, a.ok) {
		st.wrong("%v", a)
	}
	st.run(2 * second)
	inDebt := func() (sites int64) {
		for _, n := range st.nodes {
			if n.drained.Entities[stageEntity].Debt > 0 {
				sites++
			}
		}
		return sites
	}
	st.told("sites that know of the debt", inDebt())
	st.release(2, 200)
	st.mend()
	began := st.now
	if !st.until(paid, func() bool { return inDebt() == 0 }) {
		st.wrong("%d sites stay in debt", inDebt())
	}
	st.millis("debts paid after", st.now-began)
	st.finish(250)
}

// paid is how long sites in debt take to find tokens that came back elsewhere.
const paid = 40 * second
