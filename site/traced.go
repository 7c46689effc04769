package site

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/samya-db/samya/internal/spanctx"
	"github.com/samya-db/samya/internal/tracing"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/engine"
)

// commitSpan is the name of the span of a commit. A commit is shared by many requests.
const commitSpan = "samya.commit"

// traced is a request of a recorded trace. Nil stands for any other request.
type traced struct {
	// Place is the span, and the span above.
	tracing.Place
	// span is the span of a unary call, which is gRPC's; nil for an operation of a stream.
	span trace.Span
	// commit is the commit that made the answer durable, once there is a commit.
	commit engine.Committed
}

// traceOf returns the trace of a unary call.
func traceOf(ctx context.Context, t *tracing.Traces) *traced {
	span := t.Recorded(ctx)
	if span == nil {
		return nil
	}
	return &traced{span: span, Place: tracing.Place{Own: *tracing.Of(span.SpanContext())}}
}

// begin returns the trace of an operation of a stream.
func begin(t *tracing.Traces, m *samyav1.Call, roots *tracing.Roots) *traced {
	place, recorded := t.Begin(m.GetTrace(), roots)
	if !recorded {
		return nil
	}
	return &traced{Place: place}
}

// context returns the span as plain data; nil for nil.
func (t *traced) context() *spanctx.Context {
	if t == nil {
		return nil
	}
	return &t.Own
}

// durable is where the engine tells the commit; nil for nil.
func (t *traced) durable() *engine.Committed {
	if t == nil {
		return nil
	}
	return &t.commit
}

// attributes describe the request, its answer and its commit.
func (t *traced) attributes(q *asked, granted int64, err error) []attribute.KeyValue {
	all := append(make([]attribute.KeyValue, 0, 5), tracing.Tokens.Int64(q.tokens))
	if q.entity != "" {
		all = append(all, tracing.Entity.String(q.entity))
	}
	if err == nil && granted != q.tokens {
		all = append(all, tracing.Granted.Int64(granted))
	}
	if c := &t.commit; !c.Began.IsZero() {
		all = append(all, tracing.Requests.Int(c.Requests), tracing.CommitTime.Float64(float64(c.Ended.Sub(c.Began))/float64(time.Millisecond)))
	}
	return all
}

// answered describes a unary call in its span. Nil does nothing.
func (t *traced) answered(q *asked, granted int64, err error) {
	if t != nil {
		t.span.SetAttributes(t.attributes(q, granted, err)...)
	}
}

// Names of the spans of operations of streams: as of unary calls.
var (
	acquireSpan = samyav1.TokenService_Acquire_FullMethodName[1:]
	releaseSpan = samyav1.TokenService_Release_FullMethodName[1:]
)

// record records the span of an operation of a stream, which has its answer, now or the error.
func (o *operation) record(s *Site, now time.Time, err error) {
	name := acquireSpan
	if o.isRelease {
		name = releaseSpan
	}
	s.cfg.Traces.Record(&tracing.Past{
		Name: name, Own: &o.Own, Parent: o.Above(), Remote: true, Server: true, Began: o.Began, Ended: now,
		Attributes: o.attributes(&o.asked, int64(o.answer.Tokens), err), Err: err,
	})
	o.traced = nil
}

// coreSpans records the spans of a core.
type coreSpans struct{ *tracing.Traces }

// spanned is engine.Config.Spanned.
func (t coreSpans) spanned(e *event.Span, began, ended time.Time, on engine.Committed) {
	attrs := []attribute.KeyValue{tracing.Entity.String(e.Entity)}
	for key, text := range map[attribute.Key]string{tracing.Peer: string(e.Peer), tracing.Trigger: e.Trigger, tracing.Outcome: e.Outcome} {
		if text != "" {
			attrs = append(attrs, key.String(text))
		}
	}
	for key, n := range map[attribute.Key]int64{tracing.Tokens: int64(e.Tokens), tracing.Granted: int64(e.Granted)} {
		if n != 0 {
			attrs = append(attrs, key.Int64(n))
		}
	}
	t.Record(&tracing.Past{
		Name: e.Name, Own: e.Own, Parent: e.Parent, Remote: e.Remote, Began: began, Ended: ended, Attributes: attrs,
	})
	if e.Ended == 0 && !on.Began.IsZero() {
		// The work ended as its effects left, so it waited for the commit.
		t.Record(&tracing.Past{
			Name: commitSpan, Parent: e.Own, Began: on.Began, Ended: on.Ended,
			Attributes: []attribute.KeyValue{tracing.Requests.Int(on.Requests)},
		})
	}
}
