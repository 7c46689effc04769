package otlp

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/samya-db/samya/internal/tracing"
)

// samplerOf returns the sampler that OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG choose, as
// the specification of OpenTelemetry says, and the part of the traces beginning here that it
// records. With an error it returns the sampler used instead. The SDK chooses by itself as well,
// and does not tell.
func samplerOf(getenv func(string) string) (s sdktrace.Sampler, part float64, err error) {
	part = 1
	name := strings.ToLower(strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER")))
	if arg := strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER_ARG")); arg != "" && strings.HasSuffix(name, "traceidratio") {
		of, parseErr := strconv.ParseFloat(arg, 64)
		if parseErr == nil && of >= 0 && of <= 1 {
			part = of
		} else {
			err = fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %.32q, must be from 0 to 1", arg)
		}
	}
	switch name {
	case "always_on":
		return sdktrace.AlwaysSample(), 1, nil
	case "always_off":
		return sdktrace.NeverSample(), 0, nil
	case "traceidratio":
		return sdktrace.TraceIDRatioBased(part), part, err
	case "parentbased_always_off":
		return sdktrace.ParentBased(sdktrace.NeverSample()), 0, nil
	case "parentbased_traceidratio":
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(part)), part, err
	case "", "parentbased_always_on":
	default:
		err = fmt.Errorf("OTEL_TRACES_SAMPLER: unknown %.32q", name)
	}
	return sdktrace.ParentBased(sdktrace.AlwaysSample()), 1, err
}

// head records a part of the traces that begin here. It decides for many at once: a sampler of the
// SDK takes longer for each than a site takes for a part of its work on an acquire.
type head struct{ part float64 }

var _ tracing.Head = head{}

// Skip implements tracing.Head. The draws are geometric, as if each trace were drawn by itself.
func (h head) Skip() uint64 {
	switch {
	case h.part >= 1:
		return 0
	case h.part <= 0:
		return math.MaxUint64
	}
	skip := math.Log1p(-rand.Float64()) / math.Log1p(-h.part)
	return uint64(min(skip, 1<<62))
}

// ID implements tracing.Head. By the ids alone, the samplers of other processes that record the same
// part of all traces record these too.
func (h head) ID() trace.TraceID {
	id := tracing.NewTraceID()
	if bound := uint64(h.part * (1 << 63)); bound > 0 && h.part < 1 {
		binary.BigEndian.PutUint64(id[8:], rand.Uint64N(bound)<<1)
	}
	return id
}

// bounded is a sampler that records no more calls of other processes, and no more traces that begin
// here, than a bound allows.
type bounded struct {
	sdktrace.Sampler
	bound *tracing.Bound
}

// ShouldSample implements sdktrace.Sampler.
func (b bounded) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	r := b.Sampler.ShouldSample(p)
	above := trace.SpanContextFromContext(p.ParentContext)
	if r.Decision != sdktrace.RecordAndSample || above.IsValid() && !above.IsRemote() || tracing.Chosen(p.ParentContext) || b.bound.Take() {
		return r
	}
	return sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: above.TraceState()}
}
