package site_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// TestOneOfSeveralTellsOfItself: the answer lists the sites with their addresses.
// Settings are not complete when only one of two sites tells them. A site that has gone
// is listed as unreachable.
func TestOneOfSeveralTellsOfItself(t *testing.T) {
	c := sitetest.Start(t, []string{"eu", "us"}, nil)
	c.Create("vm", 10)
	ctx, admin := t.Context(), c.Admin("us")
	want := &samyav1.ListSitesResponse{Cluster: "test", AnsweredBy: "site/us", MembersVersion: 1, Sites: []*samyav1.Site{
		{Name: "eu", Region: "eu", Address: c.Site("eu").GRPCAddr(), HttpAddress: c.Site("eu").HTTPAddr(), Health: samyav1.SiteHealth_SITE_HEALTH_SERVING, OldestVersion: 1, NewestVersion: 2},
		{Name: "us", Region: "us", Address: c.Site("us").GRPCAddr(), HttpAddress: c.Site("us").HTTPAddr(), Health: samyav1.SiteHealth_SITE_HEALTH_SERVING, OldestVersion: 1, NewestVersion: 2},
	}}
	if got, err := admin.ListSites(ctx, &samyav1.ListSitesRequest{}); err != nil || !proto.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	mode, modeErr := admin.GetMode(ctx, &samyav1.GetModeRequest{})
	forecast, forecastErr := admin.GetForecast(ctx, &samyav1.GetForecastRequest{})
	set, setErr := admin.SetForecast(ctx, &samyav1.SetForecastRequest{Model: "none"})
	if err := errors.Join(modeErr, forecastErr, setErr); err != nil || mode.GetComplete() || forecast.GetComplete() || set.GetComplete() {
		t.Errorf("%v: %v, %v, %v", err, mode, forecast, set)
	}
	for title, age := range map[string]*durationpb.Duration{"negative": durationpb.New(-1), "of two signs": {Seconds: 1, Nanos: -1}} {
		_, err := c.Entities("us").GetEntity(ctx, &samyav1.GetEntityRequest{Name: "vm", Consistency: samyav1.Consistency_CONSISTENCY_BOUNDED, MaxAge: age})
		if e := apierr.FromGRPC(err); e == nil || len(e.Violations) != 1 || e.Violations[0].Field != "max_age" {
			t.Errorf("an age that is %s: %v", title, err)
		}
	}
	c.Stop("eu")
	want.Sites[0].Health = samyav1.SiteHealth_SITE_HEALTH_UNREACHABLE
	sitetest.Eventually(t, "eu has gone", func() error {
		got, err := admin.ListSites(ctx, &samyav1.ListSitesRequest{})
		if err != nil || !proto.Equal(got, want) {
			return fmt.Errorf("%v, %w; want %v", got, err, want)
		}
		return nil
	})
}

// TestHealthTellsTheClock: the answer to a health check tells the site's time.
func TestHealthTellsTheClock(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	var header metadata.MD
	began := time.Now()
	_, err := grpc_health_v1.NewHealthClient(c.Conn("us")).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header))
	if skew, known := health.Skew(header.Get(health.ClockHeader), began, 0); err != nil || !known || skew < -time.Second || skew > time.Minute {
		t.Errorf("%v: %v ahead, %v: %v", err, skew, known, header)
	}
}

// TestGauges: each quantity of a site has its own gauge.
func TestGauges(t *testing.T) {
	c := sitetest.Start(t, []string{"as", "eu", "us"}, nil)
	for i, e := range []string{"acme/vm", "acme/a", "acme/b", "acme/c", "acme/d"} {
		c.Create(e, []int64{9, 30, 0, 0, 0}[i])
	}
	c.Partition([]string{"us"}, []string{"as", "eu"})
	leaseAt(t, c, "l1", "acme/a", "me", 1)
	leaseAt(t, c, "l2", "acme/a", "me", 1)
	s := open(t.Context(), t, c)
	for i := range uint64(4) {
		s.call(i, waiter(fmt.Sprint("w", i)))
	}
	wantWaiting(t, c, 4)
	// An acquire has waited, and waits no longer.
	s.send(&samyav1.StreamRequest{Cancels: []uint64{0}})
	wantWaiting(t, c, 3)
	first := watchAt(t, c, "us", "acme/b", "")
	first.next()
	sitetest.Eventually(t, "the gauges", func() error {
		_, _, page := fetch(t, "GET", "http://"+c.Site("us").HTTPAddr()+"/metrics")
		for _, want := range []string{
			"samya_site_entities 5", "samya_site_entities_halted 0", "samya_site_waiting 3", "samya_site_waited_total 4", "samya_site_leases 2", "samya_site_watchers 1",
			"samya_site_requests_remembered 2", "samya_site_claims 0", "samya_site_changes_pending 0", "samya_site_surplus_tokens 0", "samya_site_written_off_tokens 0",
			"samya_site_mode_version 0", `samya_site_mode{mode="majority"} 1`, "samya_site_peers_connected 2", "samya_site_members 3", "samya_site_entities_behind 0", "samya_site_inbox 0",
		} {
			if !strings.Contains(page, "\n"+want+"\n") {
				return fmt.Errorf("no %s", want)
			}
		}
		return nil
	})
}
