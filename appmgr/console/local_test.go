package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
)

// withHeader adds a header to every request, as the command's transport adds its token.
type withHeader struct{ key, value string }

func (w withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(w.key, w.value)
	return http.DefaultTransport.RoundTrip(r)
}

// localRig is a Local before an app manager that answers with the request.
type localRig struct {
	*Local
	urls chan string
	base string
}

func startLocal(t *testing.T, target string) *localRig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	rig := &localRig{urls: make(chan string, 10), base: "http://" + l.Addr().String()}
	rig.Local, err = NewLocal(LocalConfig{
		Target: target, Transport: withHeader{"Authorization", "Bearer kim"}, Listener: l, Ready: func(url string) { rig.urls <- url },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- rig.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return rig
}

// ask makes a request; headers come in pairs.
func (rig *localRig) ask(t *testing.T, c *http.Client, verb, url string, headers ...string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), verb, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode, text(t, resp.Body)
}

func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

// echo is an app manager that answers with what it was asked.
func echo(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{
			"asked": r.Method + " " + r.URL.RequestURI(), "authorization": r.Header.Get("Authorization"), "cookie": r.Header.Get("Cookie"), "host": r.Host,
		})
	}))
	t.Cleanup(s.Close)
	return s
}

// TestLocal: a URL opens the console for one browser. Its requests of the API go to the app
// manager with the person's credentials, and without the cookie.
func TestLocal(t *testing.T) {
	far := echo(t)
	rig := startLocal(t, far.URL)
	first := <-rig.urls
	kim := browser(t)
	if status, body := rig.ask(t, kim, "GET", first); status != http.StatusOK || !strings.Contains(body, "samya") {
		t.Errorf("opened: status %d, %s", status, body)
	}
	status, body := rig.ask(t, kim, "PATCH", rig.base+"/v1/entities/acme/v%2Fm?x=1", "Origin", rig.base, "Sec-Fetch-Site", "same-origin")
	want := fmt.Sprintf(`{"asked":"PATCH /v1/entities/acme/v%%2Fm?x=1","authorization":"Bearer kim","cookie":"","host":%q}`+"\n", strings.TrimPrefix(far.URL, "http://"))
	if status != http.StatusOK || body != want {
		t.Errorf("status %d, %s, want %s", status, body, want)
	}
	if status, _ := rig.ask(t, kim, "GET", first); status != http.StatusOK {
		t.Errorf("opened again by the same browser: status %d", status)
	}
	eve := browser(t)
	if status, _ := rig.ask(t, eve, "GET", first); status != http.StatusForbidden {
		t.Errorf("a used URL: status %d", status)
	}
	second := <-rig.urls
	if status, _ := rig.ask(t, eve, "GET", second, "Sec-Purpose", "prefetch"); status != http.StatusServiceUnavailable {
		t.Errorf("ahead of time: status %d", status)
	}
	if status, _ := rig.ask(t, eve, "GET", second); status != http.StatusOK {
		t.Errorf("the next URL: status %d", status)
	}
	if status, _ := rig.ask(t, eve, "GET", rig.base+"/metrics"); status != http.StatusNotFound {
		t.Errorf("beyond the API: status %d", status)
	}
}

// TestLocalRefusesOthers: whoever has no cookie, or asks from another origin or by another
// name, gets nothing, and nothing reaches the app manager.
func TestLocalRefusesOthers(t *testing.T) {
	rig := startLocal(t, echo(t).URL)
	kim := &http.Client{Transport: withHeader{"Cookie", rig.cookie + "=" + rig.session}}
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(rig.base, "http://"))
	for name, tc := range map[string]struct {
		client  *http.Client
		verb    string
		path    string
		headers []string
	}{
		"no cookie":           {http.DefaultClient, "GET", "/v1/sites", nil},
		"no cookie, page":     {http.DefaultClient, "GET", "/console/", nil},
		"a bad cookie":        {http.DefaultClient, "GET", "/v1/sites", []string{"Cookie", rig.cookie + "=x"}},
		"no key":              {http.DefaultClient, "GET", "/open", nil},
		"a bad key":           {http.DefaultClient, "GET", "/open?key=x", nil},
		"another name":        {kim, "GET", "/v1/sites", []string{"Host", "rebound.example:" + port}},
		"a name without port": {kim, "GET", "/v1/sites", []string{"Host", "127.0.0.1"}},
		"another origin":      {kim, "POST", "/v1/entities", []string{"Origin", "https://evil.example"}},
		"no origin":           {kim, "POST", "/v1/entities", []string{"Origin", "null"}},
		"another port":        {kim, "GET", "/v1/sites", []string{"Sec-Fetch-Site", "same-site"}},
		"another site":        {kim, "GET", "/console/", []string{"Sec-Fetch-Site", "cross-site"}},
		"no page":             {kim, "POST", "/v1/entities", []string{"Sec-Fetch-Site", "none"}},
	} {
		if status, body := rig.ask(t, tc.client, tc.verb, rig.base+tc.path, tc.headers...); status != http.StatusForbidden || strings.Contains(body, "asked") {
			t.Errorf("%s: status %d, %s", name, status, body)
		}
	}
	for name, headers := range map[string][]string{
		"as localhost": {"Host", "localhost:" + port},
		"from no page": {"Sec-Fetch-Site", "none"},
		"own page":     {"Sec-Fetch-Site", "same-origin", "Origin", rig.base},
	} {
		if status, _ := rig.ask(t, kim, "GET", rig.base+"/v1/sites", headers...); status != http.StatusOK {
			t.Errorf("%s: status %d", name, status)
		}
	}
}

// TestLocalWithoutAppManager: an app manager that does not answer is a problem of the API.
func TestLocalWithoutAppManager(t *testing.T) {
	gone := echo(t)
	gone.Close()
	rig := startLocal(t, gone.URL)
	kim := browser(t)
	if status, _ := rig.ask(t, kim, "GET", <-rig.urls); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	status, body := rig.ask(t, kim, "GET", rig.base+"/v1/sites")
	var p apierr.Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil || status != http.StatusServiceUnavailable || p.Reason != apierr.SiteUnavailable {
		t.Errorf("status %d, %s, %v", status, body, err)
	}
}
