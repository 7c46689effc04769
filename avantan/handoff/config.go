package handoff

import (
	"errors"
	"fmt"

	"github.com/samya-db/samya/avantan"
)

// MaxItems bounds the items of a bequest.
const MaxItems = 256

// Config is the configuration that all machines of a site share. A Config in use must
// not change.
type Config struct {
	// Self is this site.
	Self avantan.SiteID
	// MaxItems is the largest number of items that this site puts into a bequest, 1 to
	// the constant MaxItems. A bequest may have fewer, by the bytes of the items.
	MaxItems int
	// Backoff is the first wait before a bequest is sent again, at least 1. Each
	// repetition doubles the wait, and the actual wait is drawn from the upper half. Half
	// of Backoff should exceed the farthest round trip and a sync, or bequests are sent
	// twice for nothing.
	Backoff avantan.Tick
	// MaxBackoff bounds the doubling. At least Backoff. A bequest stays open for about
	// MaxBackoff after the heir is back.
	MaxBackoff avantan.Tick
	// Rand draws the waits.
	Rand avantan.Rand
}

// Validate reports the first field that is missing or out of its range.
func (c *Config) Validate() error {
	switch {
	case c.Self == "":
		return errors.New("handoff: config: Self is missing")
	case c.MaxItems < 1 || c.MaxItems > MaxItems:
		return fmt.Errorf("handoff: config: MaxItems %d must be 1 to %d", c.MaxItems, MaxItems)
	case c.Backoff < 1:
		return errors.New("handoff: config: Backoff must be at least 1")
	case c.MaxBackoff < c.Backoff:
		return fmt.Errorf("handoff: config: MaxBackoff %d must be at least Backoff %d", c.MaxBackoff, c.Backoff)
	case c.Rand == nil:
		return errors.New("handoff: config: Rand is missing")
	}
	return nil
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
