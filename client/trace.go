package client

import (
	"context"
	"errors"
	"net/http"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/spanctx"
)

// The client goes on with the trace of its caller's context, and begins none: so calls outside
// of a recorded trace cost a look at the context.

// scope names the instrumentation.
const scope = "github.com/samya-db/samya/client"

// traced begins the span of a movement, unless ctx is part of no recorded trace: the span is
// then nil. The tries of the movement tell the trace to their targets.
func (m *movement) traced(ctx context.Context) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	sc := parent.SpanContext()
	switch {
	case !sc.IsValid():
		return ctx, nil
	case !sc.IsSampled():
		m.trace = spanctx.Unrecorded
		return ctx, nil
	}
	provider := parent.TracerProvider()
	if !parent.IsRecording() {
		provider = otel.GetTracerProvider() // the parent is a span of another process
	}
	name, entity, tokens := "samya.release", m.release.GetEntity(), m.release.GetTokens()
	switch {
	case m.all != nil:
		name = "samya.acquire_all"
	case m.acquire != nil:
		name, entity, tokens = "samya.acquire", m.acquire.GetEntity(), m.acquire.GetTokens()
	}
	ctx, span := provider.Tracer(scope).Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	if entity != "" {
		span.SetAttributes(attribute.String("samya.entity", entity), attribute.Int64("samya.tokens", tokens))
	}
	if own := span.SpanContext(); own.IsSampled() && own.IsValid() {
		m.trace = &spanctx.Context{Trace: own.TraceID(), Span: own.SpanID()}
	} else {
		m.trace = spanctx.Unrecorded
	}
	return ctx, span
}

// endSpan ends the span of a movement with its error, or nil. A refusal is an answer, and no
// error of the span.
func (m *movement) endSpan(span trace.Span, err error) {
	span.SetAttributes(attribute.Int64("samya.attempt", int64(m.attempt)))
	if e, ok := errors.AsType[*Error](err); ok {
		span.SetAttributes(attribute.String("samya.reason", e.Reason))
		if apierr.Reason(e.Reason).HTTPStatus() >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, e.Reason)
		}
	}
	span.End()
}

// withTrace returns ctx for a unary call that tells its target the recorded trace, if any.
func withTrace(ctx context.Context) context.Context {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx
	}
	md, _ := metadata.FromOutgoingContext(ctx)
	md = md.Copy()
	propagation.TraceContext{}.Inject(ctx, carrier(md))
	return metadata.NewOutgoingContext(ctx, md)
}

// carrier is metadata as a carrier of traces.
type carrier metadata.MD

// Get implements propagation.TextMapCarrier.
func (c carrier) Get(key string) string {
	if v := metadata.MD(c).Get(key); len(v) > 0 {
		return v[0]
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (c carrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

// Keys implements propagation.TextMapCarrier.
func (c carrier) Keys() []string { return nil }
