package appmgr

import (
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// The JSON shapes of answers. Numbers are JSON numbers: all are within 2^53.

type entity struct {
	Name       string `json:"name"`
	Limit      int64  `json:"limit"`
	Generation uint64 `json:"generation"`
	Version    uint64 `json:"version"`
}

type entityStatus struct {
	entity
	Available int64   `json:"available"`
	Acquired  int64   `json:"acquired"`
	InTransit int64   `json:"in_transit"`
	Complete  bool    `json:"complete"`
	Shares    []share `json:"shares"`
}

type share struct {
	Site            string `json:"site"`
	Left            int64  `json:"left"`
	Offered         int64  `json:"offered"`
	Net             int64  `json:"net"`
	Waiting         int64  `json:"waiting"`
	Redistributions uint64 `json:"redistributions"`
	Transfers       uint64 `json:"transfers"`
	AgeMS           int64  `json:"age_ms"`
	Known           bool   `json:"known"`
}

type page struct {
	Entities      []entity `json:"entities"`
	NextPageToken string   `json:"next_page_token"`
}

type moved struct {
	Entity    string `json:"entity"`
	Tokens    int64  `json:"tokens"`
	RequestID string `json:"request_id"`
	Site      string `json:"site"`
	Left      int64  `json:"left"`
}

type sites struct {
	Cluster    string     `json:"cluster"`
	AnsweredBy string     `json:"answered_by"`
	Sites      []siteJSON `json:"sites"`
}

type siteJSON struct {
	Name        string   `json:"name"`
	Region      string   `json:"region"`
	Address     string   `json:"address"`
	Health      string   `json:"health"`
	RoundTripMS *float64 `json:"round_trip_ms"`
}

func entityJSON(e *samyav1.Entity) entity {
	return entity{Name: e.GetName(), Limit: e.GetLimit(), Generation: e.GetGeneration(), Version: e.GetVersion()}
}

func statusJSON(r *samyav1.GetEntityResponse) entityStatus {
	u := r.GetUsage()
	s := entityStatus{
		entity: entityJSON(r.GetEntity()), Available: u.GetAvailable(), Acquired: u.GetAcquired(),
		InTransit: u.GetInTransit(), Complete: u.GetComplete(), Shares: []share{},
	}
	for _, sh := range u.GetShares() {
		s.Shares = append(s.Shares, share{
			Site: sh.GetSite(), Left: sh.GetLeft(), Offered: sh.GetOffered(), Net: sh.GetNet(),
			Waiting: sh.GetWaiting(), Redistributions: sh.GetRedistributions(), Transfers: sh.GetTransfers(),
			AgeMS: sh.GetAge().AsDuration().Milliseconds(), Known: sh.GetKnown(),
		})
	}
	return s
}

func pageJSON(r *samyav1.ListEntitiesResponse) page {
	p := page{Entities: []entity{}, NextPageToken: r.GetNextPageToken()}
	for _, e := range r.GetEntities() {
		p.Entities = append(p.Entities, entityJSON(e))
	}
	return p
}

func sitesJSON(r *samyav1.ListSitesResponse) sites {
	out := sites{Cluster: r.GetCluster(), AnsweredBy: r.GetAnsweredBy(), Sites: []siteJSON{}}
	for _, s := range r.GetSites() {
		j := siteJSON{
			Name: s.GetName(), Region: s.GetRegion(), Address: s.GetAddress(),
			Health: strings.ToLower(strings.TrimPrefix(s.GetHealth().String(), "SITE_HEALTH_")),
		}
		if j.Health == "unspecified" {
			j.Health = "unknown"
		}
		if s.GetRoundTrip() != nil {
			j.RoundTripMS = new(float64(s.GetRoundTrip().AsDuration()) / float64(time.Millisecond))
		}
		out.Sites = append(out.Sites, j)
	}
	return out
}

// readMove reads the body of an acquire or a release; only an acquire waits.
func (a *api) readMove(w http.ResponseWriter, r *http.Request, tokens *int64, id, site *string, waits bool) (*durationpb.Duration, error) {
	var wait *time.Duration
	*tokens = -1
	fs := fields{
		"tokens":     whole("tokens", 1, name.MaxTokens, tokens),
		"request_id": text("request_id", id),
		"site":       text("site", site),
	}
	if waits {
		fs["wait"] = period("wait", &wait)
	}
	if err := a.read(w, r, fs); err != nil {
		return nil, err
	}
	if *tokens < 0 {
		return nil, apierr.Invalid("tokens", "missing")
	}
	if wait == nil {
		return nil, nil
	}
	return durationpb.New(*wait), nil
}
