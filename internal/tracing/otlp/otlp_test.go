package otlp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/samya-db/samya/internal/tracing"
)

// env is an environment; the library itself reads that of the process.
func env(t *testing.T, pairs ...string) func(string) string {
	t.Helper()
	all := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
		t.Setenv(pairs[i], pairs[i+1])
	}
	return func(name string) string { return all[name] }
}

const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"

func TestOff(t *testing.T) {
	for _, tc := range []struct {
		off   bool
		pairs []string
	}{
		{true, nil},
		{true, []string{"OTEL_SERVICE_NAME", "x", "OTEL_TRACES_SAMPLER", "always_on"}},
		{true, []string{"OTEL_TRACES_EXPORTER", "none", endpoint, "http://127.0.0.1:1"}},
		{true, []string{"OTEL_SDK_DISABLED", "TRUE", endpoint, "http://127.0.0.1:1"}},
		{false, []string{endpoint, "http://127.0.0.1:1"}},
		{false, []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1"}},
		{false, []string{"OTEL_TRACES_EXPORTER", "otlp"}},
	} {
		t.Run(strings.Join(tc.pairs, " "), func(t *testing.T) {
			if got := Off(env(t, tc.pairs...)); got != tc.off {
				t.Errorf("off: %v", got)
			}
		})
	}
}

// TestStart: an environment that asks for something unknown is told, and has no traces.
func TestStart(t *testing.T) {
	for name, tc := range map[string]struct {
		pairs []string
		on    bool
		log   string
	}{
		"off":      {nil, false, ""},
		"exporter": {[]string{"OTEL_TRACES_EXPORTER", "zipkin"}, false, "OTEL_TRACES_EXPORTER must be otlp or none"},
		"protocol": {[]string{endpoint, "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"}, false, "must be grpc or http/protobuf"},
		"sampler":  {[]string{endpoint, "http://127.0.0.1:1", "OTEL_TRACES_SAMPLER", "some"}, true, "another sampler of traces is used"},
		"grpc":     {[]string{endpoint, "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, true, "traces are exported"},
		"http":     {[]string{endpoint, "http://127.0.0.1:1"}, true, "traces are exported"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			e, err := Start(t.Context(), Process{Service: "samya-site", Instance: "us", Logger: slog.New(slog.NewTextHandler(&b, nil)), Getenv: env(t, tc.pairs...)})
			if err != nil {
				t.Fatal(err)
			}
			if (e.Traces != nil) != tc.on || !strings.Contains(b.String(), tc.log) {
				t.Errorf("traces: %v, log: %s", e.Traces != nil, &b)
			}
			if err := e.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSamplers(t *testing.T) {
	for _, tc := range []struct {
		name, arg, want string
		part            float64
		fault           bool
	}{
		{"", "", "ParentBased{root:AlwaysOnSampler", 1, false},
		{"always_on", "0.5", "AlwaysOnSampler", 1, false},
		{"always_off", "", "AlwaysOffSampler", 0, false},
		{"traceidratio", "0.25", "TraceIDRatioBased{0.25}", 0.25, false},
		{"parentbased_always_on", "", "ParentBased{root:AlwaysOnSampler", 1, false},
		{"parentbased_always_off", "", "ParentBased{root:AlwaysOffSampler", 0, false},
		{" ParentBased_TraceIDRatio", "0.01", "ParentBased{root:TraceIDRatioBased{0.01}", 0.01, false},
		{"parentbased_traceidratio", "", "ParentBased{root:TraceIDRatioBased{1}", 1, false},
		{"parentbased_traceidratio", "2", "ParentBased{root:TraceIDRatioBased{1}", 1, true},
		{"traceidratio", "NaN", "TraceIDRatioBased{1}", 1, true},
		{"traceidratio", "much", "TraceIDRatioBased{1}", 1, true},
		{"jaeger_remote", "", "ParentBased{root:AlwaysOnSampler", 1, true},
	} {
		s, part, err := samplerOf(func(name string) string {
			return map[string]string{"OTEL_TRACES_SAMPLER": tc.name, "OTEL_TRACES_SAMPLER_ARG": tc.arg}[name]
		})
		if (err != nil) != tc.fault || !strings.HasPrefix(s.Description(), tc.want) || part != tc.part {
			t.Errorf("%q %q: %s, %v, %v", tc.name, tc.arg, s.Description(), part, err)
		}
	}
}

// TestHead: traces begin here as often as the sampler says, and the sampler takes them all.
func TestHead(t *testing.T) {
	for _, part := range []float64{1e-9, 0.01, 0.1, 0.5, 0.999, 1} {
		h, s := head{part}, sdktrace.TraceIDRatioBased(part)
		for range 1000 {
			id := h.ID()
			if d := s.ShouldSample(sdktrace.SamplingParameters{ParentContext: t.Context(), TraceID: id}); !id.IsValid() || d.Decision != sdktrace.RecordAndSample {
				t.Fatalf("part %v: the sampler does not take %s", part, id)
			}
		}
		const draws = 20_000
		skipped := 0.
		for range draws {
			skipped += float64(h.Skip())
		}
		// The mean, and 10 standard errors.
		if want, margin := 1/part-1, 10*math.Sqrt(1-part)/part/math.Sqrt(draws); math.Abs(skipped/draws-want) > margin {
			t.Errorf("part %v: skips %v on average, want %v", part, skipped/draws, want)
		}
	}
	if n := (head{0}).Skip(); n != math.MaxUint64 {
		t.Errorf("no traces: skips %d", n)
	}
}

// TestFaultsAreLoggedSeldom: an endpoint that is down is told once in a while.
func TestFaultsAreLoggedSeldom(t *testing.T) {
	var b bytes.Buffer
	s := &seldom{log: slog.New(slog.NewTextHandler(&b, nil))}
	for range 100 {
		s.Handle(errors.New("refused"))
	}
	if n := strings.Count(b.String(), "refused"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	s.logged = s.logged.Add(-quietTime - time.Second)
	s.Handle(errors.New("refused"))
	if !strings.Contains(b.String(), "others=99") {
		t.Error(b.String())
	}
}

// TestGather: spans reach the next processor together, in order, soon, and at a shutdown.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(gathering(recorder)))
		end := func(n int) {
			for range n {
				_, span := provider.Tracer("test").Start(t.Context(), "x")
				span.End()
			}
		}
		end(3)
		if n := len(recorder.Ended()); n != 0 {
			t.Errorf("%d spans came at once", n)
		}
		time.Sleep(gatherTime) //nolint:forbidigo // simulated time
		synctest.Wait()
		if n := len(recorder.Ended()); n != 3 {
			t.Errorf("%d spans came in time, want 3", n)
		}
		end(mostGathered + 2)
		if n := len(recorder.Ended()); n != 3+mostGathered {
			t.Errorf("%d spans came of many, want %d", n, 3+mostGathered)
		}
		if err := provider.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(recorder.Ended()); n != 5+mostGathered {
			t.Errorf("%d spans came at the end, want %d", n, 5+mostGathered)
		}
	})
}

// TestBounded: spans below a span of this process, and those decided on before, do not count.
func TestBounded(t *testing.T) {
	s := bounded{sdktrace.AlwaysSample(), tracing.NewBound(2)}
	sampled := func(ctx context.Context) bool {
		return s.ShouldSample(sdktrace.SamplingParameters{ParentContext: ctx, TraceID: tracing.NewTraceID()}).Decision == sdktrace.RecordAndSample
	}
	above := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled})
	remote, local := trace.ContextWithRemoteSpanContext(t.Context(), above), trace.ContextWithSpanContext(t.Context(), above)
	if !sampled(t.Context()) || !sampled(remote) {
		t.Error("the first two are dropped")
	}
	if sampled(remote) || sampled(t.Context()) {
		t.Error("the next two are recorded")
	}
	if !sampled(local) {
		t.Error("a span below another of this process is dropped")
	}
}
