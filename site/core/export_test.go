package core

import (
	"encoding/json"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/predict"
)

// ForecastOf is what the site expects of an entity now.
func (c *Core) ForecastOf(name string) predict.Forecast {
	e := c.space.find(name)
	return c.forecast(e)
}

// ModelInMemory reports whether the entity has a model, and ParkedBytes how much
// is parked for those that have none.
func (c *Core) ModelInMemory(name string) bool {
	e := c.space.find(name)
	return e.demand.model != nil
}

// ParkedBytes is the length of all parked states.
func (c *Core) ParkedBytes() int {
	n := 0
	for _, r := range c.forecasts.parked {
		n += len(r.State)
	}
	return n
}

// GiveBack and EndLease are what claims of other sites do to leases.
func (c *Core) GiveBack(key RequestKey, most Tokens) Tokens { return c.giveBack(key, most) }

// EndLease ends a lease.
func (c *Core) EndLease(key RequestKey) Tokens { return c.endLease(key) }

// Audit begins an audit.
func (c *Core) Audit(name string) {
	e := c.space.find(name)
	c.auditOf(e)
	c.beginAudit(e)
}

// Follow installs what another core's catalogue has decided since this one's last
// change: the changes that were missed, or a whole snapshot.
func (c *Core) Follow(leader *Core, whole bool) error {
	var s catalogueSnapshot
	if whole {
		s.Whole = leader.cat.whole()
	} else {
		for r := range leader.cat.changes.from(0) {
			if r.Number > c.cat.numbered {
				s.Missed = append(s.Missed, r)
			}
		}
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return c.InstallCatalogue(b)
}

// FollowEach is Follow with each change that was missed in a step of its own.
func (c *Core) FollowEach(leader *Core) error {
	for r := range leader.cat.changes.from(0) {
		if r.Number <= c.cat.numbered {
			continue
		}
		b, err := json.Marshal(catalogueSnapshot{Missed: []ChangeRecord{r}})
		if err == nil {
			err = c.InstallCatalogue(b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// InstallCatalogue installs a snapshot of the catalogue.
func (c *Core) InstallCatalogue(snapshot []byte) error {
	if err := c.cat.Install(avantan.Instance(c.cat.numbered+1), snapshot); err != nil {
		return err
	}
	c.reshaped()
	c.catchUp()
	return nil
}

// Asked is what the acquires ask for that wait for an entity.
func (c *Core) Asked(name string) Tokens { return c.space.find(name).queue.asked() }

// Held is what is counted of the table of requests for a tenant, and the number of the
// tenants that have something.
func (c *Core) Held(tenant string) (held, tenants int) {
	return c.requests.held.Held(tenant), c.requests.held.Holders()
}

// HeldAll is what is counted of the bounds that tenants share: of the table of requests,
// of the acquires that wait, and of the watchers.
func (c *Core) HeldAll() [3]int {
	return [3]int{c.requests.held.All(), c.waitingOf.All(), c.watchersOf.All()}
}

// Recount counts what the table of requests has of each tenant, by the keys that it has
// and the keys of the acquires that wait.
func (c *Core) Recount(tenantOf func(key RequestKey) string) map[string]int {
	n := make(map[string]int)
	for number := c.requests.begin; number != c.requests.end; number++ {
		if r := c.requests.at(number); c.requests.recall.find(&r.key) == r {
			n[tenantOf(r.key)] += 1 + len(c.requests.parts[r.key])
		}
	}
	for key, w := range c.waiting {
		n[tenantOf(key)] += 1 + len(w.parts)
	}
	return n
}
