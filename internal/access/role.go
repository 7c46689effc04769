package access

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/tlsconf"
)

// Role is how much a caller may do. Each includes those before it.
type Role uint8

// The roles.
const (
	// Nobody may do what anybody may: ask whether a process is healthy.
	Nobody Role = iota
	// Viewer reads.
	Viewer
	// Client acquires and releases tokens.
	Client
	// Operator creates, changes, moves and deletes entities.
	Operator
	// Admin changes how the cluster works.
	Admin
)

var roleNames = []string{"nobody", "viewer", "client", "operator", "admin"}

// String returns the role in lower case.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return "unknown"
}

// ParseRole reads viewer, client, operator or admin.
func ParseRole(s string) (Role, error) {
	if i := slices.Index(roleNames, s); i > 0 {
		return Role(i), nil
	}
	return Nobody, fmt.Errorf("role %.32q, must be %s", s, strings.Join(roleNames[1:], ", "))
}

// Everything is the prefix that covers all entities.
const Everything = "*"

// Scope is which entities a caller may touch: nil for all, or those that its prefixes
// cover.
type Scope []string

// newScope reads prefixes: each an entity's name, which covers it and what is below
// it; such a name with a slash at its end, which covers what is below it alone; or
// Everything.
func newScope(prefixes []string) (Scope, error) {
	for _, p := range prefixes {
		if p == Everything {
			continue
		}
		if err := name.Entity("prefix", strings.TrimSuffix(p, "/")); err != nil {
			return nil, err
		}
	}
	if slices.Contains(prefixes, Everything) {
		return nil, nil
	}
	return slices.Clone(prefixes), nil
}

// All reports whether the scope covers every entity.
func (s Scope) All() bool { return s == nil }

// Covers reports whether the scope has an entity. A prefix never ends within a segment
// of a name: acme covers acme and acme/vm, and not acme2.
func (s Scope) Covers(entity string) bool {
	if s == nil {
		return true
	}
	for _, p := range s {
		if dir, below := strings.CutSuffix(p, "/"); below {
			if len(entity) > len(p) && strings.HasPrefix(entity, p) {
				return true
			}
		} else if rest, ok := strings.CutPrefix(entity, dir); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// coversAll reports whether the scope has every entity whose name begins so.
func (s Scope) coversAll(beginning string) bool {
	if s == nil {
		return true
	}
	for _, p := range s {
		if strings.HasPrefix(beginning, strings.TrimSuffix(p, "/")+"/") {
			return true
		}
	}
	return false
}

// Caller is who makes a call.
type Caller struct {
	// Name is that of the access file; issuer and subject of a JWT; kind and name of
	// a certificate of the cluster's own.
	Name string
	// Role is how much it may do.
	Role Role
	// Scope is with which entities.
	Scope Scope
	// Kind is what of the cluster it is, by its certificate; empty for callers.
	Kind tlsconf.Kind
}

// equal reports whether a caller is as it was.
func (c *Caller) equal(d *Caller) bool {
	return c.Name == d.Name && c.Role == d.Role && c.Kind == d.Kind && slices.Equal(c.Scope, d.Scope) && c.Scope.All() == d.Scope.All()
}

// anonymous is everybody where there is no access file.
var anonymous = &Caller{Name: "anonymous", Role: Admin}

// session is a call of a caller.
type session struct {
	guard  *Guard
	method string
	caller *Caller
	rule   Rule
	// behalf is whom an app manager calls for; empty otherwise.
	behalf string
	// scope is that of the caller, or the one that an app manager told.
	scope Scope
	// address is where a caller over HTTP, or of a stream, calls from: for the audit log
	// and to tell callers apart that nobody knows.
	address string
}

// CallerOf names who makes a request, to tell callers apart: by what they have shown,
// and by the address of their machine if nobody need show anything.
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

// hostOf is an address without its port.
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

// ScopeOf returns which entities the caller of a request may touch, for requests that
// do not name the entity that they touch. A request that nobody has let in may touch
// none.
func ScopeOf(ctx context.Context) Scope {
	if s := sessionOf(ctx); s != nil {
		return s.scope
	}
	return Scope{}
}
