package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/inspection"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

var clusterHandlers = map[string]handler{
	"ListSites":      (*api).listSites,
	"InspectSites":   (*api).inspectSites,
	"ListMembers":    (*api).listMembers,
	"WatchMembers":   (*api).watchMembers,
	"AddMember":      (*api).addMember,
	"DrainMember":    (*api).drainMember,
	"RemoveMember":   (*api).removeMember,
	"RecoverCluster": (*api).recoverCluster,
	"RescueMember":   (*api).rescueMember,
	"GetMode":        (*api).getMode,
	"SetMode":        (*api).setMode,
	"GetVersion":     (*api).getVersion,
	"RaiseVersion":   (*api).raiseVersion,
	"GetForecast":    (*api).getForecast,
	"SetForecast":    (*api).setForecast,
}

// listTime bounds a list of sites.
const listTime = 2 * time.Second

func (a *api) listSites(w http.ResponseWriter, r *http.Request, _ string) error {
	ctx, cancel := context.WithTimeout(r.Context(), listTime)
	defer cancel()
	return find(w, r.WithContext(ctx), &samyav1.ListSitesRequest{}, a.Service.ListSites, sitesJSON)
}

func (a *api) listMembers(w http.ResponseWriter, r *http.Request, _ string) error {
	return find(w, r, &samyav1.ListMembersRequest{}, a.Service.ListMembers, membersJSON)
}

func (a *api) addMember(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.AddMemberRequest{}
	if err := a.read(w, r, fieldsOf(in)); err != nil {
		return err
	}
	return answer(w, r, http.StatusOK, in, a.Service.AddMember, changedMemberJSON)
}

func (a *api) drainMember(w http.ResponseWriter, r *http.Request, site string) error {
	in := &samyav1.DrainMemberRequest{Name: site}
	if err := a.read(w, r, fieldsOf(in)); err != nil {
		return err
	}
	return answer(w, r, http.StatusOK, in, a.Service.DrainMember, changedMemberJSON)
}

func (a *api) removeMember(w http.ResponseWriter, r *http.Request, site string) error {
	return find(w, r, &samyav1.RemoveMemberRequest{Name: site}, a.Service.RemoveMember, changedMemberJSON)
}

func (a *api) recoverCluster(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.RecoverClusterRequest{}
	if err := a.read(w, r, fieldsOf(in)); err != nil {
		return err
	}
	return answer(w, r, http.StatusOK, in, a.Service.RecoverCluster, func(out *samyav1.RecoverClusterResponse) recovery {
		return recovery{Sites: out.GetSites()}
	})
}

func (a *api) rescueMember(w http.ResponseWriter, r *http.Request, site string) error {
	in := &samyav1.RescueMemberRequest{Name: site}
	if err := a.read(w, r, fieldsOf(in)); err != nil {
		return err
	}
	return answer(w, r, http.StatusOK, in, a.Service.RescueMember, changedMemberJSON)
}

func (a *api) inspectSites(w http.ResponseWriter, r *http.Request, _ string) error {
	return find(w, r, &samyav1.InspectSitesRequest{}, a.Service.InspectSites, inspection.Of)
}

func (a *api) getMode(w http.ResponseWriter, r *http.Request, _ string) error {
	return find(w, r, &samyav1.GetModeRequest{}, a.Service.GetMode, modesJSON)
}

func (a *api) setMode(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.SetModeRequest{}
	if err := a.read(w, r, fieldsOf(in)); err != nil {
		return err
	}
	if in.GetProtocol() == "" {
		return apierr.Invalid("protocol", "missing")
	}
	return answer(w, r, http.StatusOK, in, a.Service.SetMode, func(out *samyav1.SetModeResponse) mode { return modeJSON(out.GetMode()) })
}

func (a *api) getVersion(w http.ResponseWriter, r *http.Request, _ string) error {
	return find(w, r, &samyav1.GetVersionRequest{}, a.Service.GetVersion, versionsJSON)
}

func (a *api) raiseVersion(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.RaiseVersionRequest{}
	if err := a.read(w, r, fieldsOf(in)); err != nil {
		return err
	}
	return answer(w, r, http.StatusOK, in, a.Service.RaiseVersion, func(out *samyav1.RaiseVersionResponse) clusterVersion {
		return clusterVersion{Version: out.GetVersion()}
	})
}

func (a *api) getForecast(w http.ResponseWriter, r *http.Request, _ string) error {
	return find(w, r, &samyav1.GetForecastRequest{}, a.Service.GetForecast, forecastsJSON)
}

func (a *api) setForecast(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.SetForecastRequest{}
	if err := a.read(w, r, fieldsOf(in)); err != nil {
		return err
	}
	if in.GetModel() == "" {
		return apierr.Invalid("model", "missing")
	}
	return answer(w, r, http.StatusOK, in, a.Service.SetForecast, forecastsJSON)
}
