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

// named are resources with a name in their path, and the check of such a name.
type named struct {
	// above is the path of all, without a slash at its end.
	above string
	// check judges a name; it is given the name of the field.
	check func(field, name string) error
	// verbless: no verb follows a name, which may hold colons.
	verbless bool
}

// path is the path of a single one in the table of methods.
func (n named) path() string { return n.above + "/{name}" }

// The path of all entities, and of a single entity; the path of all members.
const (
	entitiesPath = "/v1/entities"
	entityPath   = entitiesPath + "/{name}"
	membersPath  = "/v1/members"
	// forwardAuthPath is the path of all domains of rate limits.
	forwardAuthPath = "/v1/forward-auth"
)

// namedOnes are the resources with a name in their path.
var namedOnes = []named{
	{above: entitiesPath, check: name.Entity},
	{above: membersPath, check: name.Site},
	{above: forwardAuthPath, check: domain, verbless: true},
}

// parsePath returns the resource that an escaped path names, and the name of its entity or
// site, if any. Names of entities hold slashes, and none holds a colon: the last colon parts
// the name from the verb. Both may be percent-encoded. Nothing is cleaned or redirected:
// "//" and ".." are bad names.
func parsePath(escaped string) (res, of string, err error) {
	for _, n := range namedOnes {
		if rest, ok := strings.CutPrefix(escaped, n.above+"/"); ok {
			return n.parse(rest)
		}
	}
	if resources[escaped] == nil {
		return "", "", apierr.New(apierr.RouteNotFound, "no resource %.128q", escaped)
	}
	return escaped, "", nil
}

// parse parses the part of an escaped path that follows the path of all.
func (n named) parse(rest string) (res, of string, err error) {
	of, err = url.PathUnescape(rest)
	if err != nil {
		return "", "", apierr.Invalid("name", "bad percent-encoding")
	}
	res = n.path()
	if i := strings.LastIndexByte(of, ':'); i >= 0 && !n.verbless {
		verb := of[i+1:]
		of, res = of[:i], res+":"+verb
		if resources[res] == nil {
			return "", "", apierr.New(apierr.RouteNotFound, "no verb %.64q; %s", verb, n.verbs())
		}
	}
	if err := n.check("name", of); err != nil {
		return "", "", fmt.Errorf("path: %w", apierr.FromName(err))
	}
	return res, of, nil
}

// verbs tells which verbs follow a name.
func (n named) verbs() string {
	var verbs []string
	for _, path := range slices.Sorted(maps.Keys(resources)) {
		if verb, ok := strings.CutPrefix(path, n.path()+":"); ok {
			verbs = append(verbs, verb)
		}
	}
	last := len(verbs) - 1
	if last == 0 {
		return "there is " + verbs[0]
	}
	return "there are " + strings.Join(verbs[:last], ", ") + " and " + verbs[last]
}
