package site_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/kvpart/sched"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/partitions"
	"github.com/samya-db/samya/site/sitetest"
)

// told are the figures of the partitions of the tests' sites.
func told() partitions.Stats {
	return partitions.Stats{
		Partitions: []partitions.PartitionStats{{Entities: 3, Served: 70, Queued: 1}, {Entities: 2, Served: 40}},
		Served:     100, Cross: 10, Passed: 7, Imbalance: 1.25, Adaptive: true,
		Control: control.Stats{
			Sample: .5, Computed: 9, Applied: 5, Skipped: 4, Failed: 2, Moved: 33, LastCut: .03, LastCutTime: 12 * time.Millisecond,
		},
		Pause: sched.Pause{Count: 5, P50: 40 * time.Microsecond, P99: 90 * time.Microsecond, Max: 3 * time.Millisecond},
		Split: []partitions.SplitStats{{Name: "acme", Left: []core.Tokens{50, -1}, Served: 44}},
	}
}

func TestInspectAnswers(t *testing.T) {
	want := &samyav1.SiteInspection{
		Site: "us", Known: true,
		Partitions: []*samyav1.Partition{{Entities: 3, Operations: 70, Queued: 1}, {Entities: 2, Operations: 40}},
		Served:     100, Cross: 10, Passed: 7, Imbalance: 1.25,
		Repartitioning: &samyav1.Repartitioning{
			On: true, Computed: 9, Applied: 5, Skipped: 4, Failed: 2, Moved: 33, Tracking: .5, LastCut: .03,
			LastCutTime: durationpb.New(12 * time.Millisecond),
			Pause: &samyav1.SwitchPause{
				Count: 5, P50: durationpb.New(40 * time.Microsecond), P99: durationpb.New(90 * time.Microsecond), Max: durationpb.New(3 * time.Millisecond),
			},
		},
		Split: []*samyav1.SplitEntity{{Name: "acme", Left: []int64{50, -1}, Operations: 44}},
	}
	nothing := &samyav1.SiteInspection{Site: "us", Known: true, Repartitioning: &samyav1.Repartitioning{
		LastCutTime: durationpb.New(0),
		Pause:       &samyav1.SwitchPause{P50: durationpb.New(0), P99: durationpb.New(0), Max: durationpb.New(0)},
	}}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		what     string
		ctx      context.Context
		members  []core.SiteID
		stats    func() partitions.Stats
		named    string
		complete bool
		want     *samyav1.SiteInspection
		reason   apierr.Reason
	}{
		{"one site of two", t.Context(), []core.SiteID{"eu", "us"}, told, "", false, want, ""},
		{"one site of two, by name", t.Context(), []core.SiteID{"eu", "us"}, told, "us", true, want, ""},
		{"the only site", t.Context(), []core.SiteID{"us"}, told, "", true, want, ""},
		{"a site without partitions", t.Context(), []core.SiteID{"us"}, nil, "", true, nothing, ""},
		{"another site", t.Context(), []core.SiteID{"eu", "us"}, told, "eu", false, nil, apierr.InvalidField},
		{"no name of a site", t.Context(), []core.SiteID{"us"}, told, "U S", false, nil, apierr.InvalidField},
		{"too late", late, []core.SiteID{"us"}, told, "", false, nil, apierr.DeadlineExceeded},
	} {
		service, _ := site.Inspected(c.members, c.stats)
		got, err := service.InspectSites(c.ctx, &samyav1.InspectSitesRequest{Site: c.named})
		if c.reason != "" {
			if !errors.Is(err, c.reason) || got != nil {
				t.Errorf("%s: %v, %v", c.what, got, err)
			}
			continue
		}
		if err != nil || got.GetComplete() != c.complete || len(got.GetSites()) != 1 {
			t.Errorf("%s: %v, %v", c.what, got, err)
			continue
		}
		up := got.GetSites()[0].GetUp()
		if got.GetSites()[0].Up = nil; up == nil || !proto.Equal(got.GetSites()[0], c.want) {
			t.Errorf("%s: up %v, got\n%v\nwant\n%v", c.what, up, got.GetSites()[0], c.want)
		}
	}
}

