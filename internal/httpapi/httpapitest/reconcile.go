package httpapitest

import (
	"encoding/json"
	"net/http"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/cutid"
	"github.com/samya-db/samya/internal/httpapi"
)

// cut makes a cut of an entity at a fixed time.
func (m *Manager) cut(entityName string) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entities[entityName]
	if e == nil {
		return nil, apierr.NotFound(entityName)
	}
	c := cutid.Cut{Entity: e.Name, Generation: e.Generation, Version: e.Version, Counted: e.acquired}
	return httpapi.Cut{Entity: m.seen(e), Cut: c.String(), InUse: c.InUse(), BegunMS: 1_700_000_000_000, EndedMS: 1_700_000_000_250}, nil
}

// reconcile makes a count the number of tokens out, as of a cut.
func (m *Manager) reconcile(r *http.Request, entityName string) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entities[entityName]
	if e == nil {
		return nil, apierr.NotFound(entityName)
	}
	var truth httpapi.Truth
	if err := json.NewDecoder(r.Body).Decode(&truth); err != nil {
		return nil, apierr.Wrap(apierr.MalformedJSON, err)
	}
	c, err := cutid.Parse("cut", entityName, truth.Cut)
	if err != nil {
		return nil, apierr.FromName(err)
	}
	if c.Version != e.Version {
		return nil, apierr.New(apierr.VersionMismatch, "the cut does not hold any more")
	}
	returned := c.InUse() - truth.InUse
	m.charge(e, -returned)
	e.Version++
	reconciled := httpapi.Reconciled{Entity: m.seen(e), MissingSites: append([]string{}, m.Missing...), Returned: returned}
	if returned < 0 && len(m.Missing) > 0 {
		reconciled.MayExceedBy = 7
	}
	return reconciled, nil
}
