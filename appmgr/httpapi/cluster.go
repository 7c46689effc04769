package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/inspection"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// listTime bounds a list of sites.
const listTime = 2 * time.Second

func (a *api) listSites(w http.ResponseWriter, r *http.Request, _ string) error {
	if _, err := query(r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), listTime)
	defer cancel()
	out, err := access.Call(ctx, &samyav1.ListSitesRequest{}, a.Service.ListSites)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, sitesJSON(out))
}

func (a *api) inspectSites(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.InspectSitesRequest{}
	if _, err := readQuery(r, in); err != nil {
		return err
	}
	out, err := access.Call(r.Context(), in, a.Service.InspectSites)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, inspection.Of(out))
}

// mode is the JSON shape of a decided mode; modeStatus adds the modes of the sites.
type mode struct {
	Protocol string `json:"protocol"`
	Version  uint64 `json:"version"`
}

type modeStatus struct {
	mode
	Complete bool       `json:"complete"`
	Sites    []siteMode `json:"sites"`
}

type siteMode struct {
	Site       string `json:"site"`
	Protocol   string `json:"protocol"`
	Version    uint64 `json:"version"`
	Configured string `json:"configured"`
	Known      bool   `json:"known"`
}

func (a *api) getMode(w http.ResponseWriter, r *http.Request, _ string) error {
	if _, err := query(r); err != nil {
		return err
	}
	out, err := access.Call(r.Context(), &samyav1.GetModeRequest{}, a.Service.GetMode)
	if err != nil {
		return err
	}
	status := modeStatus{
		mode: mode{out.GetMode().GetProtocol(), out.GetMode().GetVersion()}, Complete: out.GetComplete(), Sites: []siteMode{},
	}
	for _, s := range out.GetSites() {
		status.Sites = append(status.Sites, siteMode{s.GetSite(), s.GetProtocol(), s.GetVersion(), s.GetConfigured(), s.GetKnown()})
	}
	return writeJSON(w, http.StatusOK, status)
}

func (a *api) setMode(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.SetModeRequest{}
	if err := a.read(w, r, fieldsOf(in)); err != nil {
		return err
	}
	if in.GetProtocol() == "" {
		return apierr.Invalid("protocol", "missing")
	}
	out, err := access.Call(r.Context(), in, a.Service.SetMode)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, mode{out.GetMode().GetProtocol(), out.GetMode().GetVersion()})
}

// forecastStatus is the JSON shape of the models by which the sites forecast.
type forecastStatus struct {
	Complete bool           `json:"complete"`
	Sites    []siteForecast `json:"sites"`
}

type siteForecast struct {
	Site       string `json:"site"`
	Model      string `json:"model"`
	Configured string `json:"configured"`
	Known      bool   `json:"known"`
	Problem    string `json:"problem,omitempty"`
}

func writeForecasts(w http.ResponseWriter, complete bool, sites []*samyav1.SiteForecast) error {
	status := forecastStatus{Complete: complete, Sites: []siteForecast{}}
	for _, s := range sites {
		status.Sites = append(status.Sites, siteForecast{s.GetSite(), s.GetModel(), s.GetConfigured(), s.GetKnown(), s.GetProblem()})
	}
	return writeJSON(w, http.StatusOK, status)
}

func (a *api) getForecast(w http.ResponseWriter, r *http.Request, _ string) error {
	if _, err := query(r); err != nil {
		return err
	}
	out, err := access.Call(r.Context(), &samyav1.GetForecastRequest{}, a.Service.GetForecast)
	if err != nil {
		return err
	}
	return writeForecasts(w, out.GetComplete(), out.GetSites())
}

func (a *api) setForecast(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.SetForecastRequest{}
	if err := a.read(w, r, fieldsOf(in)); err != nil {
		return err
	}
	if in.GetModel() == "" {
		return apierr.Invalid("model", "missing")
	}
	out, err := access.Call(r.Context(), in, a.Service.SetForecast)
	if err != nil {
		return err
	}
	return writeForecasts(w, out.GetComplete(), out.GetSites())
}
