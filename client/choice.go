package client

import (
	"cmp"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/health"
)

// rank is how a target stands in the order of choice; the lower the better.
type rank uint8

const (
	good rank = iota
	unknown
	overloaded
	silent
)

// rankOf ranks a target by its health.
func rankOf(h health.Health, now time.Time) rank {
	switch {
	case h.Reach == health.Down:
		return silent
	case h.Overloaded(now):
		return overloaded
	case h.Reach == health.Unproven:
		return unknown
	}
	return good
}

// candidate is a target as the choice sees it.
type candidate struct {
	target *target
	home   bool // it stands in the client's own region
	rank   rank
	rtt    time.Duration
}

// order sorts candidates, best first: those that answer, of them the own region's
// first and then the nearest; then those not heard of yet; then the overloaded; then
// those that are down, which may be back. What is equal stays as configured.
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
