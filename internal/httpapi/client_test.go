package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/httpapi/httpapitest"
)

func newClient(t *testing.T, addr string, transport http.RoundTripper) *httpapi.Client {
	t.Helper()
	c, err := httpapi.New(addr, transport)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryCall(t *testing.T) {
	m := httpapitest.New()
	c := newClient(t, "http://am:8080", m)
	ctx := t.Context()

	entity, err := c.CreateEntity(ctx, "acme/vm", 100, "id")
	if err != nil || entity != (httpapi.Entity{Name: "acme/vm", Limit: 100, Generation: 1, Version: 1}) {
		t.Errorf("create: %+v, %v", entity, err)
	}
	changed, err := c.UpdateEntity(ctx, "acme/vm", httpapi.Change{Limit: 200, ExpectedVersion: 1})
	if err != nil || changed.Limit != 200 || changed.Version != 2 || len(changed.MissingSites) != 1 {
		t.Errorf("update: %+v, %v", changed, err)
	}
	m.Missing = []string{"eu", "us"}
	again := httpapi.Change{Limit: 150, RequestID: "u", WaitApplied: true}
	if changed, err = c.UpdateEntity(ctx, "acme/vm", again); err != nil || changed.MayExceedBy != 7 || !slices.Equal(changed.MissingSites, m.Missing) {
		t.Errorf("update and wait: %+v, %v", changed, err)
	}
	m.Missing = nil
	if changed, err = c.UpdateEntity(ctx, "acme/vm", httpapi.Change{Limit: 200, WaitApplied: true}); err != nil || changed.MayExceedBy != 0 || len(changed.MissingSites) != 0 {
		t.Errorf("update and wait: %+v, %v", changed, err)
	}
	moved, err := c.Acquire(ctx, "acme/vm", httpapi.Request{Tokens: 5, RequestID: "a", Wait: "2s"})
	if err != nil || moved != (httpapi.Moved{Tokens: 5, RequestID: "a", Site: "us", Left: 195}) {
		t.Errorf("acquire: %+v, %v", moved, err)
	}
	if moved, err = c.Release(ctx, "acme/vm", httpapi.Request{Tokens: 2, RequestID: "b"}); err != nil || moved.Left != 197 {
		t.Errorf("release: %+v, %v", moved, err)
	}
	status, err := c.GetEntity(ctx, "acme/vm")
	if err != nil || status.Acquired != 3 || status.Available != 197 || !status.Complete || len(status.Shares) != 1 {
		t.Errorf("get: %+v, %v", status, err)
	}
	page, err := c.ListEntities(ctx, "acme/", 7, "acme/a")
	if err != nil || len(page.Entities) != 1 {
		t.Errorf("list: %+v, %v", page, err)
	}
	sites, err := c.ListSites(ctx)
	if err != nil || sites.Cluster != "demo" || len(sites.Sites) != 2 || sites.Sites[0].RoundTripMS != nil || *sites.Sites[1].RoundTripMS != 0.25 {
		t.Errorf("sites: %+v, %v", sites, err)
	}
	if mode, err := c.SetMode(ctx, "auto", 0, "m"); err != nil || mode != (httpapi.Mode{Protocol: "auto", Version: 1}) {
		t.Errorf("set the mode: %+v, %v", mode, err)
	}
	if _, err := c.SetMode(ctx, "star", 2, ""); !errors.Is(err, apierr.VersionMismatch) {
		t.Errorf("set the mode of another version: %v", err)
	}
	if mode, err := c.GetMode(ctx); err != nil || mode.Protocol != "auto" || len(mode.Sites) != 2 || mode.Sites[0].Known {
		t.Errorf("mode: %+v, %v", mode, err)
	}
	if f, err := c.SetForecast(ctx, "none"); err != nil || !f.Complete || f.Sites[0].Model != "none" {
		t.Errorf("set the forecast: %+v, %v", f, err)
	}
	if _, err := c.SetForecast(ctx, "oracle"); !errors.Is(err, apierr.InvalidField) {
		t.Errorf("set an unknown forecast: %v", err)
	}
	if f, err := c.GetForecast(ctx); err != nil || len(f.Sites) != 2 || f.Sites[1] != (httpapi.SiteForecast{Site: m.SiteName, Model: "none", Configured: "auto", Known: true}) {
		t.Errorf("forecast: %+v, %v", f, err)
	}
	if s, err := c.InspectSites(ctx, ""); err != nil || s.Complete || len(s.Sites) != 2 || s.Sites[0].Known || s.Sites[1].Served != 5_952_021 {
		t.Errorf("inspect: %+v, %v", s, err)
	}
	if s, err := c.InspectSites(ctx, "us"); err != nil || !s.Complete || len(s.Sites) != 1 || len(s.Sites[0].Partitions) != 4 {
		t.Errorf("inspect us: %+v, %v", s, err)
	}
	if entity, err = c.Create(ctx, httpapi.Creation{Name: "acme/vm/big", Limit: 5, Parent: "acme/vm", RequestID: "below"}); err != nil || entity.Parent != "acme/vm" {
		t.Errorf("create below: %+v, %v", entity, err)
	}
	if err := c.DeleteEntity(ctx, "acme/vm"); !errors.Is(err, apierr.HasChildren) {
		t.Errorf("delete what others stand below: %v", err)
	}
	if status, err := c.GetEntity(ctx, "acme/vm"); err != nil || status.Children != 1 {
		t.Errorf("a parent: %+v, %v", status, err)
	}
	if _, err := c.MoveEntity(ctx, "acme/vm/big", "none"); !errors.Is(err, apierr.ParentNotFound) {
		t.Errorf("move below none: %v", err)
	}
	if entity, err = c.MoveEntity(ctx, "acme/vm/big", ""); err != nil || entity.Parent != "" {
		t.Errorf("move to the top: %+v, %v", entity, err)
	}
	if _, err = c.MoveEntity(ctx, "acme/vm/big", "acme/vm"); err != nil {
		t.Errorf("move: %v", err)
	}
	if err := c.DeleteSubtree(ctx, "acme/vm"); err != nil {
		t.Errorf("delete with all below: %v", err)
	}
	if _, err := c.GetEntity(ctx, "acme/vm/big"); !errors.Is(err, apierr.EntityNotFound) {
		t.Errorf("read what stood below: %v", err)
	}
	m.Create("acme/vm", 1)
	if err := c.DeleteEntity(ctx, "acme/vm"); err != nil {
		t.Errorf("delete: %v", err)
	}
	want := []string{
		"POST http://am:8080/v1/entities", "PATCH http://am:8080/v1/entities/acme/vm",
		"PATCH http://am:8080/v1/entities/acme/vm", "PATCH http://am:8080/v1/entities/acme/vm",
		"POST http://am:8080/v1/entities/acme/vm:acquire", "POST http://am:8080/v1/entities/acme/vm:release",
		"GET http://am:8080/v1/entities/acme/vm", "GET http://am:8080/v1/entities?page_size=7&page_token=acme%2Fa&prefix=acme%2F",
		"GET http://am:8080/v1/sites",
		"PUT http://am:8080/v1/mode", "PUT http://am:8080/v1/mode", "GET http://am:8080/v1/mode",
		"PUT http://am:8080/v1/forecast", "PUT http://am:8080/v1/forecast", "GET http://am:8080/v1/forecast",
		"GET http://am:8080/v1/sites:inspect", "GET http://am:8080/v1/sites:inspect?site=us",
		"POST http://am:8080/v1/entities", "DELETE http://am:8080/v1/entities/acme/vm", "GET http://am:8080/v1/entities/acme/vm",
		"POST http://am:8080/v1/entities/acme/vm/big:move", "POST http://am:8080/v1/entities/acme/vm/big:move",
		"POST http://am:8080/v1/entities/acme/vm/big:move", "DELETE http://am:8080/v1/entities/acme/vm?subtree=true",
		"GET http://am:8080/v1/entities/acme/vm/big",
		"DELETE http://am:8080/v1/entities/acme/vm",
	}
	if d := cmp.Diff(want, m.Requests()); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
}

func TestRefusalsKeepTheirReason(t *testing.T) {
	m := httpapitest.New()
	m.Create("acme/vm", 10)
	c := newClient(t, "am:8080", m)
	_, err := c.Acquire(t.Context(), "acme/vm", httpapi.Request{Tokens: 11})
	e, ok := errors.AsType[*apierr.Error](err)
	if !ok || !errors.Is(err, apierr.OutOfTokens) || *e.Left != 10 || e.Site != "us" {
		t.Errorf("error %v", err)
	}
}

// answer answers every request with the status, media type and body.
func answer(status int, media, body string) http.RoundTripper {
	return roundTripper(func(*http.Request) (*http.Response, error) {
		r := httptest.NewRecorder()
		r.Header().Set("Content-Type", media)
		r.WriteHeader(status)
		_, err := r.WriteString(body)
		return r.Result(), err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestForeignAnswers(t *testing.T) {
	for name, transport := range map[string]http.RoundTripper{
		"a page":             answer(http.StatusOK, "text/html", "<html>"),
		"a page not found":   answer(http.StatusNotFound, "text/plain", "404 page not found"),
		"no media type":      answer(http.StatusInternalServerError, "", ""),
		"a broken problem":   answer(http.StatusConflict, apierr.ProblemType, "{"),
		"an endless success": answer(http.StatusOK, "application/json", `{"name":"`+strings.Repeat("x", 9<<20)+`"}`),
	} {
		_, err := newClient(t, "http://other:80", transport).GetEntity(t.Context(), "acme/vm")
		if e, ok := errors.AsType[*httpapi.ForeignAnswerError](err); !ok || e.Addr != "http://other:80" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhetherItWasSent(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	aborting := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer aborting.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = fmt.Fprint(w, "{")
	}))
	defer cut.Close()
	for name, test := range map[string]struct {
		addr string
		sent bool
	}{
		"nobody listens":        {closed.URL, false},
		"the connection ends":   {aborting.URL, true},
		"the answer is cut":     {cut.URL, true},
		"the name is unknown":   {"http://no-such-host.invalid", false},
		"the port is no port":   {"http://127.0.0.1:0", false},
		"the answer is awaited": {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.addr == "" {
				waiting := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					// A server sees that its client has gone once it has read the body.
					_, _ = io.Copy(io.Discard, r.Body)
					cancel()
					<-r.Context().Done()
				}))
				defer waiting.Close()
				test.addr = waiting.URL
			}
			_, err := newClient(t, test.addr, nil).Release(ctx, "acme/vm", httpapi.Request{Tokens: 1})
			e, ok := errors.AsType[*httpapi.UnreachableError](err)
			if !ok || e.Sent != test.sent || !strings.Contains(err.Error(), test.addr) {
				t.Errorf("error %v, want one that says sent = %t", err, test.sent)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8080":         "http://127.0.0.1:8080",
		"http://127.0.0.1:8080/": "http://127.0.0.1:8080",
		"https://quota.acme.com": "https://quota.acme.com",
		"[::1]:80":               "http://[::1]:80",
	} {
		if got := newClient(t, addr, nil).Addr(); got != want {
			t.Errorf("%q: %q, want %q", addr, got, want)
		}
	}
	for _, addr := range []string{"", "ftp://x", "http://", "http://x/v1", "http://x?y", "http://x:y", "http://[", "://"} {
		if c, err := httpapi.New(addr, nil); err == nil {
			t.Errorf("%q is taken as %s", addr, c.Addr())
		}
	}
}
