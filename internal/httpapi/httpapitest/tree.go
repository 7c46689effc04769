package httpapitest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/httpapi"
)

// seen returns the entity as the API tells it. The caller holds the lock.
func (m *Manager) seen(e *entity) httpapi.Entity {
	out := e.Entity
	out.Children = len(m.below(e.Name))
	return out
}

// below returns the sorted names of the entities right below parent.
func (m *Manager) below(parent string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.entities)), func(n string) bool { return m.entities[n].Parent != parent })
}

// charge moves tokens of an entity and of all entities above it. The caller holds the
// lock.
func (m *Manager) charge(e *entity, tokens int64) {
	e.acquired += tokens
	for above := m.entities[e.Parent]; above != nil && !m.Flat; above = m.entities[above.Parent] {
		above.acquired += tokens
	}
}

// lacking returns the refusal of an acquire if the entity, or an entity above it, lacks
// the tokens. The caller holds the lock.
func (m *Manager) lacking(e *entity, tokens int64) error {
	for x := e; x != nil && (x == e || !m.Flat); x = m.entities[x.Parent] {
		if left := x.Limit - x.acquired; left < tokens {
			err := refuse.NoTokens(e.Name, m.SiteName, tokens, left, 1500*time.Millisecond)
			if x != e {
				err = err.LackedBy(x.Name, tokens)
			}
			return err
		}
	}
	return nil
}

// reparent gives an entity another parent. It does not check for loops.
func (m *Manager) reparent(r *http.Request, entityName string) (any, error) {
	var body struct {
		Parent string `json:"parent"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, apierr.Wrap(apierr.MalformedJSON, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entities[entityName]
	switch {
	case e == nil:
		return nil, apierr.NotFound(entityName)
	case body.Parent != "" && m.entities[body.Parent] == nil:
		return nil, refuse.NoParent(entityName, body.Parent)
	}
	e.Parent = body.Parent
	return m.seen(e), nil
}

// remove deletes an entity, and with subtree all entities below it. The caller holds the
// lock.
func (m *Manager) remove(e *entity, subtree bool) error {
	for _, child := range m.below(e.Name) {
		if !subtree {
			return refuse.Parental(e.Name)
		}
		if err := m.remove(m.entities[child], true); err != nil {
			return err
		}
	}
	delete(m.entities, e.Name)
	return nil
}
