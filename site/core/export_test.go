package core

import (
	"encoding/json"
	"iter"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/stored"
)

// ForecastOf is the site's present forecast of an entity.
func (c *Core) ForecastOf(name string) predict.Forecast {
	e := c.space.find(name)
	return c.forecast(e)
}

// ModelInMemory reports whether the entity has a model in memory.
func (c *Core) ModelInMemory(name string) bool {
	e := c.space.find(name)
	return e.demand.model != nil
}

// ParkedBytes is the length of all parked states, in bytes.
func (c *Core) ParkedBytes() int {
	n := 0
	for _, r := range c.forecasts.parked {
		n += len(r.State)
	}
	return n
}

// GiveBack gives back tokens of a lease, at most most, as claims of other sites do.
func (c *Core) GiveBack(key attempt.Key, most Tokens) Tokens { return c.giveBack(key, most) }

// EndLease ends a lease, as claims of other sites do.
func (c *Core) EndLease(key attempt.Key) Tokens { return c.endLease(key) }

// Unsettled reports whether a step has left anything to do: nobody would, until a later step.
func (c *Core) Unsettled() bool {
	return c.fence.refused == nil && len(c.due)+len(c.rebalancing.consequences) > 0
}

// Audit begins an audit of an entity.
func (c *Core) Audit(name string) {
	e := c.space.find(name)
	c.auditOf(e)
	c.beginAudit(e)
}

// Follow installs all that another core's catalogue has decided since this core's last
// change: the missed changes, or a whole snapshot.
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

// FollowEach is Follow with each missed change in a step of its own.
func (c *Core) FollowEach(leader *Core) error {
	for r := range leader.cat.changes.from(0) {
		if r.Number <= c.cat.numbered {
			continue
		}
		b, err := json.Marshal(catalogueSnapshot{Missed: []stored.Change{r}})
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
	c.settle()
	return nil
}

// Asked is the number of tokens that the acquires waiting for an entity ask for.
func (c *Core) Asked(name string) Tokens { return c.space.find(name).queue.asked() }

// Held returns a tenant's count in the table of requests, and the number of tenants with
// a count.
func (c *Core) Held(tenant string) (held, tenants int) {
	return c.requests.held.Held(tenant), c.requests.held.Holders()
}

// HeldAll returns the counts under the bounds that tenants share: of the table of
// requests, of waiting acquires, and of watchers.
func (c *Core) HeldAll() [3]int {
	return [3]int{c.requests.held.All(), c.waitingOf.All(), c.watchersOf.All()}
}

// Recount counts each tenant's part of the table of requests anew, from the keys in the
// table and the keys of the waiting acquires.
func (c *Core) Recount(tenantOf func(key attempt.Key) string) map[string]int {
	n := make(map[string]int)
	for number, r := range c.requests.records() {
		if last, _ := c.requests.recall.find(&r.key); last == number {
			n[tenantOf(r.key)] += 1 + len(c.requests.parts[r.key])
		}
	}
	for key, w := range c.waiting {
		n[tenantOf(key)] += 1 + len(w.parts)
	}
	return n
}

// records returns all records of a table, by number.
func (m *recall) records() iter.Seq2[uint32, remembered] {
	return func(yield func(uint32, remembered) bool) {
		for number := m.slots.begin; number != m.slots.end; number++ {
			if !yield(number, m.get(number)) {
				return
			}
			if m.slots.at(number).wide() {
				number++
			}
		}
	}
}

// Overdraw breaks the books of an entity, as a bug would that takes more than is left.
func (c *Core) Overdraw(name string) {
	e := c.space.find(name)
	c.keepWhole(e, e.books.Take(e.books.Left()+1))
}

// Unpledge has the books of an entity forget a pledge that its protocol goes on holding.
func (c *Core) Unpledge(name string) {
	e := c.space.find(name)
	c.keepWhole(e, e.books.Withdraw(e.books.Aside()))
	c.dirtyBooks(e)
}

// Recode decodes what a value decides, or a snapshot, and encodes it again. The kind is
// one of those of TestGoldenTexts.
func Recode(kind string, text []byte) ([]byte, error) {
	recode := func(into any) ([]byte, error) {
		if err := json.Unmarshal(text, into); err != nil {
			return nil, err
		}
		return json.Marshal(into)
	}
	switch kind {
	case "catalogue":
		if _, err := decodeChanges(&avantan.Value{Change: text}); err != nil {
			return nil, err
		}
		return recode(new([]stored.CatalogueChange))
	case "catalogue-snapshot":
		return recode(new(catalogueSnapshot))
	case "limit":
		return recode(new(limitChange))
	default:
		return recode(new(limitSnapshot))
	}
}

// Leaves has a site leave the cluster, as this core knows.
func (c *Core) Leaves(site SiteID) { c.roster.Seat(site).State = stored.SeatDraining }
