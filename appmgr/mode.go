package appmgr

import (
	"context"
	"errors"
	"net/http"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// GetMode implements samyav1.ClusterServiceServer: it asks all member sites for the mode
// they use. Mode in the answer has the highest version of all.
func (s *service) GetMode(ctx context.Context, in *samyav1.GetModeRequest) (*samyav1.GetModeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	members, err := s.router.membersNow(ctx)
	if err != nil {
		return nil, err
	}
	answers := make([]*samyav1.GetModeResponse, len(members))
	errs := s.everywhere(members, func(i int, site string) error {
		answers[i] = &samyav1.GetModeResponse{}
		return s.at(ctx, site, call{method: samyav1.ClusterService_GetMode_FullMethodName, req: in, resp: answers[i], read: true})
	})
	out := &samyav1.GetModeResponse{Complete: true}
	for i, m := range members {
		if errs[i] != nil {
			out.Complete = false
			out.Sites = append(out.Sites, &samyav1.SiteMode{Site: m.GetName()})
			continue
		}
		if mode := answers[i].GetMode(); out.GetMode() == nil || mode.GetVersion() > out.GetMode().GetVersion() {
			out.Mode = mode
		}
		out.Sites = append(out.Sites, answers[i].GetSites()...)
	}
	if out.GetMode() == nil {
		return nil, unreachable("")
	}
	return out, nil
}

// SetMode implements samyav1.ClusterServiceServer.
func (s *service) SetMode(ctx context.Context, in *samyav1.SetModeRequest) (*samyav1.SetModeResponse, error) {
	if err := errors.Join(
		name.Mode("protocol", in.GetProtocol()), version("expected_version", in.GetExpectedVersion()),
		requestID(in.GetRequestId()),
	); err != nil {
		return nil, apierr.FromName(err)
	}
	id := s.id(in.GetRequestId())
	req := &samyav1.SetModeRequest{Protocol: in.GetProtocol(), ExpectedVersion: in.GetExpectedVersion(), RequestId: id}
	resp := &samyav1.SetModeResponse{}
	return answer(resp, s.admin(ctx, call{
		method: samyav1.ClusterService_SetMode_FullMethodName, req: req, resp: resp, requestID: id,
	}))
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
	out, err := access.Call(r.Context(), &samyav1.GetModeRequest{}, a.service.GetMode)
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
	var expected int64
	if err := a.read(w, r, fields{
		"protocol":         text("protocol", &in.Protocol),
		"expected_version": whole("expected_version", 0, maxVersion, &expected),
		"request_id":       text("request_id", &in.RequestId),
	}); err != nil {
		return err
	}
	if in.GetProtocol() == "" {
		return apierr.Invalid("protocol", "missing")
	}
	in.ExpectedVersion = uint64(expected)
	out, err := access.Call(r.Context(), in, a.service.SetMode)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, mode{out.GetMode().GetProtocol(), out.GetMode().GetVersion()})
}
