package core

import (
	"strings"

	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/site/core/stored"
)

// The tenant of an entity is named by the first segments of its name, and a request
// belongs to the tenant of its first entity. Tenants share the bounds of a site: a tenant
// that takes all it can get is refused before the others are; see package portion.

// tenantOf is the tenant of a named entity.
func (c *Config) tenantOf(name string) string {
	end := 0
	for range c.TenantSegments {
		i := strings.IndexByte(name[end:], '/')
		if i < 0 {
			return name
		}
		end += i + 1
	}
	return name[:end-1]
}

// takeFor counts n entries of the table of requests for the tenant of an entity.
func (c *remembering) takeFor(entity string, n int) portion.Slot {
	return c.requests.held.Take(c.cfg.tenantOf(entity), n)
}

// watchingFull reports whether no more callers may watch entities of an entity's tenant.
func (c *reading) watchingFull(e *entity) bool {
	return !c.watchersOf.Fits(c.cfg.tenantOf(e.name), c.cfg.MaxWatchers, 1)
}

// tenantsOf finds the tenants of restored records.
type tenantsOf struct {
	cfg *Config
	// byGeneration has the tenants of the existing entities.
	byGeneration map[uint64]string
}

func newTenantsOf(cfg *Config, from *stored.Restored) *tenantsOf {
	t := &tenantsOf{cfg: cfg, byGeneration: make(map[uint64]string)}
	if from.Blocks != nil {
		for i := range from.Entities {
			t.byGeneration[from.Entities[i].Generation] = cfg.tenantOf(from.Entities[i].Name)
		}
	}
	return t
}

// take counts a restored record for its tenant. A record of an entity deleted since
// counts for nobody.
func (t *tenantsOf) take(of *portion.Counts, r *stored.Request) portion.Slot {
	tenant, known := t.byGeneration[r.Generation]
	if r.Tenant != "" {
		tenant, known = t.cfg.tenantOf(r.Tenant), true
	}
	if !known {
		of.More(portion.Nobody, 1)
		return portion.Nobody
	}
	return of.Take(tenant, 1)
}
