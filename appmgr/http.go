package appmgr

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// api is the HTTP/JSON face of a service.
type api struct {
	*Manager
	metricsPage http.Handler
}

// operation answers a method of a resource. do writes the answer of a success, or writes
// nothing and returns an error.
type operation struct {
	name string
	// method is the gRPC method with the access rule that applies.
	method string
	do     func(*api, http.ResponseWriter, *http.Request, string) error
}

// operations are the methods of each resource. HEAD is served like GET, except for
// watches, which have no end.
var operations = map[resource]map[string]operation{
	resEntities: {
		http.MethodGet:  {"ListEntities", samyav1.EntityService_ListEntities_FullMethodName, (*api).listEntities},
		http.MethodPost: {"CreateEntity", samyav1.EntityService_CreateEntity_FullMethodName, (*api).createEntity},
	},
	resEntity: {
		http.MethodGet:    {"GetEntity", samyav1.EntityService_GetEntity_FullMethodName, (*api).getEntity},
		http.MethodPatch:  {"UpdateEntity", samyav1.EntityService_UpdateEntity_FullMethodName, (*api).updateEntity},
		http.MethodDelete: {"DeleteEntity", samyav1.EntityService_DeleteEntity_FullMethodName, (*api).deleteEntity},
	},
	resAcquire: {http.MethodPost: {"Acquire", samyav1.TokenService_Acquire_FullMethodName, (*api).acquire}},
	resRelease: {http.MethodPost: {"Release", samyav1.TokenService_Release_FullMethodName, (*api).release}},
	resWatch:   {http.MethodGet: {"WatchEntity", samyav1.EntityService_WatchEntity_FullMethodName, (*api).watchEntity}},
	resMove:    {http.MethodPost: {"MoveEntity", samyav1.EntityService_MoveEntity_FullMethodName, (*api).moveEntity}},
	resBatch:   {http.MethodPost: {"Batch", samyav1.TokenService_Batch_FullMethodName, (*api).batch}},
	resLeases:  {http.MethodGet: {"ListLeases", samyav1.TokenService_ListLeases_FullMethodName, (*api).listLeases}},
	resRenew:   {http.MethodPost: {"RenewLease", samyav1.TokenService_RenewLease_FullMethodName, (*api).renewLease}},
	resCommit:  {http.MethodPost: {"CommitLease", samyav1.TokenService_CommitLease_FullMethodName, (*api).commitLease}},
	resVoid:    {http.MethodPost: {"VoidLease", samyav1.TokenService_Release_FullMethodName, (*api).voidLease}},
	resSites:   {http.MethodGet: {"ListSites", samyav1.ClusterService_ListSites_FullMethodName, (*api).listSites}},
	resInspect: {http.MethodGet: {"InspectSites", samyav1.ClusterService_InspectSites_FullMethodName, (*api).inspectSites}},
	resMode: {
		http.MethodGet: {"GetMode", samyav1.ClusterService_GetMode_FullMethodName, (*api).getMode},
		http.MethodPut: {"SetMode", samyav1.ClusterService_SetMode_FullMethodName, (*api).setMode},
	},
	resForecast: {
		http.MethodGet: {"GetForecast", samyav1.ClusterService_GetForecast_FullMethodName, (*api).getForecast},
		http.MethodPut: {"SetForecast", samyav1.ClusterService_SetForecast_FullMethodName, (*api).setForecast},
	},
	resOpenAPIYAML: {http.MethodGet: {"OpenAPIYAML", access.Alive, (*api).openAPIYAML}},
	resOpenAPIJSON: {http.MethodGet: {"OpenAPIJSON", access.Alive, (*api).openAPIJSON}},
	resLive:        {http.MethodGet: {"livez", access.Alive, (*api).live}},
	resReady:       {http.MethodGet: {"readyz", access.Alive, (*api).ready}},
	resMetrics:     {http.MethodGet: {"metrics", access.Metrics, (*api).showMetrics}},
}

// handler returns the HTTP API.
func (m *Manager) handler() http.Handler {
	return &api{Manager: m, metricsPage: promhttp.HandlerFor(m.cfg.Registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})}
}

