package avantan

import (
	"errors"
	"fmt"
	"slices"
)

// MaxMembers is the largest number of members an acceptor set may have.
const MaxMembers = 64

// Wait says how long a leader waits before it puts the offers together.
type Wait uint8

const (
	// WaitAll waits for every reachable member, at most for the Window. The tokens of a
	// member left out stay where they are. An instance that leaves nobody out finds
	// more, so fewer instances are needed.
	WaitAll Wait = iota
	// WaitQuorum goes on with the first majority, as the paper does (Section
	// 4.3.1).
	WaitQuorum
)

// Config is the configuration that all machines of a site with the same members share.
// It must not change once a Machine uses it.
type Config struct {
	// Self is this site, a member.
	Self SiteID
	// Members is the acceptor set, sorted, 1 to MaxMembers sites. A majority, len/2+1
	// members, decides, whoever is reachable.
	Members []SiteID
	// Wait says how long a leader waits for ElectionOk.
	Wait Wait
	// Window is how long a leader waits for the ElectionOk of every reachable
	// member before it settles for a majority. At least 1; it should cover the
	// largest round trip and two syncs, or far sites are left out of instances.
	Window Tick
	// Patience is how long a site waits for an instance to go on before it asks for its
	// status. After as long again it leads the instance itself. It is also how long a
	// leader waits before it repeats itself. Above Window. It should cover Window, two
	// more round trips and the syncs (three windows are a good choice), or cohorts duel
	// with a leader that is only slow.
	Patience Tick
	// Backoff is the first back-off of a leader that failed or yielded. It
	// doubles with each further failure in the same instance, and the actual
	// wait is drawn from its upper half. At least 1; about one round trip.
	Backoff Tick
	// MaxBackoff bounds the doubling. At least Backoff; it is also about how
	// long after the healing of a partition an offer may stay stuck.
	MaxBackoff Tick
	// Policy is the reallocation policy of values built here if the Proposal names
	// none, as for a site that finishes another's instance.
	Policy string
	// Reachable reports whether a member is thought to be up, so that a leader need not
	// sit out its Window for a member that is down. Nil means all are up. A wrong
	// answer costs time or leaves a site out of R, never safety.
	Reachable func(SiteID) bool
	// Rand draws the back-offs.
	Rand Rand
}

// Validate reports the first field that is missing or out of its range.
func (c *Config) Validate() error {
	switch {
	case len(c.Members) == 0 || len(c.Members) > MaxMembers:
		return fmt.Errorf("avantan: config: Members has %d sites, must have 1 to %d", len(c.Members), MaxMembers)
	case slices.Contains(c.Members, ""):
		return errors.New("avantan: config: Members holds an empty name")
	case !increasing(c.Members, func(s SiteID) SiteID { return s }):
		return errors.New("avantan: config: Members must be sorted, each site once")
	case !slices.Contains(c.Members, c.Self):
		return fmt.Errorf("avantan: config: Self %q is not one of Members", c.Self)
	case c.Wait > WaitQuorum:
		return fmt.Errorf("avantan: config: Wait is %d, must be WaitAll or WaitQuorum", c.Wait)
	case c.Window < 1:
		return errors.New("avantan: config: Window must be at least 1")
	case c.Patience <= c.Window:
		return fmt.Errorf("avantan: config: Patience %d must be above Window %d", c.Patience, c.Window)
	case c.Backoff < 1:
		return errors.New("avantan: config: Backoff must be at least 1")
	case c.MaxBackoff < c.Backoff:
		return fmt.Errorf("avantan: config: MaxBackoff %d must be at least Backoff %d", c.MaxBackoff, c.Backoff)
	case c.Rand == nil:
		return errors.New("avantan: config: Rand is missing")
	}
	return nil
}

// quorum is the size of a majority.
func (c *Config) quorum() int { return len(c.Members)/2 + 1 }

// index returns the position of a member, or false for a stranger.
func (c *Config) index(site SiteID) (int, bool) {
	return slices.BinarySearch(c.Members, site)
}

// reachable is the set of members thought to be up; this site always is.
func (c *Config) reachable() siteSet {
	var set siteSet
	for i, site := range c.Members {
		if site == c.Self || c.Reachable == nil || c.Reachable(site) {
			set.add(i)
		}
	}
	return set
}
