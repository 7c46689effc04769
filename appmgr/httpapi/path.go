package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/methods"
	"github.com/samya-db/samya/internal/name"
)

// operation is a route of the table of methods, and its handler.
type operation struct {
	methods.Route
	method methods.Method
	do     handler
}

// resource has the operations of a path, by verb.
type resource map[string]*operation

// resources has all resources, by their paths in the table of methods.
var resources = routed()

func routed() map[string]resource {
	all := make(map[string]resource)
	for _, m := range methods.All() {
		for _, r := range m.Routes {
			if all[r.Path] == nil {
				all[r.Path] = make(resource)
			}
			all[r.Path][r.Verb] = &operation{r, m, handlers[r.Name]}
		}
	}
	return all
}

// operation returns the operation of a verb; nil if there is none. HEAD is served like
// GET, except for watches, which have no end.
func (r resource) operation(verb string) *operation {
	if verb != http.MethodHead {
		return r[verb]
	}
	if op := r[http.MethodGet]; op != nil && !op.method.Stream {
		return op
	}
	return nil
}

// allowed returns the value of the Allow header of a resource.
func (r resource) allowed() string {
	var verbs []string
	for _, v := range append(slices.Collect(maps.Keys(r)), http.MethodHead) {
		if r.operation(v) != nil {
			verbs = append(verbs, v)
		}
	}
	slices.Sort(verbs)
	return strings.Join(verbs, ", ")
}

// The path of all entities, and of a single entity.
const (
	entitiesPath = "/v1/entities"
	entityPath   = entitiesPath + "/{name}"
)

// parsePath returns the resource that an escaped path names, and its entity, if any.
// Names hold slashes and no colon, so the last colon parts the name from the verb; both
// may be percent-encoded. Nothing is cleaned or redirected: "//" and ".." are bad names.
func parsePath(escaped string) (res, entity string, err error) {
	rest, ok := strings.CutPrefix(escaped, entitiesPath+"/")
	if !ok {
		if resources[escaped] == nil {
			return "", "", apierr.New(apierr.RouteNotFound, "no resource %.128q", escaped)
		}
		return escaped, "", nil
	}
	entity, err = url.PathUnescape(rest)
	if err != nil {
		return "", "", apierr.Invalid("name", "bad percent-encoding")
	}
	res = entityPath
	if i := strings.LastIndexByte(entity, ':'); i >= 0 {
		verb := entity[i+1:]
		entity, res = entity[:i], res+":"+verb
		if resources[res] == nil {
			return "", "", apierr.New(apierr.RouteNotFound, "no verb %.64q; there are %s", verb, entityVerbs())
		}
	}
	if err := name.Entity("name", entity); err != nil {
		return "", "", fmt.Errorf("path: %w", apierr.FromName(err))
	}
	return res, entity, nil
}

// entityVerbs names the verbs after an entity's name.
func entityVerbs() string {
	var verbs []string
	for _, path := range slices.Sorted(maps.Keys(resources)) {
		if verb, ok := strings.CutPrefix(path, entityPath+":"); ok {
			verbs = append(verbs, verb)
		}
	}
	last := len(verbs) - 1
	return strings.Join(verbs[:last], ", ") + " and " + verbs[last]
}
