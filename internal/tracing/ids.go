package tracing

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
)

// IDs draws the ids of traces and spans, unless this package has chosen them for a span. It
// is an IDGenerator of OpenTelemetry's SDK.
type IDs struct{}

type idsKey struct{}

// ids are chosen; a zero id is drawn.
type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// withIDs chooses the ids of the next span of ctx.
func withIDs(ctx context.Context, traceID trace.TraceID, spanID trace.SpanID) context.Context {
	return context.WithValue(ctx, idsKey{}, ids{traceID, spanID})
}

// Chosen reports whether this package has decided that the next span of ctx is recorded.
func Chosen(ctx context.Context) bool {
	_, chosen := ctx.Value(idsKey{}).(ids)
	return chosen
}

// NewIDs returns the ids of a trace and of its first span.
func (g IDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	chosen, _ := ctx.Value(idsKey{}).(ids)
	if !chosen.trace.IsValid() {
		chosen.trace = NewTraceID()
	}
	return chosen.trace, g.NewSpanID(ctx, chosen.trace)
}

// NewSpanID returns the id of a further span of a trace.
func (IDs) NewSpanID(ctx context.Context, of trace.TraceID) trace.SpanID {
	if chosen, ok := ctx.Value(idsKey{}).(ids); ok && chosen.span.IsValid() && chosen.trace == of {
		return chosen.span
	}
	return newSpanID()
}

// newSpanID draws the id of a span.
func newSpanID() (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}

// NewTraceID draws the id of a trace.
func NewTraceID() trace.TraceID {
	var id trace.TraceID
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()|1)
	return id
}