// ServeHTTP implements http.Handler.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	res, entity, err := parsePath(r.URL.EscapedPath())
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	method := r.Method
	if method == http.MethodHead && res != resWatch {
		method = http.MethodGet
	}
	op, ok := operations[res][method]
	if !ok {
		allow := allowed(res)
		w.Header().Set("Allow", allow)
		a.refuse(w, r, apierr.New(apierr.MethodNotAllowed, "no method %.32q here; there are %s", r.Method, allow))
		return
	}
	ctx, err := a.access.HTTP(r, op.method)
	if err != nil {
		a.metrics.requests.WithLabelValues("http", op.name, string(apierr.ReasonOf(err))).Inc()
		apierr.WriteProblem(w, r, err)
		return
	}
	r = r.WithContext(ctx)
	switch res {
	case resLive, resReady, resMetrics:
		// Health and metrics are served however busy the process is.
		if err := op.do(a, w, r, entity); err != nil {
			apierr.WriteProblem(w, r, err)
		}
		return
	}
	if res == resWatch {
		ctx, release := a.access.Lasting(ctx, r)
		defer release()
		r = r.WithContext(ctx)
		// A watch is long: it has its own bound and does not count among requests.
		if err := a.guard.lasting(r.Context(), "http", op.name, func() error { return op.do(a, w, r, entity) }); err != nil {
			apierr.WriteProblem(w, r, err)
		}
		return
	}
	if err := a.guard.do(r.Context(), "http", op.name, func() error { return op.do(a, w, r, entity) }); err != nil {
		apierr.WriteProblem(w, r, err)
	}
}

// refuse answers a request that names no operation.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	a.metrics.requests.WithLabelValues("http", "none", string(apierr.ReasonOf(err))).Inc()
	apierr.WriteProblem(w, r, err)
}

// allowed returns the value of the Allow header of a resource.
func allowed(res resource) string {
	var ms []string
	for m := range operations[res] {
		ms = append(ms, m)
		if m == http.MethodGet && res != resWatch {
			ms = append(ms, http.MethodHead)
		}
	}
	slices.Sort(ms)
	return strings.Join(ms, ", ")
}

func (a *api) live(w http.ResponseWriter, _ *http.Request, _ string) error {
	return writeText(w, "ok\n")
}

func (a *api) ready(w http.ResponseWriter, _ *http.Request, _ string) error {
	switch {
	case a.guard.closing.Load():
		return apierr.New(apierr.ShuttingDown, "this app manager is shutting down")
	case !a.router.reachable():
		return unreachable("")
	}
	return writeText(w, "ok\n")
}

func (a *api) showMetrics(w http.ResponseWriter, r *http.Request, _ string) error {
	a.metricsPage.ServeHTTP(w, r)
	return nil
}

func (a *api) createEntity(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.CreateEntityRequest{}
	limit := int64(-1)
	if err := a.read(w, r, fields{
		"name":       text("name", &in.Name),
		"limit":      whole("limit", 0, name.MaxTokens, &limit),
		"parent":     text("parent", &in.Parent),
		"request_id": text("request_id", &in.RequestId),
	}); err != nil {
		return err
	}
	if limit < 0 {
		return apierr.Invalid("limit", "missing")
	}
	in.Limit = limit
	out, err := access.Call(r.Context(), in, a.service.CreateEntity)
	if err != nil {
		return err
	}
	w.Header().Set("Location", entitiesPath+"/"+in.GetName())
	return writeJSON(w, http.StatusCreated, entityJSON(out.GetEntity()))
}

func (a *api) updateEntity(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.UpdateEntityRequest{Name: entity}
	limit, version := int64(-1), int64(0)
	if err := a.read(w, r, fields{
		"limit":            whole("limit", 0, name.MaxTokens, &limit),
		"expected_version": whole("expected_version", 0, maxVersion, &version),
		"request_id":       text("request_id", &in.RequestId),
		"wait_applied":     truth("wait_applied", &in.WaitApplied),
	}); err != nil {
		return err
	}
	if limit < 0 {
		return apierr.Invalid("limit", "missing")
	}
	in.Limit, in.ExpectedVersion = limit, uint64(version)
	out, err := access.Call(r.Context(), in, a.service.UpdateEntity)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, changedLimit{
		entityJSON(out.GetEntity()), out.GetMayExceedBy(), append([]string{}, out.GetMissingSites()...),
	})
}

