package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/ratelimit/rules"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// everything is the prefix that covers all entities.
const everything = "*"

// Scope is the entities a caller may touch: nil for all, or the entities covered by its
// prefixes.
type Scope []string

// newScope reads prefixes. A prefix is an entity's name, a name with a slash at its end,
// or everything. A name covers the entity and all entities below it; with the slash, only
// the entities below.
func newScope(prefixes []string) (Scope, error) {
	for _, p := range prefixes {
		if p == everything {
			continue
		}
		if err := name.Entity("prefix", strings.TrimSuffix(p, "/")); err != nil {
			return nil, err
		}
	}
	if slices.Contains(prefixes, everything) {
		return nil, nil
	}
	return slices.Clone(prefixes), nil
}

// All reports whether the scope covers every entity.
func (s Scope) All() bool { return s == nil }

// Covers reports whether the scope has an entity. A prefix never ends within a segment of
// a name: acme covers acme and acme/vm, and not acme2.
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

// coversAll reports whether the scope has every entity with a name that begins with
// beginning.
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

// permit returns nil if the session's caller may make a request, and the reason if not.
func (s *session) permit(request any) error {
	switch {
	case s.rule.Any:
		return nil
	case s.rule.Whole && !s.scope.All():
		return errWhole
	}
	return permit(s.scope, request)
}

// errWhole refuses a request about more than the caller's entities.
var errWhole = apierr.New(apierr.PermissionDenied, "only a caller of all entities may do this")

// permit returns nil if a caller with this scope may make a request about an entity, and
// the reason if not. It refuses requests that name no entity to callers of some entities.
func permit(scope Scope, request any) error {
	if scope.All() {
		return nil
	}
	covered := func(field, entity string) error {
		if scope.Covers(entity) {
			return nil
		}
		return beyond(scope, field, entity)
	}
	switch r := request.(type) {
	case *samyav1.BatchRequest:
		for i, op := range r.GetOperations() {
			if err := permitOperation(scope, op); err != nil {
				return apierr.From(err).Within(fmt.Sprintf("operations[%d].", i))
			}
		}
		return nil
	case *samyav1.CreateEntityRequest:
		if p := r.GetParent(); p != "" {
			if err := covered("parent", p); err != nil {
				return err
			}
		}
	case *samyav1.DeleteEntityRequest:
		if r.GetSubtree() {
			return apierr.New(apierr.PermissionDenied, "a subtree may have entities of others; only a caller of all entities may delete it at once")
		}
	case *samyav1.ListEntitiesRequest:
		if !scope.coversAll(r.GetPrefix()) {
			return apierr.New(apierr.PermissionDenied, "prefix: %.64q, must begin with one of %s", r.GetPrefix(), strings.Join(listable(scope), ", "))
		}
		return nil
	case *samyav1.ListLeasesRequest:
		if r.GetEntity() == "" {
			// The answer is cut down to the scope.
			return nil
		}
	}
	switch r := request.(type) {
	case interface{ GetDomain() string }:
		// A request to the rate limit service. Its entities stand below their domain.
		return covered("domain", rules.Above(r.GetDomain())+"/*")
	case interface{ GetEntity() string }:
		return covered("entity", r.GetEntity())
	case interface{ GetName() string }:
		return covered("name", r.GetName())
	}
	return errWhole
}

// permitOperation is permit for an operation of a batch or a stream.
func permitOperation(scope Scope, op *samyav1.Operation) error {
	switch op := op.GetOperation().(type) {
	case *samyav1.Operation_Acquire:
		return permit(scope, op.Acquire)
	case *samyav1.Operation_Release:
		return permit(scope, op.Release)
	}
	// There is no operation, and its reader refuses it.
	return nil
}

// beyond returns the error for an entity outside of a scope. It does not tell whether the
// entity exists.
func beyond(scope Scope, field, entity string) error {
	e := apierr.New(apierr.PermissionDenied, "%s: %.64q is none of this caller's, which are those of %s", field, entity, strings.Join(scope, ", "))
	e.Entity = entity
	return e
}

// listable returns the prefixes that a scope may list.
func listable(scope Scope) []string {
	all := make([]string, len(scope))
	for i, p := range scope {
		all[i] = strings.TrimSuffix(p, "/") + "/"
	}
	return all
}

// cut removes everything outside of a scope from an answer.
func cut(scope Scope, answer any) {
	if scope.All() {
		return
	}
	switch r := answer.(type) {
	case *samyav1.ListEntitiesResponse:
		r.Entities = slices.DeleteFunc(r.Entities, func(e *samyav1.Entity) bool { return !scope.Covers(e.GetName()) })
	case *samyav1.ListLeasesResponse:
		r.Leases = slices.DeleteFunc(r.Leases, func(l *samyav1.Lease) bool { return !scope.Covers(l.GetEntity()) })
	}
}

// weight returns how many operations a request counts as.
func weight(request any) int {
	switch r := request.(type) {
	case *samyav1.BatchRequest:
		return max(1, len(r.GetOperations()))
	case *samyav1.StreamRequest:
		return len(r.GetCalls())
	}
	return 1
}

// target returns the entity and the request id of a change, for the audit log.
func target(request any) (entity, requestID string) {
	switch r := request.(type) {
	case *samyav1.AddMemberRequest, *samyav1.DrainMemberRequest, *samyav1.RemoveMemberRequest,
		*samyav1.RescueMemberRequest: // their name is that of a site
	case interface{ GetName() string }:
		entity = r.GetName()
	}
	if r, ok := request.(interface{ GetRequestId() string }); ok {
		requestID = r.GetRequestId()
	}
	return entity, requestID
}
