package appmgr

import (
	"slices"
	"time"

	"github.com/samya-db/samya/internal/apierr"
)

const (
	// clockTolerance is by how much a site's clock may differ before others are
	// preferred.
	clockTolerance = 10 * time.Second
	// maxAhead bounds by how much requests are given longer for a site whose clock
	// is ahead, and longestLife how long they live then: sites take at most 4m50s.
	maxAhead, longestLife = 2 * time.Minute, 4 * time.Minute
)

// skewed takes in by how much the site's clock is ahead.
func (l *link) skewed(by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if clockOff(l.skew) != clockOff(by) {
		l.changed.Add(1)
	}
	l.skew = by
}

// ahead is by how much the site's clock is ahead of the app manager's.
func (l *link) ahead() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.skew
}

func clockOff(skew time.Duration) bool { return skew.Abs() > clockTolerance }

// lasts returns until when a request may run that was given so long. All its tries
// go by that one time, at each site by the clock there. So it is later by as much as
// the clock of the site that is furthest ahead, or the request would be over there
// before it came. Later is the safe side: each site by itself takes no request that
// may outlive its memory of it.
func (r *router) lasts(now time.Time, life time.Duration) time.Time {
	var ahead time.Duration
	r.mu.Lock()
	for _, l := range r.links {
		ahead = max(ahead, min(l.ahead(), maxAhead))
	}
	r.mu.Unlock()
	return now.Add(life + max(0, min(ahead, longestLife-life))).Truncate(time.Millisecond)
}

// clockRefused reports whether a site refuses a request only because its clock
// differs: it did nothing, and a site whose clock is right may do it.
func (c *call) clockRefused(e *apierr.Error, now time.Time) bool {
	switch {
	case c.moves == nil:
		return false
	case e.Reason == apierr.RequestExpired:
		return now.Before(c.moves.notAfter)
	}
	far := slices.ContainsFunc(e.Violations, func(v apierr.Violation) bool { return v.Field == "not_after" })
	return e.Reason == apierr.InvalidField && far && c.moves.notAfter.Sub(now) <= longestLife
}
