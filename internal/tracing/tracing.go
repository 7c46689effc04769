// Package tracing makes spans of OpenTelemetry for the processes of samya: of calls that come
// in by gRPC, HTTP and the stream of operations, and of work that pure packages tell of
// afterwards. It refuses to choose the traces to record, and to export any: package otlp does
// so. A nil *Traces makes no spans, and costs a comparison.
package tracing

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/methods"
	"github.com/samya-db/samya/internal/spanctx"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// scope names the instrumentation.
const scope = "github.com/samya-db/samya"

// Attributes of spans. Names of entities are told, ids of requests are not: an id may be all
// that it takes to repeat a request.
const (
	Entity  = attribute.Key("samya.entity")
	Tokens  = attribute.Key("samya.tokens")
	Granted = attribute.Key("samya.tokens.granted")
	Site    = attribute.Key("samya.site")
	Peer    = attribute.Key("samya.peer")
	reason  = attribute.Key("samya.reason")
	Attempt = attribute.Key("samya.attempt")
	Try     = attribute.Key("samya.try")
	Outcome = attribute.Key("samya.outcome")
	Trigger = attribute.Key("samya.trigger")
	// Requests is the number of requests that a commit made durable together, CommitTime
	// its time in milliseconds.
	Requests   = attribute.Key("samya.commit.requests")
	CommitTime = attribute.Key("samya.commit.ms")
	rpcMethod  = attribute.Key("rpc.method")
	rpcSystem  = attribute.Key("rpc.system.name")
)

// Traces makes the spans of a process. Its methods may be called from several goroutines at
// once, and on nil.
type Traces struct {
	provider trace.TracerProvider
	tracer   trace.Tracer
	head     Head
	bound    *Bound
	// shown is when a value of each size last was an exemplar; see Observe.
	shown [64]atomic.Int64
}

// Head says which traces that begin here are recorded.
type Head interface {
	// Skip draws how many traces are not recorded before the next that is.
	Skip() uint64
	// ID draws the id of a trace that is recorded.
	ID() trace.TraceID
}

// New makes a Traces. provider draws its ids from IDs. bound bounds the operations of streams that
// are recorded.
func New(provider trace.TracerProvider, head Head, bound *Bound) *Traces {
	return &Traces{provider: provider, tracer: provider.Tracer(scope), head: head, bound: bound}
}

// Bound bounds how many calls of a process are recorded in a second. So callers that have all their
// calls recorded do not use up the time of others.
type Bound struct {
	most int64
	// second is the present second of the Unix epoch, and taken the number of calls recorded in it.
	second, taken atomic.Int64
}

// NewBound returns a bound of most calls a second.
func NewBound(most int64) *Bound { return &Bound{most: most} }

// Take reports whether another call may be recorded.
func (b *Bound) Take() bool {
	now := time.Now().Unix()
	if was := b.second.Load(); was != now && b.second.CompareAndSwap(was, now) {
		b.taken.Store(0)
	}
	return b.taken.Add(1) <= b.most
}

// Roots begins traces of calls on a stream that come without a trace. The zero Roots is ready. A
// single goroutine at a time may use it.
type Roots struct {
	drawn bool
	skip  uint64
}

// next reports whether the next trace is recorded.
func (r *Roots) next(h Head) bool {
	if !r.drawn {
		r.drawn, r.skip = true, h.Skip()
	}
	if r.skip > 0 {
		r.skip--
		return false
	}
	r.skip = h.Skip()
	return true
}

// propagator carries traces in header fields: W3C Trace Context.
var propagator = propagation.TraceContext{}

// spanned reports whether a method of gRPC gets a span of its own. A stream of operations or
// messages has none: its operations have. Probes have none.
func spanned(info *stats.RPCTagInfo) bool {
	m, known := methods.Of(info.FullMethodName)
	return known && !m.Stream && !m.Always && m.Full != samyav1.ClusterService_ListSites_FullMethodName
}

func (t *Traces) options() []otelgrpc.Option {
	return []otelgrpc.Option{
		otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithMeterProvider(noop.NewMeterProvider()),
		otelgrpc.WithPropagators(propagator), otelgrpc.WithFilter(spanned),
	}
}

// Server has a gRPC server make a span for each unary call.
func (t *Traces) Server() []grpc.ServerOption {
	if t == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(t.options()...))}
}

// Dial has a gRPC connection make a span for each unary call that is part of a recorded trace,
// and tell the server.
func (t *Traces) Dial() []grpc.DialOption {
	if t == nil {
		return nil
	}
	return []grpc.DialOption{grpc.WithStatsHandler(otelgrpc.NewClientHandler(t.options()...))}
}

// HTTP returns next with a span for each request. route names a request's route, and reports
// whether the request gets a span.
func (t *Traces) HTTP(next http.Handler, route func(*http.Request) (name string, spanned bool)) http.Handler {
	if t == nil {
		return next
	}
	return otelhttp.NewHandler(next, "samya",
		otelhttp.WithTracerProvider(t.provider), otelhttp.WithMeterProvider(noop.NewMeterProvider()), otelhttp.WithPropagators(propagator),
		otelhttp.WithFilter(func(r *http.Request) bool { _, spanned := route(r); return spanned }),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { name, _ := route(r); return name }))
}

// Place is a span's place in a trace.
type Place struct {
	// Own is the span, and Parent the span above; Parent is zero if the trace begins here.
	Own, Parent spanctx.Context
}

