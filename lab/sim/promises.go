package sim

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/redistribute"
	"github.com/samya-db/samya/site/core"
)

// keepsPromises checks a policy's promises beyond its sum, as far as the grants alone can
// tell. The amounts simulated are far from overflowing.
func keepsPromises(v *avantan.Value, delta core.Tokens, grants []core.Tokens) error {
	pool := delta
	for _, c := range v.Contributions {
		pool += c.Offered
	}
	for i, c := range v.Contributions {
		if pool >= 0 && grants[i] < 0 || pool <= 0 && grants[i] > 0 && v.Policy != redistribute.Paper {
			return fmt.Errorf("%s is granted %d of a pool of %d", c.Site, grants[i], pool)
		}
	}
	switch {
	case pool < 0:
		return nil
	case v.Policy == redistribute.Paper:
		return servesLargest(v.Contributions, pool, grants)
	case v.Policy == redistribute.EqualRisk:
		if err := sharesRisk(v.Contributions, pool, grants); err != nil {
			return err
		}
	}
	return servesWaiting(v.Contributions, pool, grants)
}

// sharesRisk checks that no site is below its median while there is enough for all. All
// sites get the same part of their wants beyond the median.
func sharesRisk(cs []avantan.Contribution, pool core.Tokens, grants []core.Tokens) error {
	medians, spreads := make([]core.Tokens, len(cs)), core.Tokens(0)
	surplus := pool
	for i, c := range cs {
		medians[i] = min(max(c.Median, c.Queued), c.Wanted)
		surplus -= medians[i]
		spreads += c.Wanted - medians[i]
	}
	if surplus < 0 {
		return nil
	}
	for i, c := range cs {
		above, spread := grants[i]-medians[i], c.Wanted-medians[i]
		// Either side times the sum of spreads, as the exact share is a fraction.
		if above < 0 || spreads > 0 && (above*spreads <= surplus*spread-spreads || above*spreads >= surplus*spread+spreads) {
			return fmt.Errorf("%s is granted %d above its median, of a surplus of %d for %d of %d", c.Site, above, surplus, spread, spreads)
		}
	}
	return nil
}

// servesWaiting checks that waiting acquires come first, the site with the smallest sum
// ahead of the others. Then sites get everything they expect, if there is enough.
func servesWaiting(cs []avantan.Contribution, pool core.Tokens, grants []core.Tokens) error {
	var queued, wanted core.Tokens
	for _, c := range cs {
		queued, wanted = queued+c.Queued, wanted+c.Wanted
	}
	for i, c := range cs {
		if queued <= pool && grants[i] < c.Queued || wanted <= pool && grants[i] < c.Wanted {
			return fmt.Errorf("%s is granted %d of a pool of %d that would do for all", c.Site, grants[i], pool)
		}
		for k, d := range cs {
			if grants[i] < c.Queued && d.Queued > c.Queued && grants[k] > 0 {
				return fmt.Errorf("%s, where less waits, is served after %s", c.Site, d.Site)
			}
		}
	}
	return nil
}

// servesLargest checks that the paper's algorithm rejects the smallest wants
// first, so that the largest is granted if it fits at all.
func servesLargest(cs []avantan.Contribution, pool core.Tokens, grants []core.Tokens) error {
	var most core.Tokens
	for _, c := range cs {
		most = max(most, c.Wanted-c.Offered)
	}
	if most <= 0 || most > pool {
		return nil
	}
	for i, c := range cs {
		if c.Wanted-c.Offered == most && grants[i] >= most {
			return nil
		}
	}
	return fmt.Errorf("the largest want, %d, is granted to nobody out of %d", most, pool)
}
