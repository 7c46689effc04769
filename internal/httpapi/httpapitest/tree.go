package httpapitest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
)

// seen is the entity as the API tells it; called with the lock held.
func (m *Manager) seen(e *entity) httpapi.Entity {
	out := e.Entity
	out.Children = len(m.below(e.Name))
	return out
}

// below are the names of the entities right below one, in their order.
func (m *Manager) below(parent string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.entities)), func(n string) bool { return m.entities[n].Parent != parent })
}

// reparent gives an entity another parent. It looks for no loops.
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
		return nil, apierr.NoParent(entityName, body.Parent)
	}
	e.Parent = body.Parent
	return m.seen(e), nil
}

// remove deletes an entity, and with subtree all below it; called with the lock held.
func (m *Manager) remove(e *entity, subtree bool) error {
	for _, child := range m.below(e.Name) {
		if !subtree {
			return apierr.Parental(e.Name)
		}
		if err := m.remove(m.entities[child], true); err != nil {
			return err
		}
	}
	delete(m.entities, e.Name)
	return nil
}
