package transfer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// Config is the configuration that all machines of a site share. Once a Machine uses it,
// it must not change, except that Members may grow between two steps.
type Config struct {
	// Self is this site, a member.
	Self avantan.SiteID
	// Members are the sites that may give and receive, each once, 1 to
	// avantan.MaxMembers.
	Members []avantan.SiteID
	// Lost reports whether a site is written off: it gives and receives nothing, for ever. Nil
	// means that none is. Once true, it stays true, also after a restart. It may turn true
	// between two steps; a wake lets go of what waits for the site.
	Lost func(avantan.SiteID) bool
	// Window is how long a round waits for answers. At least 1; it must lie above
	// the farthest round trip and a sync, or far donors come too late.
	Window avantan.Tick
	// Backoff is the first wait before a transfer is sent again. It doubles with each
	// repetition, and the actual wait is drawn from its upper half. At least 1. Half of
	// it should exceed the farthest round trip and a sync, or transfers are sent twice
	// for nothing.
	Backoff avantan.Tick
	// MaxBackoff bounds the doubling. At least Backoff. It is also about how long
	// tokens stay under way after a receiver is back, if the receiver asks for nothing.
	MaxBackoff avantan.Tick
	// Rand draws the waits.
	Rand avantan.Rand
}

// Validate reports the first field that is missing or out of its range.
func (c *Config) Validate() error {
	switch {
	case len(c.Members) == 0 || len(c.Members) > avantan.MaxMembers:
		return fmt.Errorf("transfer: config: Members has %d sites, must have 1 to %d", len(c.Members), avantan.MaxMembers)
	case slices.Contains(c.Members, ""):
		return errors.New("transfer: config: Members holds an empty name")
	case !avantan.Distinct(c.Members):
		return errors.New("transfer: config: Members must name each site once")
	case !c.member(c.Self):
		return fmt.Errorf("transfer: config: Self %q is not one of Members", c.Self)
	case c.Window < 1:
		return errors.New("transfer: config: Window must be at least 1")
	case c.Backoff < 1:
		return errors.New("transfer: config: Backoff must be at least 1")
	case c.MaxBackoff < c.Backoff:
		return fmt.Errorf("transfer: config: MaxBackoff %d must be at least Backoff %d", c.MaxBackoff, c.Backoff)
	case c.Rand == nil:
		return errors.New("transfer: config: Rand is missing")
	}
	return nil
}

func (c *Config) member(site avantan.SiteID) bool {
	return slices.Contains(c.Members, site)
}

// lost reports whether another site is written off.
func (c *Config) lost(site avantan.SiteID) bool {
	return c.Lost != nil && site != c.Self && c.Lost(site)
}

// backoff draws a wait from the upper half of the back-off after n repetitions.
func (c *Config) backoff(n uint8) avantan.Tick {
	d := c.Backoff
	for range n {
		if d >= c.MaxBackoff/2 {
			d = c.MaxBackoff
			break
		}
		d *= 2
	}
	return d - d/2 + avantan.Tick(c.Rand.Uint64N(uint64(d/2)+1))
}

// increasing reports whether the sites of a list are strictly increasing.
func increasing[E any](list []E, site func(E) avantan.SiteID) bool {
	for i := 1; i < len(list); i++ {
		if cmp.Compare(site(list[i-1]), site(list[i])) >= 0 {
			return false
		}
	}
	return true
}
