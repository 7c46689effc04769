package httpapi

import (
	"net/http"

	"github.com/samya-db/samya/internal/apierr"
)

func (a *api) doctor(w http.ResponseWriter, r *http.Request, _ string) error {
	if _, err := query(r); err != nil {
		return err
	}
	if a.Doctor == nil {
		return apierr.New(apierr.RouteNotFound, "this app manager has no doctor")
	}
	report, err := a.Doctor(r.Context())
	if err != nil {
		if r.Context().Err() != nil {
			return apierr.Ended(r.Context().Err())
		}
		return apierr.Wrap(apierr.Internal, err)
	}
	return writeJSON(w, http.StatusOK, report)
}
