package client

import (
	"context"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/spanctx"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestTraces: a call within a recorded trace has a span, of which its target is told. A call within
// a trace that is not recorded tells that, and a call outside of traces tells nothing.
func TestTraces(t *testing.T) {
	for name, tc := range map[string]struct {
		within   func(context.Context) context.Context
		recorded bool
		// told is the length of what the target is told.
		told int
	}{
		"no trace": {func(ctx context.Context) context.Context { return ctx }, false, 0},
		"recorded": {nil, true, spanctx.Size},
		"not recorded": {func(ctx context.Context) context.Context {
			return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
		}, false, 1},
		// The global provider records nothing unless the program sets one.
		"recorded by another process alone": {func(ctx context.Context) context.Context {
			return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled}))
		}, false, spanctx.Size},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				recorder := tracetest.NewSpanRecorder()
				ctx := t.Context()
				var above trace.Span
				if tc.within != nil {
					ctx = tc.within(ctx)
				} else {
					ctx, above = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test").Start(ctx, "above")
				}
				w := newWorld()
				eu := w.site("eu", near)
				bubble(t, w, nil, "eu", func(c *Client) {
					if _, err := c.Acquire(ctx, "acme/vm", 3); err != nil {
						t.Fatal(err)
					}
					if _, err := c.AcquireAll(ctx, []Part{{Entity: "acme/vm", Tokens: 1}}); err != nil {
						t.Fatal(err)
					}
					eu.answers(func(*samyav1.Operation) *samyav1.Result { return refuse(apierr.OutOfTokens) })
					if _, err := c.Acquire(ctx, "acme/vm", 3); err == nil {
						t.Fatal("granted")
					}
				})
				if len(eu.traces) != 2 || len(eu.traces[0]) != tc.told {
					t.Fatalf("told %x", eu.traces)
				}
				if told := len(eu.traceparents) > 0; told != (tc.told == spanctx.Size) {
					t.Errorf("told by gRPC: %q", eu.traceparents)
				}
				spans := recorder.Ended()
				if !tc.recorded {
					if len(spans) > 0 {
						t.Errorf("recorded %v", spans)
					}
					return
				}
				if len(spans) != 3 {
					t.Fatalf("%d spans, want 3", len(spans))
				}
				for i, want := range []string{"samya.acquire", "samya.acquire_all", "samya.acquire"} {
					s := spans[i]
					if s.Name() != want || s.Parent().SpanID() != above.SpanContext().SpanID() || s.SpanKind() != trace.SpanKindClient || s.Status().Code != codes.Unset {
						t.Errorf("span %d: %v", i, s)
					}
				}
				if c := spanctx.Parse(eu.traces[0]); c == nil || c.Span != spans[0].SpanContext().SpanID() || c.Trace != above.SpanContext().TraceID() {
					t.Errorf("told %v, not %v", c, spans[0].SpanContext())
				}
			})
		})
	}
}
