package appmgr

import (
	"cmp"
	"slices"
	"time"
)

// reach is whether a site answers this app manager.
type reach uint8

const (
	// unproven: it was not heard of yet.
	unproven reach = iota
	up
	down
)

const (
	// rttWeight is the weight of a new measurement in the moving average of a
	// site's round trip.
	rttWeight = 0.3
	// softMisses is how many probes in a row may go unanswered in time before a
	// site counts as down. A broken connection counts at once.
	softMisses = 2
	// A site that answered OVERLOADED is gone past for as long as it asks for,
	// within these bounds.
	minOverload, maxOverload = 100 * time.Millisecond, 5 * time.Second
	// sameDistance is the difference of round trips below which sites count as
	// equally near, so that noise does not make the choice.
	sameDistance = 5 * time.Millisecond
)

// health is what is known of one site's health. It is plain data: the caller
// serializes and brings the time.
type health struct {
	reach           reach
	rtt             time.Duration // moving average; zero: not measured
	misses          int
	overloadedUntil time.Time
}

// answered takes in a probe's round trip.
func (h *health) answered(rtt time.Duration) {
	h.reach, h.misses = up, 0
	rtt = max(rtt, 1)
	if h.rtt == 0 {
		h.rtt = rtt
		return
	}
	h.rtt += time.Duration(rttWeight * float64(rtt-h.rtt))
}

// late takes in a probe that was not answered in time.
func (h *health) late() {
	if h.misses++; h.misses >= softMisses {
		h.broken()
	}
}

// broken takes in a connection that broke or cannot be made. Round trips are
// measured anew after it.
func (h *health) broken() { *h = health{reach: down} }

// refused takes in an answer OVERLOADED.
func (h *health) refused(now time.Time, retryAfter time.Duration) {
	if retryAfter <= 0 {
		retryAfter = time.Second
	}
	h.overloadedUntil = now.Add(min(max(retryAfter, minOverload), maxOverload))
}

func (h *health) overloaded(now time.Time) bool { return now.Before(h.overloadedUntil) }

// candidate is a site as the choice sees it.
type candidate struct {
	name   string
	home   bool // it stands in the app manager's own region
	full   bool // it has as many calls under way as it may
	health health
}

// order returns the names of the sites to try, best first: nearest first among
// those that are up; then those not heard of yet; then those that are up and
// overloaded, so that one of them gives the refusal where all are. Sites that
// are down or full are left out.
func order(cs []candidate, now time.Time) []string {
	rank := func(c candidate) int {
		switch {
		case c.health.overloaded(now):
			return 2
		case c.health.reach == unproven:
			return 1
		}
		return 0
	}
	homeFirst := func(c candidate) int {
		if c.home {
			return 0
		}
		return 1
	}
	cs = slices.DeleteFunc(slices.Clone(cs), func(c candidate) bool { return c.full || c.health.reach == down })
	slices.SortFunc(cs, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(a.health.rtt/sameDistance, b.health.rtt/sameDistance),
			cmp.Compare(homeFirst(a), homeFirst(b)),
			cmp.Compare(a.health.rtt, b.health.rtt),
			cmp.Compare(a.name, b.name),
		)
	})
	names := make([]string, len(cs))
	for i, c := range cs {
		names[i] = c.name
	}
	return names
}
