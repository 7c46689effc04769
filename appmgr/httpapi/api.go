package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/samya-db/samya/appmgr/console"
	"github.com/samya-db/samya/appmgr/grpcapi"
	"github.com/samya-db/samya/appmgr/limiter"
	"github.com/samya-db/samya/appmgr/ratelimit"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/tracing"
)

// api is the HTTP/JSON face of a service.
type api struct {
	Config
	metricsPage http.Handler
}

// Config configures the HTTP API.
type Config struct {
	Service *grpcapi.Service
	Limiter *limiter.Limiter
	Access  *access.Guard
	// RateLimits is Envoy's rate limit service.
	RateLimits *ratelimit.Service
	// Policies knows the rate quotas among the entities.
	Policies *ratelimit.Policies
	// Reachable reports whether any site can be reached.
	Reachable func() bool
	// Registry is shown at /metrics.
	Registry *prometheus.Registry
	// MaxBody bounds a body, in bytes, MaxBulk a batch.
	MaxBody, MaxBulk int64
	// Name is the name of the app manager, and Cluster the name of its cluster.
	Name, Cluster string
	// Doctor returns a report on the cluster, which answers as JSON; nil for none.
	Doctor func(context.Context) (report any, err error)
	// Console serves the web console; nil for none.
	Console http.Handler
	// Traces makes spans; nil: none.
	Traces *tracing.Traces
}

// handler makes the operation of a request about an entity or a site; the name is empty if
// the path has none. It writes the answer of a success, or writes nothing and returns an error.
type handler func(a *api, w http.ResponseWriter, r *http.Request, name string) error

// handlers are the handlers of all routes, by the names of the routes.
var handlers = func() map[string]handler {
	all := make(map[string]handler)
	for _, some := range []map[string]handler{entityHandlers, readHandlers, tokenHandlers, clusterHandlers, processHandlers, rateLimitHandlers} {
		maps.Copy(all, some)
	}
	return all
}()

// processHandlers are the handlers of the process itself.
var processHandlers = map[string]handler{
	"OpenAPIYAML": (*api).openAPIYAML,
	"OpenAPIJSON": (*api).openAPIJSON,
	"livez":       (*api).live,
	"readyz":      (*api).ready,
	"metrics":     (*api).showMetrics,
	"GetCaller":   (*api).getCaller,
	"Diagnose":    (*api).doctor,
}

// newHandler returns the HTTP API.
func newHandler(cfg Config) http.Handler {
	a := &api{cfg, promhttp.HandlerFor(cfg.Registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, EnableOpenMetrics: true})}
	return cfg.Traces.HTTP(a, spanOf)
}

// spanOf names the span of a request, and reports whether it has one: requests of the API
// that have an end.
func spanOf(r *http.Request) (string, bool) {
	res, _, err := parsePath(r.URL.EscapedPath())
	if err != nil {
		return r.Method, false
	}
	op := resources[res].operation(r.Method)
	return r.Method + " " + res, op != nil && !op.Always && !op.method.Stream
}

// ServeHTTP implements http.Handler.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.Console != nil && console.Serves(r.URL.Path) {
		a.Console.ServeHTTP(w, r)
		return
	}
	res, entity, err := parsePath(r.URL.EscapedPath())
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	op := resources[res].operation(r.Method)
	if op == nil {
		allow := resources[res].allowed()
		w.Header().Set("Allow", allow)
		a.refuse(w, r, apierr.New(apierr.MethodNotAllowed, "no method %.32q here; there are %s", r.Method, allow))
		return
	}
	ctx, err := a.Access.HTTP(r, op.method.Full)
	if err != nil {
		a.Limiter.Refused("http", op.Name, err)
		apierr.WriteProblem(w, r, err)
		return
	}
	switch {
	case op.Always:
		err = op.do(a, w, r.WithContext(ctx), entity)
	case op.method.Stream:
		ctx, release := a.Access.Streaming(ctx, r)
		defer release()
		r = r.WithContext(ctx)
		err = a.Limiter.DoStreaming(ctx, "http", op.Name, func() error { return op.do(a, w, r, entity) })
	default:
		r = r.WithContext(ctx)
		err = a.Limiter.Do(ctx, "http", op.Name, func() error { return op.do(a, w, r, entity) })
	}
	if err != nil {
		apierr.WriteProblem(w, r, err)
	}
}

