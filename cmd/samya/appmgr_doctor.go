package main

import (
	"context"
	"net/http"
	"time"

	"github.com/samya-db/samya/appmgr"
	"github.com/samya-db/samya/doctor"
	"github.com/samya-db/samya/doctor/fleet"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/tlsconf"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// diagnosed is the answer of an app manager's doctor.
type diagnosed struct {
	doctor.Report
	// AtMS is the time of the last look, in milliseconds since the Unix epoch.
	AtMS int64 `json:"at_ms"`
}

// doctorOf makes the doctor of an app manager: it reads the metrics of the sites, with the app
// manager's certificate, and the app manager's own.
func doctorOf(cfg *appmgr.Config) func(appmgr.Sight) appmgr.Doctor {
	return func(see appmgr.Sight) appmgr.Doctor {
		own := &fleet.Own{Name: cfg.Name, Region: cfg.Region, Instance: see.Address, Metrics: see.Metrics, Sites: func(ctx context.Context) (httpapi.Sites, error) {
			list, err := see.Sites(ctx)
			return sitesOf(list), err
		}}
		rounds := fleet.NewRounds(&fleet.Fleet{Own: own, ConnectSite: func(name, addr string) (string, http.RoundTripper, error) {
			return siteTransport(cfg.TLS, name, addr)
		}})
		return func(ctx context.Context) (any, error) {
			report, at, err := rounds.Report(ctx)
			return diagnosed{report, at.UnixMilli()}, err
		}
	}
}

// sitesOf are the sites of a list, as far as a doctor asks.
func sitesOf(list *samyav1.ListSitesResponse) httpapi.Sites {
	all := httpapi.Sites{Cluster: list.GetCluster(), AnsweredBy: list.GetAnsweredBy()}
	for _, s := range list.GetSites() {
		health := "serving"
		if s.GetHealth() == samyav1.SiteHealth_SITE_HEALTH_UNREACHABLE {
			health = "unreachable"
		}
		all.Sites = append(all.Sites, httpapi.Site{Name: s.GetName(), Region: s.GetRegion(), Address: s.GetAddress(), HTTPAddress: s.GetHttpAddress(), Health: health})
	}
	return all
}

// siteTransport is the way to a site's metrics. With TLS only the site of the name is taken
// for it.
func siteTransport(store *tlsconf.Store, name, addr string) (string, http.RoundTripper, error) {
	if store == nil {
		return "http://" + addr, nil, nil
	}
	return "https://" + addr, &http.Transport{
		TLSClientConfig: store.Client(tlsconf.Identity{Kind: tlsconf.Site, Name: name}), DisableKeepAlives: true, TLSHandshakeTimeout: 5 * time.Second,
	}, nil
}
