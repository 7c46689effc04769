package site_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	reflectv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

func TestHealthService(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	client := grpc_health_v1.NewHealthClient(c.Conn("us"))
	resp, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	// A site serves once its core has said so, which is soon after it listens.
	for until := time.Now().Add(10 * time.Second); err == nil && resp.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING && time.Now().Before(until); {
		resp, err = client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	}
	if err != nil || resp.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("the site: %v, %v", resp, err)
	}
	if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "nothing"}); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown service: %v", err)
	}
	for _, name := range []string{
		"samya.v1.TokenService", "samya.v1.EntityService", "samya.v1.ClusterService", "samya.v1.SiteService", "samya.peer.v1.PeerService", "grpc.health.v1.Health",
	} {
		resp, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil || resp.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%s: %v, %v", name, resp, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, want := range map[string]grpc_health_v1.HealthCheckResponse_ServingStatus{
		"samya.v1.TokenService": grpc_health_v1.HealthCheckResponse_SERVING, "nothing": grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN,
	} {
		watch, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := watch.Recv(); err != nil || resp.GetStatus() != want {
			t.Errorf("a watch of %s: %v, %v", name, resp, err)
		}
	}
}

// TestReflection: grpcurl and its like find the services without the files, by
// either version of the protocol.
func TestReflection(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	want := []string{"samya.v1.TokenService", "samya.v1.EntityService", "samya.v1.ClusterService", "grpc.health.v1.Health"}
	listed := map[string]func(context.Context) ([]string, error){
		"v1": func(ctx context.Context) ([]string, error) {
			stream, err := reflectv1.NewServerReflectionClient(c.Conn("us")).ServerReflectionInfo(ctx)
			if err != nil {
				return nil, err
			}
			if err := stream.Send(&reflectv1.ServerReflectionRequest{
				MessageRequest: &reflectv1.ServerReflectionRequest_ListServices{},
			}); err != nil {
				return nil, err
			}
			resp, err := stream.Recv()
			var names []string
			for _, s := range resp.GetListServicesResponse().GetService() {
				names = append(names, s.GetName())
			}
			return names, err
		},
		"v1alpha": func(ctx context.Context) ([]string, error) {
			// The deprecated version, for older tools.
			stream, err := reflectv1alpha.NewServerReflectionClient(c.Conn("us")).ServerReflectionInfo(ctx)
			if err != nil {
				return nil, err
			}
			if err := stream.Send(&reflectv1alpha.ServerReflectionRequest{ //nolint:staticcheck // see above
				MessageRequest: &reflectv1alpha.ServerReflectionRequest_ListServices{},
			}); err != nil {
				return nil, err
			}
			resp, err := stream.Recv()
			var names []string
			for _, s := range resp.GetListServicesResponse().GetService() { //nolint:staticcheck // see above
				names = append(names, s.GetName()) //nolint:staticcheck // see above
			}
			return names, err
		},
	}
	for version, list := range listed {
		ctx, cancel := context.WithCancel(t.Context())
		names, err := list(ctx)
		cancel()
		if err != nil {
			t.Errorf("%s: %v", version, err)
		}
		for _, w := range want {
			if !slices.Contains(names, w) {
				t.Errorf("%s lists %v, without %s", version, names, w)
			}
		}
	}
}

