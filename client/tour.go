package client

import (
	"context"
	"slices"
	"time"
)

const (
	// A pause is made when all targets were asked in vain; each is twice as long as the
	// pause before, up to longestPause.
	firstPause, longestPause = 25 * time.Millisecond, 2 * time.Second
)

// ranking is the order of the targets at a time. It is never changed once made.
type ranking struct {
	order []candidate
	// takers are the candidates in order that take new acquires.
	takers []candidate
	// until is when the first overload, or the first site's word that it drains, passes;
	// zero: the ranking holds until a target's health changes.
	until time.Time
	// risen is closed once a target is not down any more.
	risen chan struct{}
}

// rerank stores a new ranking, without the sites that have left.
func (c *Client) rerank() {
	c.choosing.Lock()
	defer c.choosing.Unlock()
	now := time.Now()
	r := &ranking{}
	for _, t := range c.targets {
		site, drainsUntil := t.seat()
		if c.seats.Out(site) {
			continue
		}
		h := t.state()
		cand := candidate{target: t, home: t.home, rtt: h.RTT, drains: c.seats.Drains(site) || now.Before(drainsUntil)}
		cand.rank = rankOf(h, cand.drains, now)
		for _, at := range []time.Time{h.OverloadedUntil, drainsUntil} {
			if now.Before(at) && cand.rank != silent && (r.until.IsZero() || at.Before(r.until)) {
				r.until = at
			}
		}
		r.order = append(r.order, cand)
	}
	order(r.order)
	for _, cand := range r.order {
		if !cand.drains {
			r.takers = append(r.takers, cand)
		}
	}
	old := c.ranking.Load()
	switch {
	case old == nil:
		r.risen = make(chan struct{})
	case r.rises(old):
		r.risen = make(chan struct{})
		close(old.risen)
		for _, cand := range r.order {
			cand.target.rested()
		}
	default:
		r.risen = old.risen
	}
	c.ranking.Store(r)
}

// rises reports whether a target was down, and is not any more.
func (r *ranking) rises(old *ranking) bool {
	return slices.ContainsFunc(old.order, func(was candidate) bool {
		return was.rank == silent &&
			slices.ContainsFunc(r.order, func(now candidate) bool { return now.target == was.target && now.rank != silent })
	})
}

// tour goes through the targets, best first, again and again.
type tour struct {
	c *Client
	// takes: the call takes new tokens, which no site that drains grants.
	takes bool
	order []candidate
	next  int
	round int
	heirs int // how often the call was sent on to an heir
	// retryAfter is the longest advice in this round of when to try again.
	retryAfter time.Duration
}

// start begins a round. The target of the given site, if any, comes first.
func (t *tour) start(now time.Time, site string) {
	r := t.c.ranking.Load()
	if !r.until.IsZero() && !now.Before(r.until) {
		t.c.rerank()
		r = t.c.ranking.Load()
	}
	t.order, t.next, t.retryAfter = r.order, 0, 0
	if t.takes {
		t.order = r.takers
	}
	if site == "" {
		return
	}
	for i, cand := range t.order {
		if cand.rank != silent && cand.target.name() == site {
			rest := t.order
			t.order = append([]candidate{cand}, rest[:i]...)
			t.order = append(t.order, rest[i+1:]...)
			return
		}
	}
}

// moved begins anew at the heir of a lease. It reports false if heirs have sent the call
// on too often.
func (t *tour) moved(now time.Time, heir string) bool {
	if t.heirs++; heir == "" || t.heirs > maxHeirs {
		return false
	}
	retryAfter := t.retryAfter
	t.start(now, heir)
	t.retryAfter = retryAfter
	return true
}

// maxHeirs bounds how often a call is sent on to an heir.
const maxHeirs = 8

// target returns the next target of the round, and whether a target that is not down
// follows; nil at the end of the round. Targets that are down are asked only if there is
// no other.
func (t *tour) target() (_ *target, more bool) {
	if t.next == len(t.order) || t.next > 0 && t.order[t.next].rank == silent && t.order[0].rank != silent {
		return nil, false
	}
	cand := t.order[t.next]
	t.next++
	return cand.target, t.next < len(t.order) && t.order[t.next].rank != silent
}

// pause waits between two rounds, and has targets that are down dialled meanwhile. It ends
// early once one of them is up. It reports false if the call had better end now,
// because the next round would begin after the deadline.
func (t *tour) pause(ctx context.Context, deadline, now time.Time) bool {
	d := min(firstPause<<min(t.round, 10), longestPause)
	d = max(time.Duration((0.5+t.c.cfg.Random()/2)*float64(d)), t.retryAfter)
	t.round++
	if !now.Add(d).Before(deadline) {
		return false
	}
	risen := t.c.ranking.Load().risen
	for end := now.Add(d); ; {
		timer := time.NewTimer(min(end.Sub(now), t.redial(now)))
		select {
		case <-risen:
			timer.Stop()
			return true
		case now = <-timer.C:
			if !now.Before(end) {
				return true
			}
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-t.c.ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// redial has the targets of the round that are down dialled, and returns when to do so
// again.
func (t *tour) redial(now time.Time) (next time.Duration) {
	next = redialEvery
	for _, cand := range t.order {
		if cand.rank == silent {
			next = min(next, cand.target.redial(now))
		}
	}
	return next
}