// refuse answers a request that names no operation.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	a.Limiter.Refused("http", limiter.NoMethod, err)
	apierr.WriteProblem(w, r, err)
}

func (a *api) live(w http.ResponseWriter, _ *http.Request, _ string) error {
	return writeText(w, "ok\n")
}

func (a *api) ready(w http.ResponseWriter, _ *http.Request, _ string) error {
	switch {
	case a.Limiter.Closed():
		return apierr.New(apierr.ShuttingDown, "this app manager is shutting down")
	case !a.Reachable():
		return apierr.Unreachable("")
	}
	return writeText(w, "ok\n")
}

func (a *api) showMetrics(w http.ResponseWriter, r *http.Request, _ string) error {
	a.metricsPage.ServeHTTP(w, r)
	return nil
}

// request is a pointer to a request Q.
type request[Q any] interface {
	*Q
	proto.Message
}

// method is a method of the service.
type method[Q request[M], M, R any] func(*grpcapi.Service, context.Context, Q) (R, error)

// byQuery handles requests that are all in their path and query, and answers as `as` does.
func byQuery[Q request[M], M, R, S any](do method[Q, M, R], as func(R) S) handler {
	return func(a *api, w http.ResponseWriter, r *http.Request, of string) error {
		in := about[Q](of)
		if _, err := readQuery(r, in); err != nil {
			return err
		}
		return answer(w, r, in, do.of(a), as)
	}
}

// byBody handles requests of a path and a body, which must have the fields needed.
func byBody[Q request[M], M, R, S any](do method[Q, M, R], as func(R) S, needed ...string) handler {
	return func(a *api, w http.ResponseWriter, r *http.Request, of string) error {
		in := about[Q](of)
		fs := fieldsOf(in)
		given := make([]func() error, len(needed))
		for i, key := range needed {
			given[i] = fs.need(key)
		}
		err := a.read(w, r, fs)
		for _, check := range given {
			err = cmp.Or(err, check())
		}
		if err != nil {
			return err
		}
		return answer(w, r, in, do.of(a), as)
	}
}

// of is the method of an API's service.
func (do method[Q, M, R]) of(a *api) func(context.Context, Q) (R, error) {
	return func(ctx context.Context, in Q) (R, error) { return do(a.Service, ctx, in) }
}

// about makes a request about an entity or a site; of is empty if the path has none.
func about[Q request[M], M any](of string) Q {
	in := Q(new(M))
	if m := in.ProtoReflect(); of != "" {
		m.Set(m.Descriptor().Fields().ByName("name"), protoreflect.ValueOfString(of))
	}
	return in
}

// answer makes the operation of a request and writes its answer in its JSON shape.
func answer[Q, R, S any](w http.ResponseWriter, r *http.Request, in Q, do func(context.Context, Q) (R, error), as func(R) S) error {
	out, err := access.Call(r.Context(), in, do)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, as(out))
}

// read reads a body of the given fields; such requests have no query.
func (a *api) read(w http.ResponseWriter, r *http.Request, fs fields) error {
	return a.readBody(w, r, func(body []byte) error { return decodeJSON(body, fs) })
}

// readBody gives a body to decode, which must not keep it; such requests have no
// query.
func (a *api) readBody(w http.ResponseWriter, r *http.Request, decode func([]byte) error) error {
	return a.readBodyOf(w, r, a.MaxBody, decode)
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

// readQuery reads the query's parameters into m, a request, by the names of its fields.
// Parameters that are not fields of m, or have no reader, are in also.
func readQuery(r *http.Request, m proto.Message, also ...string) (params, error) {
	fs := fieldsOf(m)
	p, err := query(r, append(slices.Collect(maps.Keys(fs)), also...)...)
	if err != nil {
		return nil, err
	}
	all := m.ProtoReflect().Descriptor().Fields()
	for i := range all.Len() {
		d := all.Get(i)
		key := string(d.Name())
		s, given := p[key]
		if !given || fs[key] == nil {
			continue
		}
		var value any = s
		switch d.Kind() {
		case protoreflect.StringKind, protoreflect.MessageKind:
		case protoreflect.BoolKind:
			if value = s == "true"; s != "true" && s != "false" {
				return nil, apierr.Invalid(key, "must be true or false")
			}
		default:
			value = json.Number(s)
		}
		if err := fs[key](value); err != nil {
			return nil, apierr.FromName(err)
		}
	}
	return p, nil
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
