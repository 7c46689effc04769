package access

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/samya-db/samya/internal/methods"
	"github.com/samya-db/samya/internal/tlsconf"
)

// parseRole reads viewer, client, operator, admin or proxy.
func parseRole(s string) (methods.Role, error) {
	var names []string
	for _, r := range []methods.Role{methods.Viewer, methods.Client, methods.Operator, methods.Admin, methods.Proxy} {
		if r.String() == s {
			return r, nil
		}
		names = append(names, r.String())
	}
	return methods.Nobody, fmt.Errorf("role %.32q, must be %s", s, strings.Join(names, ", "))
}

// principal is a caller and its rights.
type principal struct {
	// Name is the name in the access file, or issuer and subject of a JWT. For the
	// cluster's own processes it is kind and name in the certificate.
	Name string
	// Role is how much the caller may do.
	Role methods.Role
	// Scope is the entities it may do this with.
	Scope Scope
	// Kind is the kind of process of the cluster, by its certificate; empty for callers.
	Kind tlsconf.Kind
}

// equal reports whether a caller is unchanged.
func (c *principal) equal(d *principal) bool {
	return c.Name == d.Name && c.Role == d.Role && c.Kind == d.Kind && slices.Equal(c.Scope, d.Scope) && c.Scope.All() == d.Scope.All()
}

// anonymous is everybody if there is no access file.
var anonymous = &principal{Name: "anonymous", Role: methods.Admin}

// session is a call of a caller.
type session struct {
	guard  *Guard
	method string
	caller *principal
	rule   methods.Rule
	// behalf is the caller that an app manager calls for; empty otherwise.
	behalf string
	// told is the caller that an app manager names to an open server, which cannot tell whether
	// that is true. It gives no right, and counts towards no bound.
	told string
	// scope is the caller's scope, or the scope that an app manager told.
	scope Scope
	// address is the address of a caller over HTTP or of a stream. It is for the audit
	// log, and tells unknown callers apart.
	address string
}

// CallerOf returns a name that tells callers apart: the caller's name in its credentials,
// or the address of its machine if no credentials are needed.
func CallerOf(ctx context.Context) string {
	s := sessionOf(ctx)
	switch {
	case s == nil:
		return hostOf(peerAddress(ctx))
	case s.behalf != "":
		return s.behalf
	case s.caller != anonymous:
		return s.caller.Name
	}
	return hostOf(cmp.Or(s.address, peerAddress(ctx)))
}

// Caller tells who a caller is, and what it may do.
type Caller struct {
	// Name is the name in the caller's credentials. If none are needed it is the name that an
	// app manager tells, if any, and proves nothing. For a caller of
	// an app manager it is the name that the app manager tells, and the other fields are the
	// app manager's.
	Name string
	Role methods.Role
	// Scope is the entities that the caller may touch.
	Scope Scope
	// Open: there is no access file, and everybody may do everything.
	Open bool
}

// Who returns the caller of a request that the guard has let in; the zero Caller, who may
// do nothing, for any other.
func Who(ctx context.Context) Caller {
	s := sessionOf(ctx)
	switch {
	case s == nil:
		return Caller{Scope: Scope{}}
	case s.behalf != "":
		return Caller{Name: s.behalf, Role: s.caller.Role, Scope: s.scope}
	case s.caller == anonymous:
		return Caller{Name: s.told, Role: anonymous.Role, Open: true}
	}
	return Caller{Name: s.caller.Name, Role: s.caller.Role, Scope: s.scope}
}

// hostOf returns an address without its port.
func hostOf(address string) string {
	if i := strings.LastIndexByte(address, ':'); i >= 0 {
		return address[:i]
	}
	return address
}

type sessionKey struct{}

func sessionOf(ctx context.Context) *session {
	s, _ := ctx.Value(sessionKey{}).(*session)
	return s
}

// ScopeOf returns the entities that the caller of a request may touch, for requests that
// do not name their entity. For a request that the guard has not let in, it returns an
// empty scope.
func ScopeOf(ctx context.Context) Scope {
	if s := sessionOf(ctx); s != nil {
		return s.scope
	}
	return Scope{}
}
