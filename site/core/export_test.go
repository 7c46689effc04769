package core

import "github.com/samya-db/samya/predict"

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