func (a *api) deleteEntity(w http.ResponseWriter, r *http.Request, entity string) error {
	q, err := query(r, "expected_generation", "request_id", "subtree")
	if err != nil {
		return err
	}
	in := &samyav1.DeleteEntityRequest{Name: entity, RequestId: q["request_id"]}
	var generation int64
	if err := q.whole("expected_generation", 0, maxVersion, &generation); err != nil {
		return err
	}
	if err := q.truth("subtree", &in.Subtree); err != nil {
		return err
	}
	in.ExpectedGeneration = uint64(generation)
	if _, err := access.Call(r.Context(), in, a.service.DeleteEntity); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *api) moveEntity(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.MoveEntityRequest{Name: entity}
	var generation int64
	given := false
	if err := a.read(w, r, fields{
		"parent": func(t any) error {
			given = true
			return text("parent", &in.Parent)(t)
		},
		"expected_generation": whole("expected_generation", 0, maxVersion, &generation),
		"request_id":          text("request_id", &in.RequestId),
	}); err != nil {
		return err
	}
	if !given {
		return apierr.Invalid("parent", "missing; empty for none")
	}
	in.ExpectedGeneration = uint64(generation)
	out, err := access.Call(r.Context(), in, a.service.MoveEntity)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, entityJSON(out.GetEntity()))
}

func (a *api) listEntities(w http.ResponseWriter, r *http.Request, _ string) error {
	q, err := query(r, "prefix", "page_size", "page_token")
	if err != nil {
		return err
	}
	var size int64
	if err := q.whole("page_size", 0, name.MaxPageSize, &size); err != nil {
		return err
	}
	out, err := access.Call(r.Context(), &samyav1.ListEntitiesRequest{
		Prefix: q["prefix"], PageSize: int32(size), PageToken: q["page_token"],
	}, a.service.ListEntities)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, pageJSON(out))
}

func (a *api) listSites(w http.ResponseWriter, r *http.Request, _ string) error {
	if _, err := query(r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	out, err := access.Call(ctx, &samyav1.ListSitesRequest{}, a.service.ListSites)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, sitesJSON(out))
}

// read reads a body of the given fields; such requests have no query.
func (a *api) read(w http.ResponseWriter, r *http.Request, fs fields) error {
	return a.readBody(w, r, func(body []byte) error { return decodeJSON(body, fs) })
}

// readBody gives a body to decode, which must not keep it; such requests have no
// query.
func (a *api) readBody(w http.ResponseWriter, r *http.Request, decode func([]byte) error) error {
	return a.readBodyOf(w, r, a.cfg.MaxBody, decode)
}

// readBodyOf is readBody for a body of at most `most` bytes.
func (a *api) readBodyOf(w http.ResponseWriter, r *http.Request, most int64, decode func([]byte) error) error {
	if r.URL.RawQuery != "" {
		if _, err := query(r); err != nil {
			return err
		}
	}
	return readJSON(w, r, most, decode)
}

// params are the parameters of a query.
type params map[string]string

// query returns the query's parameters. It fails for an unknown or repeated parameter.
func query(r *http.Request, known ...string) (params, error) {
	vs, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, apierr.Invalid("query", "malformed")
	}
	p := params{}
	for k, v := range vs {
		switch {
		case !slices.Contains(known, k):
			return nil, apierr.Invalid(shorten(k), "unknown parameter")
		case len(v) > 1:
			return nil, apierr.Invalid(k, "given twice")
		}
		p[k] = v[0]
	}
	return p, nil
}

// whole reads a whole number into v; a missing parameter leaves v unchanged.
func (p params) whole(key string, least, most int64, v *int64) error {
	s, ok := p[key]
	if !ok {
		return nil
	}
	if err := whole(key, least, most, v)(json.Number(s)); err != nil {
		return apierr.FromName(err)
	}
	return nil
}

// truth reads true or false into v; a missing parameter leaves v unchanged.
func (p params) truth(key string, v *bool) error {
	switch s, ok := p[key]; {
	case !ok:
	case s == "true" || s == "false":
		*v = s == "true"
	default:
		return apierr.Invalid(key, "must be true or false")
	}
	return nil
}

func writeText(w http.ResponseWriter, s string) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// A write fails only where the client has gone; nobody is left to be told.
	_, _ = w.Write([]byte(s))
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return apierr.Wrap(apierr.Internal, err)
	}
	writeAnswer(w, status, append(b, '\n'))
	return nil
}

// writeMoved writes the answer to an acquire or a release.
func writeMoved(w http.ResponseWriter, m *moved) error {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	b, err := m.appendTo((*buffer)[:0])
	if err != nil {
		return apierr.Wrap(apierr.Internal, err)
	}
	b = append(b, '\n')
	writeAnswer(w, http.StatusOK, b)
	if cap(b) <= smallBody {
		*buffer = b
	}
	return nil
}

// Values of headers that all answers have; nobody changes them.
var jsonType, notStored = []string{"application/json"}, []string{"no-store"}

func writeAnswer(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = jsonType, notStored
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	// A write fails only where the client has gone; nobody is left to be told.
	_, _ = w.Write(body)
}
