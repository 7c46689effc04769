package route

import (
	"slices"
	"time"

	"github.com/samya-db/samya/internal/apierr"
)

const (
	// clockTolerance: how far a site's clock may differ before other sites are preferred.
	clockTolerance = 10 * time.Second
	// maxAhead bounds the extra time that requests get for a site with a clock that is
	// ahead. longestLife bounds the life of such requests: sites take at most 4m50s.
	maxAhead, longestLife = 2 * time.Minute, 4 * time.Minute
)

// skewed records by how much the site's clock is ahead.
func (l *link) skewed(by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if clockOff(l.skew) != clockOff(by) {
		l.changed.Add(1)
	}
	l.skew = by
}

// ahead returns by how much the site's clock is ahead of the app manager's.
func (l *link) ahead() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.skew
}

func clockOff(skew time.Duration) bool { return skew.Abs() > clockTolerance }

// lasts returns the time until which a request of the given life may run. All its tries
// use this time, and each site compares it with its own clock. Adding the skew of the
// clock that is furthest ahead keeps the request from being over there on arrival. Later
// is the safe side: each site refuses a request that may outlive its memory of the
// request.
func (r *Router) lasts(now time.Time, life time.Duration) time.Time {
	var ahead time.Duration
	r.mu.Lock()
	for _, l := range r.links {
		ahead = max(ahead, min(l.ahead(), maxAhead))
	}
	r.mu.Unlock()
	return now.Add(life + max(0, min(ahead, longestLife-life))).Truncate(time.Millisecond)
}

// clockRefused reports whether a site refuses a request only because its clock differs.
// The site did nothing, and a site with the right time may do the request.
func (c *Call) clockRefused(e *apierr.Error, now time.Time) bool {
	switch {
	case c.Moves == nil:
		return false
	case e.Reason == apierr.RequestExpired:
		return now.Before(c.Moves.NotAfter)
	}
	far := slices.ContainsFunc(e.Violations, func(v apierr.Violation) bool { return v.Field == "not_after" })
	return e.Reason == apierr.InvalidField && far && c.Moves.NotAfter.Sub(now) <= longestLife
}
