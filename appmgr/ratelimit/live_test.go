package ratelimit_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/samya-db/samya/appmgr"
	"github.com/samya-db/samya/appmgr/ratelimit"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/site/sitetest"
)

// The limits are by the day and the hour: no test sees the end of such a window, nearly.
const liveRules = `
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 50}
  - key: path
    value: /api/*
    share_threshold: true
    rate_limit: {unit: day, requests_per_unit: 30}
  - key: remote_address
    rate_limit: {unit: day, requests_per_unit: 3}
  - key: banned
    rate_limit: {unit: day, requests_per_unit: 0}
`

// live is an app manager before real sites.
type live struct {
	t       *testing.T
	manager *appmgr.Manager
	limits  ratelimitv3.RateLimitServiceClient
	dir     string
	web     *http.Client
}

// sites are the sites of a directory that never changes.
type sites []route.SiteInfo

func (s sites) Sites() []route.SiteInfo { return s }
func (sites) Changed() <-chan struct{}  { return nil }

func startLive(t *testing.T, wait time.Duration, names ...string) *live {
	t.Helper()
	if time.Until(time.Now().UTC().Truncate(24*time.Hour).Add(24*time.Hour)) < 2*time.Minute {
		t.Skip("the day ends in a moment, and its windows")
	}
	c := sitetest.Start(t, names, nil)
	l := &live{t: t, dir: t.TempDir(), web: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(l.web.CloseIdleConnections)
	if err := os.WriteFile(filepath.Join(l.dir, "edge.yaml"), []byte(liveRules), 0o600); err != nil {
		t.Fatal(err)
	}
	var all sites
	for _, n := range names {
		all = append(all, route.SiteInfo{Name: n, Region: n, Address: c.Site(n).GRPCAddr()})
	}
	m, err := appmgr.New(appmgr.Config{
		Config:    node.Config{Name: "am", Region: "us", Cluster: "test", HTTP: "127.0.0.1:0", GRPC: "127.0.0.1:0", Preset: "local"},
		Directory: all, StopTimeout: time.Second, RateLimits: ratelimit.Settings{Dir: l.dir, Wait: wait, QuotaTTL: 4 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-m.Listening()
	conn, err := grpc.NewClient(m.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	l.manager, l.limits = m, ratelimitv3.NewRateLimitServiceClient(conn)
	sitetest.Eventually(t, "the app manager", func() error {
		_, err := l.ask("user=setup")
		return err
	})
	return l
}

// ask asks about descriptors of one entry each, over gRPC.
func (l *live) ask(entries ...string) (ratelimitv3.RateLimitResponse_Code, error) {
	ctx, cancel := context.WithTimeout(l.t.Context(), 10*time.Second)
	defer cancel()
	out, err := l.limits.ShouldRateLimit(ctx, requestOf(entries...))
	return out.GetOverallCode(), err
}

// passes asks about descriptors, and reports whether the request passes.
func (l *live) passes(entries ...string) bool {
	l.t.Helper()
	code, err := l.ask(entries...)
	if err != nil {
		l.t.Error(err)
	}
	return code == ratelimitv3.RateLimitResponse_OK
}

// fill asks until so many requests have passed: tokens may be on their way between sites.
func (l *live) fill(want int, entries ...string) {
	l.t.Helper()
	passed := 0
	sitetest.Eventually(l.t, fmt.Sprintf("%d requests that pass", want), func() error {
		for passed < want {
			if !l.passes(entries...) {
				return fmt.Errorf("%d have passed", passed)
			}
			passed++
		}
		return nil
	})
}

func requestOf(entries ...string) *ratelimitv3.RateLimitRequest {
	in := &ratelimitv3.RateLimitRequest{Domain: "edge"}
	for _, e := range entries {
		key, value, _ := strings.Cut(e, "=")
		in.Descriptors = append(in.Descriptors, &commonv3.RateLimitDescriptor{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: key, Value: value}}})
	}
	return in
}

// get makes a request over HTTP, and returns its status, header and body.
func (l *live) get(verb, url, body string, fields ...string) (int, http.Header, string) {
	l.t.Helper()
	r, err := http.NewRequestWithContext(l.t.Context(), verb, url, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, f := range fields {
		key, value, _ := strings.Cut(f, ": ")
		r.Header.Add(key, value)
	}
	resp, err := l.web.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

// TestLive asks an app manager before real sites: many callers get the limit exactly, and
// a denied request takes nothing.
func TestLive(t *testing.T) {
	l := startLive(t, time.Second, "us", "eu", "as")
	t.Run("exact", func(t *testing.T) {
		var passed, asked atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for passed.Load() < 50 && asked.Add(1) < 2000 {
					if l.passes("user=alice") {
						passed.Add(1)
					}
				}
			})
		}
		all.Wait()
		if passed.Load() != 50 || l.passes("user=alice") {
			t.Errorf("%d of %d passed", passed.Load(), asked.Load())
		}
	})
	t.Run("all or none", func(t *testing.T) {
		for range 5 {
			if l.passes("user=bob", "banned=x") {
				t.Error("a banned request passes")
			}
		}
		l.fill(30, "user=bob", "path=/api/1")
		for range 5 {
			if l.passes("user=bob", "path=/api/2") {
				t.Error("the paths have no limit together")
			}
		}
		l.fill(20, "user=bob")
		if l.passes("user=bob") {
			t.Error("more than 50 requests of bob pass")
		}
	})
	t.Run("reload", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(l.dir, "edge.yaml"), []byte(strings.Replace(liveRules, "50", "52", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		l.fill(2, "user=alice")
		if l.passes("user=alice") {
			t.Error("more than 52 requests of alice pass")
		}
	})
	t.Run("acquire", l.acquire)
}

// TestLiveOverHTTP asks over HTTP, before a single site: no token has to move.
func TestLiveOverHTTP(t *testing.T) {
	l := startLive(t, 0, "us")
	t.Run("json", l.json)
	t.Run("forward-auth", l.forwardAuth)
	t.Run("nginx", l.nginx)
}

// json asks over HTTP as clients of envoyproxy/ratelimit do.
func (l *live) json(t *testing.T) {
	url := "http://" + l.manager.HTTPAddr() + "/json"
	const body = `{"domain": "edge", "descriptors": [{"entries": [{"key": "remote_address", "value": "json"}]}]}`
	for i := range 4 {
		status, h, text := l.get("POST", url, body)
		out := &ratelimitv3.RateLimitResponse{}
		if err := protojson.Unmarshal([]byte(text), out); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		limit, err := httpsfv.UnmarshalList(h.Values("RateLimit"))
		if err != nil || len(limit) != 1 || limit[0].(httpsfv.Item).Value != "edge.remote_address" {
			t.Errorf("%q, %v", h.Values("RateLimit"), err)
		}
		if want := `"edge.remote_address";q=3;w=86400`; h.Get("RateLimit-Policy") != want {
			t.Errorf("%q", h.Get("RateLimit-Policy"))
		}
		switch {
		case i < 3 && (status != 200 || out.GetOverallCode() != ratelimitv3.RateLimitResponse_OK || h.Get("Retry-After") != ""):
			t.Errorf("%d, %v, %v", status, h, text)
		case i == 3 && (status != 429 || out.GetOverallCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT || h.Get("Retry-After") == ""):
			t.Errorf("%d, %v, %v", status, h, text)
		}
	}
	for body, want := range map[string]int{`{"domain"`: 400, `{"domains": "a"}`: 400, `{"domain": "edge"}`: 400, `{"domain": "other", "descriptors": [{"entries": [{"key": "a"}]}]}`: 200} {
		if status, _, text := l.get("POST", url, body); status != want {
			t.Errorf("%s: %d, %s", body, status, text)
		}
	}
}

// forwardAuth asks as web servers do.
func (l *live) forwardAuth(t *testing.T) {
	base := "http://" + l.manager.HTTPAddr() + "/v1/forward-auth/edge"
	ip := func(n string) string { return "X-Real-Ip: " + n }
	for _, c := range []struct {
		what, verb, query string
		fields            []string
		want              []int
	}{
		{"by a header field", "GET", "?descriptor=remote_address=@X-Real-Ip", []string{ip("1")}, []int{204, 204, 204, 429}},
		{"another", "POST", "?descriptor=remote_address=@x-real-ip&denied=403", []string{ip("2")}, []int{204, 204, 204, 403}},
		{"several hits", "HEAD", "?descriptor=remote_address=@X-Real-Ip&hits=2", []string{ip("3")}, []int{204, 429}},
		{"without the field", "GET", "?descriptor=banned=@X-Real-Ip", nil, []int{204, 204}},
		{"with a value", "GET", "?descriptor=banned=x&denied=418", nil, []int{418}},
		{"of several", "GET", "?descriptor=remote_address=@X-Real-Ip&descriptor=banned=1", []string{ip("4")}, []int{429}},
		{"which took nothing", "GET", "?descriptor=remote_address=@X-Real-Ip", []string{ip("4")}, []int{204, 204, 204, 429}},
		{"a value is no configuration", "GET", "?descriptor=remote_address=@X-Real-Ip", []string{ip("5,banned=1&denied=204")}, []int{204, 204, 204, 429}},
		{"no descriptor", "GET", "", nil, []int{400}},
		{"an unknown parameter", "GET", "?descriptor=a=b&domain=c", nil, []int{400}},
		{"no status of a refusal", "GET", "?descriptor=a=b&denied=200", nil, []int{400}},
		{"no hits", "GET", "?descriptor=a=b&hits=0", nil, []int{400}},
		{"no key", "GET", "?descriptor==b", nil, []int{400}},
	} {
		for i, want := range c.want {
			status, h, text := l.get(c.verb, base+c.query, "", c.fields...)
			if status != want {
				t.Errorf("%s, %d: %d, want %d: %s", c.what, i, status, want, text)
			}
			if (h.Get("Retry-After") != "") != (status == 429 || status == 403 || status == 418) {
				t.Errorf("%s, %d: %v", c.what, i, h)
			}
		}
	}
}

// acquire reads the fields of answers to acquires of a rate quota.
func (l *live) acquire(t *testing.T) {
	entities := "http://" + l.manager.HTTPAddr() + "/v1/entities"
	for _, body := range []string{`{"name": "acme/calls", "limit": 30, "per": "1d"}`, `{"name": "acme/seats", "limit": 30}`} {
		if status, _, text := l.get("POST", entities, body); status != 201 {
			t.Fatal(status, text)
		}
	}
	var last http.Header
	sitetest.Eventually(t, "the fields of a rate quota", func() error {
		status, h, text := l.get("POST", entities+"/acme/calls:acquire", `{"tokens": 1, "wait": "0s"}`)
		if last = h; h.Get("RateLimit") == "" {
			return fmt.Errorf("%d, %s", status, text)
		}
		return nil
	})
	limit, err := httpsfv.UnmarshalList(last.Values("RateLimit"))
	if err != nil || len(limit) != 1 || limit[0].(httpsfv.Item).Value != "acme/calls" || last.Get("RateLimit-Policy") != `"acme/calls";q=30;w=86400` {
		t.Errorf("%v, %v", last, err)
	}
	status, h, text := l.get("POST", entities+"/acme/calls:acquire", `{"tokens": 30, "wait": "0s"}`)
	if status != 429 || h.Get("RateLimit") == "" || h.Get("Retry-After") == "" {
		t.Errorf("%d, %v, %s", status, h, text)
	}
	for range 3 {
		if status, h, text := l.get("POST", entities+"/acme/seats:acquire", `{"tokens": 1}`); status != 200 || h.Get("RateLimit") != "" {
			t.Errorf("%d, %v, %s", status, h, text)
		}
	}
}

// nginx has a real nginx ask before each request.
func (l *live) nginx(t *testing.T) {
	binary, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("no nginx")
	}
	dir, addr := t.TempDir(), sitetest.FreePort(t)
	config := fmt.Sprintf(`
daemon off;
master_process off;
pid %[1]s/pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
  server {
    listen %[2]s;
    location / {
      auth_request /limit;
      auth_request_set $retry $upstream_http_retry_after;
      error_page 403 = @limited;
      try_files "" @page;
    }
    location @page { return 200 "page\n"; }
    location @limited {
      add_header Retry-After $retry always;
      return 429;
    }
    location = /limit {
      internal;
      proxy_pass http://%[3]s/v1/forward-auth/edge?descriptor=remote_address=@X-Real-IP&denied=403;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header X-Real-IP nginx-$remote_addr;
    }
  }
}
`, dir, addr, l.manager.HTTPAddr())
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-p", dir, "-c", path)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	sitetest.Eventually(t, "nginx", func() error {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	for i, want := range []int{200, 200, 200, 429, 429} {
		status, h, text := l.get("GET", "http://"+addr+"/some/page", "")
		if status != want || (status == 429) != (h.Get("Retry-After") != "") {
			t.Errorf("request %d: %d, %v, %s; %s", i, status, h, text, stderr.String())
		}
	}
}
