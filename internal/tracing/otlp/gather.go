package otlp

import (
	"context"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// gatherTime is how long ended spans gather before the next processor gets them. That
	// processor wakes a goroutine, and maybe a thread, for each span that finds it idle.
	gatherTime = 100 * time.Millisecond
	// mostGathered bounds the spans that gather: a part of the default queue of the SDK.
	mostGathered = 1024
)

// gather hands ended spans to a processor, many at once.
type gather struct {
	sdktrace.SpanProcessor

	mu    sync.Mutex
	spans []sdktrace.ReadOnlySpan
	timer *time.Timer
}

// gathering returns a processor that hands ended spans to p.
func gathering(p sdktrace.SpanProcessor) *gather {
	g := &gather{SpanProcessor: p}
	g.timer = time.AfterFunc(gatherTime, g.hand)
	g.timer.Stop()
	return g
}

// OnEnd implements sdktrace.SpanProcessor.
func (g *gather) OnEnd(s sdktrace.ReadOnlySpan) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spans = append(g.spans, s)
	switch len(g.spans) {
	case 1:
		g.timer.Reset(gatherTime)
	case mostGathered:
		g.handAll()
	}
}

// hand hands over all spans that have gathered.
func (g *gather) hand() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handAll()
}

// handAll is hand with g.mu held. The next processor never blocks: it drops spans beyond its queue.
func (g *gather) handAll() {
	g.timer.Stop()
	for i, s := range g.spans {
		g.SpanProcessor.OnEnd(s)
		g.spans[i] = nil
	}
	g.spans = g.spans[:0]
}

// ForceFlush implements sdktrace.SpanProcessor.
func (g *gather) ForceFlush(ctx context.Context) error {
	g.hand()
	return g.SpanProcessor.ForceFlush(ctx)
}

// Shutdown implements sdktrace.SpanProcessor.
func (g *gather) Shutdown(ctx context.Context) error {
	g.hand()
	return g.SpanProcessor.Shutdown(ctx)
}
