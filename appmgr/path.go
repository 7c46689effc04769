package appmgr

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
)

// resource is a resource named by a path.
type resource uint8

const (
	resEntities resource = iota + 1
	resEntity
	resAcquire
	resRelease
	resWatch
	resMove
	resBatch
	resLeases
	resRenew
	resCommit
	resVoid
	resSites
	resInspect
	resMode
	resForecast
	resOpenAPIYAML
	resOpenAPIJSON
	resLive
	resReady
	resMetrics
)

// The verbs after an entity's name.
var verbs = map[string]resource{"acquire": resAcquire, "release": resRelease, "watch": resWatch, "move": resMove}

const entitiesPath = "/v1/entities"

// parsePath returns the resource that an escaped path names, and its entity, if any.
// Names hold slashes and no colon, so the last colon parts the name from the verb; both
// may be percent-encoded. Nothing is cleaned or redirected: "//" and ".." are bad names.
func parsePath(escaped string) (res resource, entity string, err error) {
	switch escaped {
	case "/v1/sites":
		return resSites, "", nil
	case "/v1/sites:inspect":
		return resInspect, "", nil
	case "/v1/batch":
		return resBatch, "", nil
	case "/v1/leases":
		return resLeases, "", nil
	case "/v1/leases:renew":
		return resRenew, "", nil
	case "/v1/leases:commit":
		return resCommit, "", nil
	case "/v1/leases:void":
		return resVoid, "", nil
	case "/v1/mode":
		return resMode, "", nil
	case "/v1/forecast":
		return resForecast, "", nil
	case "/v1/openapi.yaml":
		return resOpenAPIYAML, "", nil
	case "/v1/openapi.json":
		return resOpenAPIJSON, "", nil
	case "/livez":
		return resLive, "", nil
	case "/readyz":
		return resReady, "", nil
	case "/metrics":
		return resMetrics, "", nil
	case entitiesPath:
		return resEntities, "", nil
	}
	rest, ok := strings.CutPrefix(escaped, entitiesPath+"/")
	if !ok {
		return 0, "", apierr.New(apierr.RouteNotFound, "no resource %.128q", escaped)
	}
	entity, err = url.PathUnescape(rest)
	if err != nil {
		return 0, "", apierr.Invalid("name", "bad percent-encoding")
	}
	res = resEntity
	if i := strings.LastIndexByte(entity, ':'); i >= 0 {
		verb := entity[i+1:]
		entity = entity[:i]
		if res, ok = verbs[verb]; !ok {
			return 0, "", apierr.New(apierr.RouteNotFound, "no verb %.64q; there are acquire, move, release and watch", verb)
		}
	}
	if err := name.Entity("name", entity); err != nil {
		return 0, "", fmt.Errorf("path: %w", apierr.FromName(err))
	}
	return res, entity, nil
}
