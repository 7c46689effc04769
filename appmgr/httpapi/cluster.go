package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/samya-db/samya/appmgr/grpcapi"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/inspection"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

var clusterHandlers = map[string]handler{
	"ListSites":      (*api).listSites,
	"InspectSites":   byQuery((*grpcapi.Service).InspectSites, inspection.Of),
	"SurveySites":    byQuery((*grpcapi.Service).SurveySites, surveyJSON),
	"ListMembers":    byQuery((*grpcapi.Service).ListMembers, membersJSON),
	"WatchMembers":   (*api).watchMembers,
	"AddMember":      byBody((*grpcapi.Service).AddMember, changedMemberJSON),
	"DrainMember":    byBody((*grpcapi.Service).DrainMember, drainedJSON),
	"RemoveMember":   byQuery((*grpcapi.Service).RemoveMember, changedMemberJSON),
	"RecoverCluster": byBody((*grpcapi.Service).RecoverCluster, recoveryJSON),
	"RescueMember":   byBody((*grpcapi.Service).RescueMember, changedMemberJSON),
	"GetMode":        byQuery((*grpcapi.Service).GetMode, modesJSON),
	"SetMode":        (*api).setMode,
	"GetVersion":     byQuery((*grpcapi.Service).GetVersion, versionsJSON),
	"RaiseVersion":   byBody((*grpcapi.Service).RaiseVersion, raisedJSON),
	"GetForecast":    byQuery((*grpcapi.Service).GetForecast, forecastsJSON),
	"SetForecast":    (*api).setForecast,
}

// listTime bounds a list of sites.
const listTime = 2 * time.Second

func (a *api) listSites(w http.ResponseWriter, r *http.Request, _ string) error {
	ctx, cancel := context.WithTimeout(r.Context(), listTime)
	defer cancel()
	return byQuery((*grpcapi.Service).ListSites, sitesJSON)(a, w, r.WithContext(ctx), "")
}

func (a *api) setMode(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.SetModeRequest{}
	if err := a.read(w, r, fieldsOf(in)); err != nil {
		return err
	}
	if in.GetProtocol() == "" {
		return apierr.Invalid("protocol", "missing")
	}
	return answer(w, r, in, a.Service.SetMode, func(out *samyav1.SetModeResponse) mode { return modeJSON(out.GetMode()) })
}

func (a *api) setForecast(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.SetForecastRequest{}
	if err := a.read(w, r, fieldsOf(in)); err != nil {
		return err
	}
	if in.GetModel() == "" {
		return apierr.Invalid("model", "missing")
	}
	return answer(w, r, in, a.Service.SetForecast, forecastsJSON)
}
