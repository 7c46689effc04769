package star

import (
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// MaxSlices is the upper bound of Config.MaxSlices.
const MaxSlices = 1024

// windowsOfPatience is the least ratio of Patience to Window. A Window covers a round
// trip and two syncs. A cohort's wait for the value has to cover the collection and two
// more round trips with their syncs.
const windowsOfPatience = 3

// Config is the configuration that all machines of a site share. Once a Machine uses it,
// it must not change, except that Members may grow between two steps.
type Config struct {
	// Self is this site, a member.
	Self avantan.SiteID
	// Members are the sites that ever took part or may, each once, 1 to
	// avantan.MaxMembers. A site keeps its place in the list.
	Members []avantan.SiteID
	// Serves reports whether a site may be asked to take part; nil means that all may. The
	// offer of another site is in no value that is built here.
	Serves func(avantan.SiteID) bool
	// Lost reports whether a site is written off: it takes part in nothing, for ever. Nil means
	// that none is. Once true, it stays true, also after a restart: it tells what is durable
	// here before any message of the step leaves. It may turn true between two steps.
	Lost func(avantan.SiteID) bool
	// Window is how long a leader collects offers before it settles for the offers it
	// has. At least 1; it must lie above the farthest round trip and two syncs, or far
	// sites are never in R.
	Window avantan.Tick
	// Patience is how long a site waits for an instance to go on. Without a value the
	// site then votes aborted; with a value it asks all of R. At least three Windows:
	// above Window, two more round trips and the syncs, or cohorts abort the proposal
	// of a slow leader.
	Patience avantan.Tick
	// Backoff is the first back-off of a leader that failed or yielded. It
	// doubles with each further failure, and the actual wait is drawn from its
	// upper half. At least 1; about one round trip.
	Backoff avantan.Tick
	// MaxBackoff bounds the doubling. At least Backoff; it is also about how
	// long after the healing of a partition an offer may stay stuck.
	MaxBackoff avantan.Tick
	// MaxSlices bounds the instances this site takes part in at once, 2 to MaxSlices.
	// It counts instances that wait for an unreachable member. At the bound the site
	// neither leads nor pledges; the bound should be several times the number of
	// members.
	MaxSlices int
	// Policy is the reallocation policy if a Proposal names none.
	Policy string
	// Reachable reports whether a member is thought to be up, so that a leader need not
	// sit out its Window for a member that is down. Nil means all are up. A wrong
	// answer costs time or leaves a site out of R, never safety.
	Reachable func(avantan.SiteID) bool
	// Rand draws the back-offs.
	Rand avantan.Rand
}

// Validate reports the first field that is missing or out of its range.
func (c *Config) Validate() error {
	switch {
	case len(c.Members) == 0 || len(c.Members) > avantan.MaxMembers:
		return fmt.Errorf("star: config: Members has %d sites, must have 1 to %d", len(c.Members), avantan.MaxMembers)
	case slices.Contains(c.Members, ""):
		return errors.New("star: config: Members holds an empty name")
	case !avantan.Distinct(c.Members):
		return errors.New("star: config: Members must name each site once")
	case !slices.Contains(c.Members, c.Self):
		return fmt.Errorf("star: config: Self %q is not one of Members", c.Self)
	case c.Window < 1:
		return errors.New("star: config: Window must be at least 1")
	case c.Patience/windowsOfPatience < c.Window:
		return fmt.Errorf("star: config: Patience %d must be at least %d times Window %d", c.Patience, windowsOfPatience, c.Window)
	case c.Backoff < 1:
		return errors.New("star: config: Backoff must be at least 1")
	case c.MaxBackoff < c.Backoff:
		return fmt.Errorf("star: config: MaxBackoff %d must be at least Backoff %d", c.MaxBackoff, c.Backoff)
	case c.MaxSlices < 2 || c.MaxSlices > MaxSlices:
		return fmt.Errorf("star: config: MaxSlices %d must be 2 to %d", c.MaxSlices, MaxSlices)
	case c.Rand == nil:
		return errors.New("star: config: Rand is missing")
	}
	return nil
}

// index returns the position of a member, or false for a stranger.
func (c *Config) index(site avantan.SiteID) (int, bool) {
	i := slices.Index(c.Members, site)
	return i, i >= 0
}

// serves reports whether a site may be asked to take part.
func (c *Config) serves(site avantan.SiteID) bool {
	return !c.lost(site) && (c.Serves == nil || c.Serves(site))
}

// lost reports whether another site is written off.
func (c *Config) lost(site avantan.SiteID) bool {
	return c.Lost != nil && site != c.Self && c.Lost(site)
}

// allLost is the set of members that are written off.
func (c *Config) allLost() siteSet {
	var set siteSet
	if c.Lost == nil {
		return set
	}
	for i, site := range c.Members {
		if c.lost(site) {
			set.add(i)
		}
	}
	return set
}

// setIn is the set of the members in a list.
func (c *Config) setIn(list []avantan.SiteID) siteSet {
	var set siteSet
	for _, site := range list {
		if i, member := c.index(site); member {
			set.add(i)
		}
	}
	return set
}

// reachable is the set of members thought to be up; this site always is.
func (c *Config) reachable() siteSet {
	var set siteSet
	for i, site := range c.Members {
		if site == c.Self || c.serves(site) && (c.Reachable == nil || c.Reachable(site)) {
			set.add(i)
		}
	}
	return set
}

// setOf is R: the members with a contribution in the value.
func (c *Config) setOf(v *avantan.Value) siteSet {
	var set siteSet
	for i := range v.Contributions {
		if k, member := c.index(v.Contributions[i].Site); member {
			set.add(k)
		}
	}
	return set
}