// Above returns the span above; nil for none.
func (p *Place) Above() *spanctx.Context {
	if p.Parent == (spanctx.Context{}) {
		return nil
	}
	return &p.Parent
}

// Begin begins the span of an operation that came on a stream, and reports whether it is
// recorded. wire is its trace as the caller told it, see package spanctx; without a trace, roots
// decides. Record records the span at its end.
func (t *Traces) Begin(wire []byte, roots *Roots) (p Place, recorded bool) {
	if t == nil {
		return p, false
	}
	if len(wire) > 0 {
		if parent := spanctx.Parse(wire); parent != nil {
			if !t.bound.Take() {
				return p, false
			}
			return Place{Own: spanctx.Context{Trace: parent.Trace, Span: newSpanID()}, Parent: *parent}, true
		}
		if spanctx.Decided(wire) {
			return p, false
		}
	}
	if !roots.next(t.head) || !t.bound.Take() {
		return p, false
	}
	return Place{Own: spanctx.Context{Trace: t.head.ID(), Span: newSpanID()}}, true
}

// Operation is Begin with the span itself, for an operation that came at the given time and has spans
// of this process below. method is the full method that it stands for. The span is nil if the
// operation is not recorded.
func (t *Traces) Operation(ctx context.Context, wire []byte, roots *Roots, method string, at time.Time) (context.Context, trace.Span) {
	p, recorded := t.Begin(wire, roots)
	if !recorded {
		return ctx, nil
	}
	from := ctx
	if above := p.Above(); above != nil {
		from = trace.ContextWithRemoteSpanContext(ctx, spanContext(above))
	}
	// The ids are for this span, and not for the spans below.
	_, span := t.tracer.Start(withIDs(from, p.Own.Trace, p.Own.Span), method[1:], trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(at),
		trace.WithAttributes(rpcSystem.String("grpc"), rpcMethod.String(method[1:])))
	if !span.IsRecording() {
		return ctx, nil
	}
	return trace.ContextWithSpan(ctx, span), span
}

// Start begins a span of work within this process, if ctx is part of a recorded trace; else the
// span is nil.
func (t *Traces) Start(ctx context.Context, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	if t == nil || !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, nil
	}
	return t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
}

// Current returns the span of ctx as plain data; nil if it is not recorded.
func (t *Traces) Current(ctx context.Context) *spanctx.Context {
	if t == nil {
		return nil
	}
	return Of(trace.SpanContextFromContext(ctx))
}

// Recorded returns the span of ctx if it is recorded; else nil.
func (t *Traces) Recorded(ctx context.Context) trace.Span {
	if t == nil {
		return nil
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		return span
	}
	return nil
}

// Caller returns the span of ctx as it is told to another process on a stream. This process has
// decided about each of its calls, so it tells a call that is not recorded too.
func (t *Traces) Caller(ctx context.Context) *spanctx.Context {
	if t == nil {
		return nil
	}
	if c := Of(trace.SpanContextFromContext(ctx)); c != nil {
		return c
	}
	return spanctx.Unrecorded
}

// Past is a span that has ended.
type Past struct {
	Name string
	// Own is the span, nil for a new id. Parent is the span above, nil for none. Own or Parent
	// is set.
	Own, Parent *spanctx.Context
	// Server says that the work was a call of another process.
	Server bool
	// Remote says that the parent is of another process.
	Remote       bool
	Began, Ended time.Time
	Attributes   []attribute.KeyValue
	// Err is the error of the work, or nil.
	Err error
}

// Record records a span that has ended.
func (t *Traces) Record(p *Past) {
	if t == nil || p.Parent == nil && p.Own == nil {
		return
	}
	ctx := context.Background()
	switch {
	case p.Parent == nil:
	case p.Remote:
		ctx = trace.ContextWithRemoteSpanContext(ctx, spanContext(p.Parent))
	default:
		ctx = trace.ContextWithSpanContext(ctx, spanContext(p.Parent))
	}
	if p.Own != nil {
		ctx = withIDs(ctx, p.Own.Trace, p.Own.Span)
	}
	kind := trace.SpanKindInternal
	if p.Server {
		kind = trace.SpanKindServer
	}
	_, span := t.tracer.Start(ctx, p.Name, trace.WithTimestamp(p.Began), trace.WithSpanKind(kind), trace.WithAttributes(p.Attributes...))
	failed(span, p.Err)
	span.End(trace.WithTimestamp(p.Ended))
}

// Of returns a span as plain data; nil for a span that is not recorded.
func Of(sc trace.SpanContext) *spanctx.Context {
	if !sc.IsValid() || !sc.IsSampled() {
		return nil
	}
	return &spanctx.Context{Trace: sc.TraceID(), Span: sc.SpanID()}
}

// spanContext is the inverse of Of.
func spanContext(c *spanctx.Context) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: c.Trace, SpanID: c.Span, TraceFlags: trace.FlagsSampled})
}

// End ends a span, which may be nil, with the error of its work, or nil. A refusal that says
// nothing of a fault here, such as OUT_OF_TOKENS, is told, and is no error of the span.
func End(span trace.Span, err error) {
	if span == nil {
		return
	}
	failed(span, err)
	span.End()
}

// failed tells the error of a span, or nil.
func failed(span trace.Span, err error) {
	if err == nil {
		return
	}
	e := apierr.From(err)
	span.SetAttributes(reason.String(string(e.Reason)))
	if e.Reason.HTTPStatus() >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, string(e.Reason))
	}
}
