package route

import (
	"slices"
	"time"
)

// candidates returns the links in the form that order takes.
func (r *Router) candidates() []candidate {
	r.mu.Lock()
	defer r.mu.Unlock()
	cs := make([]candidate, 0, len(r.links))
	for _, l := range r.links {
		c := l.candidate(r.cfg.Region, r.cfg.MaxPerSite)
		c.leaves = r.seats.Drains(c.name)
		cs = append(cs, c)
	}
	return cs
}

// ranking is the order in which sites are tried. It is kept until the links or their
// health change.
type ranking struct {
	links []*link
	// takers are the links to sites that take new acquires.
	takers []*link
	// idle are the links to sites that answer and do not serve.
	idle []*link
	// changed is the router's count when the ranking was made. until is when the first
	// overloaded site, or site that drains by its own word, is no longer passed over; zero
	// if there is none.
	changed uint64
	until   time.Time
}

// best returns the links that are not down in the order in which they are tried. The
// caller must not change the ranking.
func (r *Router) best(now time.Time) *ranking {
	changed := r.changed.Load()
	if k := r.ranked.Load(); k != nil && k.changed == changed && (k.until.IsZero() || now.Before(k.until)) {
		return k
	}
	k := &ranking{changed: changed}
	cs := r.candidates()
	leaves := map[string]bool{}
	for i, c := range cs {
		// do checks whether a site is full when its turn comes.
		cs[i].full = false
		leaves[c.name] = c.drains(now)
		for _, at := range []time.Time{c.health.OverloadedUntil, c.drainsUntil} {
			if now.Before(at) && (k.until.IsZero() || at.Before(k.until)) {
				k.until = at
			}
		}
	}
	for _, c := range cs {
		if l := r.link(c.name); l != nil && c.health.Idle {
			k.idle = append(k.idle, l)
		}
	}
	for _, site := range order(cs, now) {
		l := r.link(site)
		if l == nil {
			continue
		}
		k.links = append(k.links, l)
		if !leaves[site] {
			k.takers = append(k.takers, l)
		}
	}
	r.ranked.Store(k)
	return k
}

// of returns the links that may take a call.
func (k *ranking) of(c *Call) []*link {
	switch {
	case c.takes():
		return k.takers
	case c.Idle:
		return slices.Concat(k.links, k.idle)
	}
	return k.links
}
