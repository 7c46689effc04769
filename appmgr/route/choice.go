package route

import (
	"cmp"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/health"
)

// candidate is a site as the choice sees it.
type candidate struct {
	name   string
	here   bool // it is in the router's own process
	home   bool // it stands in the app manager's own region
	full   bool // it has as many calls under way as it may
	health health.Health
	// clockOff: its clock differs by more than clockTolerance.
	clockOff bool
	// leaves: its seat drains. drainsUntil is until when its own word that it drains holds.
	leaves      bool
	drainsUntil time.Time
}

// drains reports whether the site takes no new acquires.
func (c *candidate) drains(now time.Time) bool { return c.leaves || now.Before(c.drainsUntil) }

// order returns the names of the sites to try, best first. Sites that are up come first,
// the site of the router's own process first, then the nearest before others. Then come sites not heard of yet, then sites with a
// differing clock, which may refuse requests as expired, and then sites that drain: each
// request there makes the drain longer. Overloaded sites come last: if all sites are
// overloaded, a site gives the refusal. Sites that are down or full are left out.
func order(cs []candidate, now time.Time) []string {
	rank := func(c candidate) int {
		switch {
		case c.health.Overloaded(now):
			return 4
		case c.drains(now):
			return 3
		case c.clockOff:
			return 2
		case c.health.Reach == health.Unproven:
			return 1
		}
		return 0
	}
	first := func(is bool) int {
		if is {
			return 0
		}
		return 1
	}
	cs = slices.DeleteFunc(slices.Clone(cs), func(c candidate) bool { return c.full || c.health.Reach == health.Down })
	slices.SortFunc(cs, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(first(a.here), first(b.here)),
			cmp.Compare(a.health.RTT/health.SameDistance, b.health.RTT/health.SameDistance),
			cmp.Compare(first(a.home), first(b.home)),
			cmp.Compare(a.health.RTT, b.health.RTT),
			cmp.Compare(a.name, b.name),
		)
	})
	names := make([]string, len(cs))
	for i, c := range cs {
		names[i] = c.name
	}
	return names
}
