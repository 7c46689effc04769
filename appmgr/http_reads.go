package appmgr

import (
	"net/http"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// consistencies are what a read may be content with.
var consistencies = map[string]samyav1.Consistency{
	"":        samyav1.Consistency_CONSISTENCY_UNSPECIFIED,
	"local":   samyav1.Consistency_CONSISTENCY_LOCAL,
	"bounded": samyav1.Consistency_CONSISTENCY_BOUNDED,
	"exact":   samyav1.Consistency_CONSISTENCY_EXACT,
}

func (a *api) getEntity(w http.ResponseWriter, r *http.Request, entity string) error {
	q, err := query(r, "consistency", "max_age")
	if err != nil {
		return err
	}
	in := &samyav1.GetEntityRequest{Name: entity}
	var known bool
	if in.Consistency, known = consistencies[q["consistency"]]; !known {
		return apierr.Invalid("consistency", "must be one of local, bounded, exact")
	}
	if s, given := q["max_age"]; given {
		if err := period("max_age", name.Age, &in.MaxAge)(s); err != nil {
			return apierr.FromName(err)
		}
	}
	out, err := a.service.GetEntity(r.Context(), in)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, statusJSON(out.GetEntity(), out.GetUsage()))
}