// TestInspectServed: a site answers the call, and counts it as a call of the API.
func TestInspectServed(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	got, err := c.Admin("us").InspectSites(t.Context(), &samyav1.InspectSitesRequest{})
	if err != nil || !got.GetComplete() || len(got.GetSites()) != 1 || got.GetSites()[0].GetUp().AsDuration() <= 0 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := c.Admin("us").InspectSites(t.Context(), &samyav1.InspectSitesRequest{Site: "eu"}); !errors.Is(apierr.FromGRPC(err), apierr.InvalidField) {
		t.Errorf("another site's: %v", err)
	}
	_, _, page := fetch(t, "GET", "http://"+c.Site("us").HTTPAddr()+"/metrics")
	for _, want := range []string{
		`samya_site_requests_total{method="/samya.v1.ClusterService/InspectSites",reason="OK"} 1`,
		`samya_site_requests_total{method="/samya.v1.ClusterService/InspectSites",reason="INVALID_FIELD"} 1`,
		"# TYPE samya_site_partitions gauge", `samya_site_repartitions_total{outcome="skipped"} `,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
}

// scrapePartitions returns the lines of /metrics about partitions.
func scrapePartitions(t *testing.T, stats func() partitions.Stats) string {
	t.Helper()
	_, collector := site.Inspected([]core.SiteID{"us"}, stats)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if rec.Code != 200 {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	var lines []string
	for line := range strings.Lines(rec.Body.String()) {
		if !strings.HasPrefix(line, "# HELP") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func TestPartitionMetrics(t *testing.T) {
	const want = `# TYPE samya_site_partition_entities gauge
samya_site_partition_entities{partition="0"} 3
samya_site_partition_entities{partition="1"} 2
# TYPE samya_site_partition_imbalance gauge
samya_site_partition_imbalance 1.25
# TYPE samya_site_partition_operations_total counter
samya_site_partition_operations_total{partition="0"} 70
samya_site_partition_operations_total{partition="1"} 40
# TYPE samya_site_partition_queued gauge
samya_site_partition_queued{partition="0"} 1
samya_site_partition_queued{partition="1"} 0
# TYPE samya_site_partition_requests_total counter
samya_site_partition_requests_total{by="none"} 7
samya_site_partition_requests_total{by="one"} 90
samya_site_partition_requests_total{by="several"} 10
# TYPE samya_site_partitions gauge
samya_site_partitions 2
# TYPE samya_site_repartition_cut_share gauge
samya_site_repartition_cut_share 0.03
# TYPE samya_site_repartition_moved_total counter
samya_site_repartition_moved_total 33
# TYPE samya_site_repartition_pause_seconds gauge
samya_site_repartition_pause_seconds{percentile="100"} 0.003
samya_site_repartition_pause_seconds{percentile="50"} 4e-05
samya_site_repartition_pause_seconds{percentile="99"} 9e-05
# TYPE samya_site_repartition_pauses_total counter
samya_site_repartition_pauses_total 5
# TYPE samya_site_repartition_tracking_share gauge
samya_site_repartition_tracking_share 0.5
# TYPE samya_site_repartitions_total counter
samya_site_repartitions_total{outcome="applied"} 5
samya_site_repartitions_total{outcome="computed"} 9
samya_site_repartitions_total{outcome="failed"} 2
samya_site_repartitions_total{outcome="skipped"} 4
# TYPE samya_site_split_entities gauge
samya_site_split_entities 1
`
	if got := scrapePartitions(t, told); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestPartitionMetricsStayBounded: the series do not grow with the number of split
// entities. A site without partitions has series as well.
func TestPartitionMetricsStayBounded(t *testing.T) {
	full := func() partitions.Stats {
		st := told()
		st.Partitions = make([]partitions.PartitionStats, partitions.MaxCount)
		for range 500 {
			st.Split = append(st.Split, st.Split[0])
		}
		return st
	}
	// Besides the figures of each partition there are few.
	for what, c := range map[string]struct {
		stats func() partitions.Stats
		most  int
	}{"none": {nil, 30}, "as many as there may be": {full, 30 + 3*partitions.MaxCount}} {
		n := 0
		for line := range strings.Lines(scrapePartitions(t, c.stats)) {
			if !strings.HasPrefix(line, "#") {
				n++
			}
		}
		if n < 10 || n > c.most {
			t.Errorf("%s: %d series", what, n)
		}
	}
}
