// Package otlp exports the traces of a process by the OpenTelemetry protocol, as the
// environment variables of OpenTelemetry say. It records nothing unless they ask for it, and
// never holds up a request: spans beyond a bounded queue are dropped.
package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/samya-db/samya/internal/tracing"
)

// Process describes the process in its traces. Environment variables can say otherwise.
type Process struct {
	// Service names the program, Instance the process within Cluster.
	Service, Instance, Cluster string
	// Version is the version of the program, Region where the process stands; each may be
	// empty.
	Version, Region string
	// Logger is told of faults.
	Logger *slog.Logger
	// Getenv reads an environment variable, as os.Getenv does. The library reads the rest by
	// itself: OTEL_EXPORTER_OTLP_…, OTEL_BSP_…, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME.
	Getenv func(string) string
}

// Exporter exports the traces of a process.
type Exporter struct {
	// Traces makes the spans; nil if the environment does not ask for traces.
	Traces   *tracing.Traces
	provider *sdktrace.TracerProvider
}

// Off reports whether the environment does not ask for traces: OTEL_SDK_DISABLED is true,
// OTEL_TRACES_EXPORTER is none, or neither it nor an endpoint is set.
func Off(getenv func(string) string) bool {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return true
	}
	switch exporter := strings.ToLower(getenv("OTEL_TRACES_EXPORTER")); exporter {
	case "none":
		return true
	case "":
		return getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == ""
	}
	return false
}

// Start starts the export, if the environment asks for it. An environment that asks for something that
// this package does not do is logged, and has no traces: they are not worth a process that
// does not start. An endpoint that does not answer is no error.
func Start(ctx context.Context, p Process) (*Exporter, error) {
	if Off(p.Getenv) {
		return &Exporter{}, nil
	}
	p.Logger = cmp.Or(p.Logger, slog.New(slog.DiscardHandler))
	if e := strings.ToLower(cmp.Or(p.Getenv("OTEL_TRACES_EXPORTER"), "otlp")); e != "otlp" {
		p.Logger.WarnContext(ctx, "no traces: OTEL_TRACES_EXPORTER must be otlp or none", slog.String("exporter", e))
		return &Exporter{}, nil
	}
	exporter, err := exporterOf(ctx, cmp.Or(p.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), p.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf"))
	if errors.Is(err, errProtocol) {
		p.Logger.WarnContext(ctx, "no traces", slog.Any("error", err))
		return &Exporter{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("exporting traces: %w", err)
	}
	about, err := p.resource(ctx)
	if err != nil {
		// The description in the environment is at fault; the rest stands.
		p.Logger.WarnContext(ctx, "a part of the resource of traces is missing", slog.Any("error", err))
	}
	sampler, part, err := samplerOf(p.Getenv)
	if err != nil {
		p.Logger.WarnContext(ctx, "another sampler of traces is used", slog.Any("error", err), slog.String("sampler", sampler.Description()))
	}
	otel.SetErrorHandler(&seldom{log: p.Logger})
	bound := tracing.NewBound(mostTraces)
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(gathering(sdktrace.NewBatchSpanProcessor(exporter))), sdktrace.WithResource(about), sdktrace.WithSampler(bounded{sampler, bound}), sdktrace.WithIDGenerator(tracing.IDs{}))
	p.Logger.InfoContext(ctx, "traces are exported", slog.String("sampler", sampler.Description()))
	return &Exporter{Traces: tracing.New(provider, head{part}, bound), provider: provider}, nil
}

// Stop exports all spans that are recorded and not exported yet, until ctx ends.
func (e *Exporter) Stop(ctx context.Context) error {
	if e.provider == nil {
		return nil
	}
	if err := e.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("exporting the last traces: %w", err)
	}
	return nil
}

// errProtocol: the protocol of export is not known.
var errProtocol = errors.New("OTEL_EXPORTER_OTLP_PROTOCOL must be grpc or http/protobuf")

func exporterOf(ctx context.Context, protocol string) (*otlptrace.Exporter, error) {
	switch protocol {
	case "grpc":
		return otlptracegrpc.New(ctx)
	case "http/protobuf":
		return otlptracehttp.New(ctx)
	}
	return nil, fmt.Errorf("%w, not %.32q", errProtocol, protocol)
}

// resource describes the process. On an error it still has the parts that are not at fault.
func (p *Process) resource(ctx context.Context) (*resource.Resource, error) {
	attrs := []attribute.KeyValue{
		attribute.String("service.name", p.Service), attribute.String("service.instance.id", p.Instance), attribute.String("service.namespace", p.Cluster),
	}
	for key, value := range map[string]string{"service.version": p.Version, "cloud.region": p.Region} {
		if value != "" {
			attrs = append(attrs, attribute.String(key, value))
		}
	}
	return resource.New(ctx, resource.WithAttributes(attrs...), resource.WithTelemetrySDK(), resource.WithFromEnv())
}

// mostTraces bounds the calls of a process that are recorded in a second. Each takes about 5 µs of
// processor time.
const mostTraces = 1000

// quietTime is the shortest time between two faults that are logged.
const quietTime = time.Minute

// seldom logs faults of the export, at most once in quietTime.
type seldom struct {
	log *slog.Logger

	mu     sync.Mutex
	logged time.Time
	others int
}

// Handle implements otel.ErrorHandler.
func (s *seldom) Handle(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.logged.IsZero() && now.Sub(s.logged) < quietTime {
		s.others++
		return
	}
	s.log.Warn("traces could not be exported", slog.Any("error", err), slog.Int("others", s.others))
	s.logged, s.others = now, 0
}
