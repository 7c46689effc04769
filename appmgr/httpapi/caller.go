package httpapi

import (
	"net/http"

	"github.com/samya-db/samya/internal/access"
)

// caller tells a caller who it is to this app manager, and what it may do.
type caller struct {
	Name string `json:"name"`
	Role string `json:"role"`
	// Prefixes are the caller's entities; empty for all.
	Prefixes []string `json:"prefixes"`
	// Open says that nobody is asked for credentials.
	Open       bool   `json:"open"`
	AppManager string `json:"app_manager"`
	Cluster    string `json:"cluster"`
}

func (a *api) getCaller(w http.ResponseWriter, r *http.Request, _ string) error {
	if _, err := query(r); err != nil {
		return err
	}
	who := access.Who(r.Context())
	c := caller{
		Name: who.Name, Role: who.Role.String(), Prefixes: append([]string{}, who.Scope...), Open: who.Open,
		AppManager: a.Name, Cluster: a.Cluster,
	}
	return writeJSON(w, http.StatusOK, c)
}
