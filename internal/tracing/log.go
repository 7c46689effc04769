package tracing

import (
	"context"
	"log/slog"
	"math/bits"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/samya-db/samya/internal/spanctx"
)

// Log returns a handler that adds the trace and the span of the context to the lines that h logs.
func Log(h slog.Handler) slog.Handler { return logHandler{h} }

type logHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name)}
}

// exemplarEvery is the least time between two exemplars of about the same value: a histogram keeps
// an exemplar for each of its buckets, and is read much more seldom.
const exemplarEvery = 50 * time.Millisecond

// Observe observes a time of a histogram, in seconds. If the trace is recorded, it may be the
// exemplar; nil is not recorded.
func (t *Traces) Observe(o prometheus.Observer, seconds float64, of *spanctx.Context) {
	if t != nil && of != nil {
		shown := &t.shown[bits.Len64(uint64(seconds*1e6))&63]
		now := time.Now().UnixNano()
		if with, ok := o.(prometheus.ExemplarObserver); ok && now-shown.Load() >= int64(exemplarEvery) {
			shown.Store(now)
			with.ObserveWithExemplar(seconds, prometheus.Labels{"trace_id": trace.TraceID(of.Trace).String()})
			return
		}
	}
	o.Observe(seconds)
}
