package client

import (
	"cmp"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/health"
)

// rank is a target's place in the order of choice; lower is better.
type rank uint8

const (
	good rank = iota
	unknown
	overloaded
	leaving
	silent
)

// rankOf ranks a target by its health, and by whether its site drains.
func rankOf(h health.Health, drains bool, now time.Time) rank {
	switch {
	case h.Reach == health.Down:
		return silent
	case drains:
		return leaving
	case h.Overloaded(now):
		return overloaded
	case h.Reach == health.Unproven:
		return unknown
	}
	return good
}

// candidate is a target and the facts that order it.
type candidate struct {
	target *target
	home   bool // the target stands in the client's own region
	rank   rank
	rtt    time.Duration
	drains bool // its site drains: it takes no new acquires
}

// order sorts candidates, best first. Targets that answer come first: the own region's
// before others, then by round trip. Next come targets not heard of yet, then the
// overloaded, then sites that drain, then targets that are down, which may be back. Equal
// candidates stay as configured.
func order(cs []candidate) {
	notHome := func(c candidate) int {
		if c.home {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(cs, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(a.rank, b.rank),
			cmp.Compare(notHome(a), notHome(b)),
			cmp.Compare(a.rtt/health.SameDistance, b.rtt/health.SameDistance),
		)
	})
}
