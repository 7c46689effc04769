package avantan

import (
	"errors"
	"fmt"
	"iter"
)

// MaxMembers is the largest number of sites that a view may have.
const MaxMembers = 64

// Wait says how long a leader waits before it puts the offers together.
type Wait uint8

const (
	// WaitAll waits for every reachable voter, at most for the Window. The tokens of a
	// voter left out stay where they are. An instance that leaves nobody out finds
	// more, so fewer instances are needed.
	WaitAll Wait = iota
	// WaitQuorum goes on with the first majority, as the paper does (Section
	// 4.3.1).
	WaitQuorum
)

// Config is the configuration that all machines of a site share. It must not change once
// a Machine uses it.
type Config struct {
	// Self is this site. It takes part in the instances of the views that name it, and
	// learns the decisions of others.
	Self SiteID
	// Known reports whether a site belongs to the cluster, or ever did. Messages that
	// name others are refused. Nil means that all do.
	Known func(SiteID) bool
	// Wait says how long a leader waits for ElectionOk.
	Wait Wait
	// Window is how long a leader waits for the ElectionOk of every reachable
	// voter before it settles for a majority. At least 1; it should cover the
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
	// Reachable reports whether a site is thought to be up, so that a leader need not
	// sit out its Window for a voter that is down. Nil means all are up. A wrong
	// answer costs time or leaves a site out of R, never safety.
	Reachable func(SiteID) bool
	// Lost reports whether a site is lost for good, by the word of an operator, after a
	// majority was lost: see Machine.Recover. It never reports one of these sites as not
	// lost again. Nil means that none is.
	Lost func(SiteID) bool
	// Serving yields the sites that are not lost and may have applied instances, voters or
	// not. A leader asks them all once Lost has named a voter. Nil means the voters only.
	Serving func() iter.Seq[SiteID]
	// Rand draws the back-offs.
	Rand Rand
}

// Validate reports the first field that is missing or out of its range.
func (c *Config) Validate() error {
	switch {
	case c.Self == "":
		return errors.New("avantan: config: Self is missing")
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

// known reports whether a site belongs to the cluster, or ever did.
func (c *Config) known(site SiteID) bool {
	return site == c.Self || c.Known == nil || c.Known(site)
}
