package httpapi

import (
	"strings"
	"time"

	shape "github.com/samya-db/samya/internal/httpapi"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// The JSON shapes of answers: shapes of the client, and here shapes with figures that may be
// null, or that are written without reflection. Numbers are JSON numbers: all are within
// 2^53.

type entityStatus struct {
	shape.Entity
	Available int64 `json:"available"`
	Acquired  int64 `json:"acquired"`
	// InTransit is null unless the read is complete: the rest of the limit may be
	// anywhere.
	InTransit *int64 `json:"in_transit"`
	Complete  bool   `json:"complete"`
	// Consistent says that an exact read's shares are a consistent cut.
	Consistent  bool    `json:"consistent"`
	Debt        int64   `json:"debt"`
	MayExceedBy int64   `json:"may_exceed_by"`
	Surplus     int64   `json:"surplus"`
	Shares      []share `json:"shares"`
}

// share has null figures for a site that is not known.
type share struct {
	Site            string  `json:"site"`
	Left            *int64  `json:"left"`
	Offered         *int64  `json:"offered"`
	Net             *int64  `json:"net"`
	Waiting         *int64  `json:"waiting"`
	Redistributions *uint64 `json:"redistributions"`
	Transfers       *uint64 `json:"transfers"`
	AgeMS           *int64  `json:"age_ms"`
	Known           bool    `json:"known"`
}

type moved struct {
	Entity    string       `json:"entity"`
	Tokens    int64        `json:"tokens"`
	RequestID string       `json:"request_id"`
	Site      string       `json:"site"`
	Left      int64        `json:"left"`
	Lease     *shape.Lease `json:"lease,omitempty"`
	Parked    bool         `json:"parked,omitempty"`
}

func entityJSON(e *samyav1.Entity) shape.Entity {
	return shape.Entity{
		Name: e.GetName(), Limit: e.GetLimit(), Generation: e.GetGeneration(), Version: e.GetVersion(),
		Parent: e.GetParent(), Children: int(e.GetChildren()),
	}
}

func statusJSON(e *samyav1.Entity, u *samyav1.Usage) entityStatus {
	s := entityStatus{
		Entity: entityJSON(e), Available: u.GetAvailable(), Acquired: u.GetAcquired(),
		Complete: u.GetComplete(), Consistent: u.GetConsistent(),
		Debt: u.GetDebt(), MayExceedBy: u.GetMayExceedBy(), Surplus: u.GetSurplus(), Shares: []share{},
	}
	if u.GetComplete() {
		s.InTransit = new(u.GetInTransit())
	}
	for _, sh := range u.GetShares() {
		if !sh.GetKnown() {
			s.Shares = append(s.Shares, share{Site: sh.GetSite()})
			continue
		}
		s.Shares = append(s.Shares, share{
			Site: sh.GetSite(), Left: new(sh.GetLeft()), Offered: new(sh.GetOffered()), Net: new(sh.GetNet()),
			Waiting: new(sh.GetWaiting()), Redistributions: new(sh.GetRedistributions()), Transfers: new(sh.GetTransfers()),
			AgeMS: new(sh.GetAge().AsDuration().Milliseconds()), Known: true,
		})
	}
	return s
}

func pageJSON(r *samyav1.ListEntitiesResponse) shape.Page {
	p := shape.Page{Entities: []shape.Entity{}, NextPageToken: r.GetNextPageToken()}
	for _, e := range r.GetEntities() {
		p.Entities = append(p.Entities, entityJSON(e))
	}
	return p
}

func sitesJSON(r *samyav1.ListSitesResponse) shape.Sites {
	out := shape.Sites{Cluster: r.GetCluster(), AnsweredBy: r.GetAnsweredBy(), Sites: []shape.Site{}}
	for _, s := range r.GetSites() {
		j := shape.Site{
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

func leaseOf(l *samyav1.Lease) *shape.Lease {
	if l == nil {
		return nil
	}
	return &shape.Lease{
		Name: l.GetName(), Entity: l.GetEntity(), Tokens: l.GetTokens(),
		RemainingMS: l.GetRemaining().AsDuration().Milliseconds(), Holder: l.GetHolder(),
	}
}

func leasesJSON(r *samyav1.ListLeasesResponse) shape.LeasePage {
	p := shape.LeasePage{Leases: []shape.Lease{}, NextPageToken: r.GetNextPageToken(), Missing: append([]string{}, r.GetMissing()...)}
	for _, l := range r.GetLeases() {
		p.Leases = append(p.Leases, *leaseOf(l))
	}
	return p
}

func modeJSON(m *samyav1.Mode) shape.Mode {
	return shape.Mode{Protocol: m.GetProtocol(), Version: m.GetVersion()}
}

func modesJSON(r *samyav1.GetModeResponse) shape.ModeStatus {
	out := shape.ModeStatus{Mode: modeJSON(r.GetMode()), Complete: r.GetComplete(), Sites: []shape.SiteMode{}}
	for _, s := range r.GetSites() {
		out.Sites = append(out.Sites, shape.SiteMode{
			Site: s.GetSite(), Protocol: s.GetProtocol(), Version: s.GetVersion(), Configured: s.GetConfigured(), Known: s.GetKnown(),
		})
	}
	return out
}

// forecasts is the answer to GetForecast or SetForecast.
type forecasts interface {
	GetComplete() bool
	GetSites() []*samyav1.SiteForecast
}

func forecastsJSON[F forecasts](r F) shape.ForecastStatus {
	out := shape.ForecastStatus{Complete: r.GetComplete(), Sites: []shape.SiteForecast{}}
	for _, s := range r.GetSites() {
		out.Sites = append(out.Sites, shape.SiteForecast{
			Site: s.GetSite(), Model: s.GetModel(), Configured: s.GetConfigured(), Known: s.GetKnown(), Problem: s.GetProblem(),
		})
	}
	return out
}