func fetch(t *testing.T, method, url string) (code int, header http.Header, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func TestHTTPEndpoints(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	base := "http://" + c.Site("us").HTTPAddr()
	for _, tc := range []struct {
		method, path string
		code         int
		mime, body   string
	}{
		{http.MethodGet, "/livez", 200, "text/plain; charset=utf-8", "ok\n"},
		{http.MethodGet, "/readyz", 200, "text/plain; charset=utf-8", "ok\n"},
		{http.MethodHead, "/readyz", 200, "text/plain; charset=utf-8", ""},
		{http.MethodGet, "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8", "samya_site_entities 0\n"},
		{http.MethodPost, "/livez", 405, "text/plain; charset=utf-8", "Method Not Allowed\n"},
		{http.MethodGet, "/", 404, "text/plain; charset=utf-8", "404 page not found\n"},
		{http.MethodGet, "/debug/pprof/", 404, "text/plain; charset=utf-8", "404 page not found\n"},
	} {
		code, header, body := fetch(t, tc.method, base+tc.path)
		if code != tc.code || !strings.HasPrefix(header.Get("Content-Type"), tc.mime) || !strings.Contains(body, tc.body) {
			t.Errorf("%s %s: %d %s %.100q", tc.method, tc.path, code, header.Get("Content-Type"), body)
		}
	}
}

// TestReadyOnlyWhileServing: a site that has not begun to handle requests says so.
func TestReadyOnlyWhileServing(t *testing.T) {
	s, err := site.New(goodConfig(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	rec := s.Readyz(t.Context())
	if rec.Code != http.StatusServiceUnavailable || !strings.HasPrefix(rec.Body.String(), "not ready: ") {
		t.Errorf("before Run: %d %q", rec.Code, rec.Body)
	}
}

// series is a line of the exposition format: name, labels, value.
var (
	series = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? \S+$`)
	label  = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
)

// TestMetricsStayBounded: the series of a site are made of a known few labels and values,
// however many entities and ids its clients use.
func TestMetricsStayBounded(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	c.Create("warm/up", 5)
	traffic(t, c, "warm/up")
	before := scrape(t, c)
	for i := range 200 {
		entity := fmt.Sprintf("acme/e%d", i)
		if _, err := c.Entities("us").CreateEntity(t.Context(), &samyav1.CreateEntityRequest{Name: entity, Limit: 5}); err != nil {
			t.Fatal(err)
		}
		traffic(t, c, entity)
	}
	after := scrape(t, c)
	for s := range after {
		if !before[s] {
			t.Errorf("new series after 200 entities: %s", s)
		}
	}
	if len(after) < 50 {
		t.Errorf("%d series; the test does not see them", len(after))
	}
}

// traffic makes every kind of request about an entity, done and refused.
func traffic(t *testing.T, c *sitetest.Cluster, entity string) {
	t.Helper()
	tokens, entities, ctx := c.Tokens("us"), c.Entities("us"), t.Context()
	id := "id-" + strings.ReplaceAll(entity, "/", "-")
	for _, r := range []*samyav1.AcquireRequest{
		{Entity: entity, Tokens: 1, RequestId: id},
		{Entity: entity, Tokens: 2, RequestId: id},
		{Entity: entity, Tokens: 100, Wait: durationpb.New(0)},
		{Entity: entity, Tokens: -1},
		{Entity: "no/" + entity, Tokens: 1},
	} {
		if _, err := tokens.Acquire(ctx, r); err != nil && apierr.FromGRPC(err).Reason == apierr.Internal {
			t.Fatal(err)
		}
	}
	_, releaseErr := tokens.Release(ctx, &samyav1.ReleaseRequest{Entity: entity, Tokens: 1})
	_, getErr := entities.GetEntity(ctx, &samyav1.GetEntityRequest{Name: entity})
	_, listErr := entities.ListEntities(ctx, &samyav1.ListEntitiesRequest{Prefix: entity})
	_, updateErr := entities.UpdateEntity(ctx, &samyav1.UpdateEntityRequest{Name: entity, Limit: 6})
	for _, err := range []error{releaseErr, getErr, listErr, updateErr} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// scrape returns the site's own series, without their values, and checks that their
// labels are known.
func scrape(t *testing.T, c *sitetest.Cluster) map[string]bool {
	t.Helper()
	known := map[string]*regexp.Regexp{
		"method":      regexp.MustCompile(`^/(samya\.v1|grpc\.health\.v1)\.[A-Za-z]+/[A-Za-z]+$`),
		"reason":      regexp.MustCompile(`^[A-Z_]+$`),
		"outcome":     regexp.MustCompile(`^(applied|no_quorum|no_tokens|transferred|nothing_transferred|begun|found|computed|skipped|done|failed|unwritten)$`),
		"trigger":     regexp.MustCompile(`^(reactive|proactive|ahead|drought|limit|debt|lent)$`),
		"event":       regexp.MustCompile(`^(granted|renewed|committed|expired|returned)$`),
		"verdict":     regexp.MustCompile(`^(never_ran|did_run|forgotten|given_up)$`),
		"state":       regexp.MustCompile(`^(draining|gone|joining|lost|member)$`),
		"mode":        regexp.MustCompile(`^(auto|majority|star)$`),
		"consistency": regexp.MustCompile(`^(local|bounded)$`),
		"partition":   regexp.MustCompile(`^[0-9]{1,2}$`),
		"by":          regexp.MustCompile(`^(one|several|none)$`),
		"percentile":  regexp.MustCompile(`^(50|99|100)$`),
		"version":     regexp.MustCompile(`^[^ ]{1,64}$`),
		"revision":    regexp.MustCompile(`^[0-9a-z]{1,12}$`),
		"goversion":   regexp.MustCompile(`^[^ ]{1,64}$`),
		"le":          regexp.MustCompile(`^([0-9.e+-]+|\+Inf)$`),
	}
	_, _, body := fetch(t, http.MethodGet, "http://"+c.Site("us").HTTPAddr()+"/metrics")
	found := make(map[string]bool)
	for lines := bufio.NewScanner(strings.NewReader(body)); lines.Scan(); {
		line := lines.Text()
		if !strings.HasPrefix(line, "samya_") {
			continue
		}
		m := series.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("no series: %q", line)
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if values := known[l[1]]; values == nil || !values.MatchString(l[2]) {
				t.Errorf("label %s has the value %q in %s", l[1], l[2], line)
			}
		}
		found[m[1]+"{"+m[2]+"}"] = true
	}
	return found
}
