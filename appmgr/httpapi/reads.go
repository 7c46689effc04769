package httpapi

import (
	"net/http"

	"github.com/samya-db/samya/appmgr/grpcapi"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

var readHandlers = map[string]handler{
	"GetEntity":   (*api).getEntity,
	"WatchEntity": (*api).watchEntity,
	"CutEntity":   byQuery((*grpcapi.Service).CutEntity, cutJSON),

	"GetEntityActivity": byQuery((*grpcapi.Service).GetEntityActivity, activityJSON),
	"GetEntityHistory":  byQuery((*grpcapi.Service).GetEntityHistory, historyJSON),
}

// consistencies are the consistencies of a read, by their names in the API.
var consistencies = map[string]samyav1.Consistency{
	"":        samyav1.Consistency_CONSISTENCY_UNSPECIFIED,
	"local":   samyav1.Consistency_CONSISTENCY_LOCAL,
	"bounded": samyav1.Consistency_CONSISTENCY_BOUNDED,
	"exact":   samyav1.Consistency_CONSISTENCY_EXACT,
}

func (a *api) getEntity(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.GetEntityRequest{Name: entity}
	q, err := readQuery(r, in, "consistency")
	if err != nil {
		return err
	}
	var known bool
	if in.Consistency, known = consistencies[q["consistency"]]; !known {
		return apierr.Invalid("consistency", "must be one of local, bounded, exact")
	}
	return answer(w, r, in, a.Service.GetEntity,
		func(out *samyav1.GetEntityResponse) entityStatus { return statusJSON(out.GetEntity(), out.GetUsage()) })
}
