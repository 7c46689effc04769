package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/spanctx"
	"github.com/samya-db/samya/internal/tracing"
)

var above = spanctx.Context{Trace: [16]byte{1}, Span: [8]byte{2}}

// rig is a Traces, with the spans that it has recorded.
type rig struct {
	*tracing.Traces
	recorded *tracetest.SpanRecorder
}

// newRig makes a Traces that begins traces if roots.
func newRig(roots bool) rig {
	recorded := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorded), sdktrace.WithIDGenerator(tracing.IDs{}))
	return rig{tracing.New(provider, head{roots}, tracing.NewBound(100)), recorded}
}

// head records all traces or none.
type head struct{ all bool }

func (h head) Skip() uint64 {
	if h.all {
		return 0
	}
	return math.MaxUint64
}

func (head) ID() trace.TraceID { return tracing.NewTraceID() }

const method = "/samya.v1.TokenService/Acquire"

// TestOperation: the caller's decision about a trace stands, and without one the process decides.
func TestOperation(t *testing.T) {
	for name, tc := range map[string]struct {
		wire  []byte
		roots bool
		// recorded, and of the caller's trace
		recorded, continued bool
	}{
		"recorded by the caller":           {above.Bytes(), false, true, true},
		"unrecorded by the caller":         {spanctx.Unrecorded.Bytes(), true, false, false},
		"of an older caller":               {nil, true, true, false},
		"of an older caller, not recorded": {nil, false, false, false},
		"malformed":                        {[]byte("x"), true, true, false},
	} {
		r := newRig(tc.roots)
		at := time.Unix(5, 0)
		ctx, span := r.Operation(t.Context(), tc.wire, new(tracing.Roots), method, at)
		if (span != nil) != tc.recorded {
			t.Errorf("%s: recorded: %v", name, span != nil)
		}
		wire := r.Caller(ctx).Bytes()
		if got := spanctx.Parse(wire); (got != nil) != tc.recorded || !spanctx.Decided(wire) {
			t.Errorf("%s: told on as %x", name, wire)
		}
		if span == nil {
			continue
		}
		tracing.End(span, nil)
		s := r.recorded.Ended()[0]
		if s.Name() != "samya.v1.TokenService/Acquire" || s.SpanKind() != trace.SpanKindServer || !s.StartTime().Equal(at) {
			t.Errorf("%s: recorded %v", name, s)
		}
		if continued := s.SpanContext().TraceID() == above.Trace && s.Parent().SpanID() == above.Span && s.Parent().IsRemote(); continued != tc.continued {
			t.Errorf("%s: below %v", name, s.Parent())
		}
	}
}

// TestRecord: a past span has the ids and times that it is given, below its parent.
func TestRecord(t *testing.T) {
	r := newRig(true)
	own := above.Child(1, 1)
	began, ended := time.Unix(1, 0), time.Unix(2, 0)
	r.Record(&tracing.Past{Name: "past", Own: own, Parent: &above, Remote: true, Began: began, Ended: ended})
	r.Record(&tracing.Past{Name: "drawn", Parent: &above, Began: began, Ended: ended})
	r.Record(&tracing.Past{Name: "of nothing"})
	all := r.recorded.Ended()
	if len(all) != 2 {
		t.Fatalf("%d spans", len(all))
	}
	for i, s := range all {
		if s.Parent().SpanID() != above.Span || s.SpanContext().TraceID() != above.Trace || !s.StartTime().Equal(began) || !s.EndTime().Equal(ended) {
			t.Errorf("span %d: %v", i, s)
		}
	}
	if got := tracing.Of(all[0].SpanContext()); *got != *own || !all[0].Parent().IsRemote() || all[1].Parent().IsRemote() {
		t.Errorf("recorded %v, want %v", got, own)
	}
}

// TestOff: a nil Traces makes nothing, and no allocation where requests pass.
func TestOff(t *testing.T) {
	var off *tracing.Traces
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		_, op := off.Operation(ctx, nil, nil, method, time.Time{})
		_, span := off.Start(ctx, "x", trace.SpanKindInternal)
		if op != nil || span != nil || off.Recorded(ctx) != nil || off.Caller(ctx) != nil || off.Current(ctx) != nil {
			t.Error("there is a span")
		}
		off.Record(nil)
		tracing.End(nil, nil)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if off.Server() != nil || off.Dial() != nil {
		t.Error("gRPC makes spans")
	}
	if h := http.NotFoundHandler(); off.HTTP(h, nil) == nil {
		t.Error("no handler")
	}
}

// TestUnrecordedCostsNoMemory: a process that records few traces pays no allocation for others.
func TestUnrecordedCostsNoMemory(t *testing.T) {
	r := newRig(false)
	ctx, unrecorded := t.Context(), spanctx.Unrecorded.Bytes()
	var roots tracing.Roots
	if n := testing.AllocsPerRun(100, func() {
		_, _ = r.Operation(ctx, nil, &roots, method, time.Time{})
		_, _ = r.Operation(ctx, unrecorded, &roots, method, time.Time{})
		_, _ = r.Start(ctx, "x", trace.SpanKindInternal)
		_ = r.Caller(ctx)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestEnd: a fault is an error of the span, a refusal is not.
func TestEnd(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want codes.Code
	}{{nil, codes.Unset}, {apierr.New(apierr.OutOfTokens, ""), codes.Unset}, {apierr.New(apierr.Internal, ""), codes.Error}, {errors.New("x"), codes.Error}} {
		r := newRig(true)
		_, span := r.Operation(t.Context(), nil, new(tracing.Roots), method, time.Now())
		tracing.End(span, tc.err)
		if got := r.recorded.Ended()[0].Status().Code; got != tc.want {
			t.Errorf("%v: status %v", tc.err, got)
		}
	}
}

// TestHTTP: a request goes on with the trace of its traceparent, and an error tells the trace.
func TestHTTP(t *testing.T) {
	r := newRig(false)
	h := r.HTTP(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		apierr.WriteProblem(w, req, apierr.New(apierr.OutOfTokens, ""))
	}), func(req *http.Request) (string, bool) { return "name", req.URL.Path == "/api" })
	for _, path := range []string{"/api", "/metrics"} {
		req := httptest.NewRequestWithContext(t.Context(), "POST", path, nil)
		req.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if told := strings.Contains(w.Body.String(), `"trace_id":"0af7651916cd43dd8448eb211c80319c"`); told != (path == "/api") {
			t.Errorf("%s: answered %s", path, w.Body)
		}
	}
	all := r.recorded.Ended()
	if len(all) != 1 || all[0].Name() != "name" || all[0].Parent().SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("recorded %v", all)
	}
}

// TestLog: a log with a trace in its context tells it, also after With.
func TestLog(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(tracing.Log(slog.NewJSONHandler(&b, nil))).With("name", "us")
	ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: above.Trace, SpanID: above.Span}))
	log.InfoContext(ctx, "with")
	log.Info("without")
	lines := strings.Split(b.String(), "\n")
	if !strings.Contains(lines[0], `"trace_id":"01000000000000000000000000000000","span_id":"0200000000000000"`) || strings.Contains(lines[1], "trace_id") {
		t.Error(b.String())
	}
}

// TestObserve: a recorded request is the exemplar of its histogram, once in a while.
func TestObserve(t *testing.T) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: []float64{1, 2}})
	r := newRig(true)
	r.Observe(h, 0.5, nil)
	r.Observe(h, 1.5, &above)
	r.Observe(h, 1.5, above.Child(1, 1))
	var off *tracing.Traces
	off.Observe(h, 0.5, &above)
	var m dto.Metric
	if err := h.Write(&m); err != nil {
		t.Fatal(err)
	}
	buckets := m.GetHistogram().GetBucket()
	if m.GetHistogram().GetSampleCount() != 4 || buckets[0].GetExemplar() != nil || buckets[1].GetExemplar().GetLabel()[0].GetValue() != "01000000000000000000000000000000" {
		t.Errorf("%v", &m)
	}
}

// TestRecordRoot: a past span without a parent begins a trace.
func TestRecordRoot(t *testing.T) {
	r := newRig(true)
	p, recorded := r.Begin(nil, new(tracing.Roots))
	own := &p.Own
	if !recorded || p.Above() != nil {
		t.Fatalf("began %v", p)
	}
	r.Record(&tracing.Past{Name: "root", Own: own, Server: true, Remote: true, Began: time.Unix(1, 0), Ended: time.Unix(2, 0), Err: apierr.New(apierr.Internal, "")})
	s := r.recorded.Ended()[0]
	if *tracing.Of(s.SpanContext()) != *own || s.Parent().IsValid() || s.SpanKind() != trace.SpanKindServer || s.Status().Code != codes.Error {
		t.Errorf("recorded %v", s)
	}
}

// TestSpansBelow: a span below that of an operation has an id of its own.
func TestSpansBelow(t *testing.T) {
	r := newRig(false)
	ctx, span := r.Operation(t.Context(), above.Bytes(), new(tracing.Roots), method, time.Now())
	_, below := r.Start(ctx, "below", trace.SpanKindClient)
	tracing.End(below, nil)
	tracing.End(span, nil)
	all := r.recorded.Ended()
	if len(all) != 2 || all[0].SpanContext().SpanID() == all[1].SpanContext().SpanID() || all[0].Parent().SpanID() != all[1].SpanContext().SpanID() {
		t.Errorf("recorded %v", all)
	}
}

// TestBound: callers that have all their calls recorded have some recorded.
func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(true)
		var roots tracing.Roots
		for range 3 {
			n := 0
			for i := range 500 {
				wire := above.Bytes()
				if i%2 == 0 {
					wire = nil
				}
				if _, recorded := r.Begin(wire, &roots); recorded {
					n++
				}
			}
			if n != 100 {
				t.Errorf("%d are recorded in a second, want 100", n)
			}
			time.Sleep(time.Second) //nolint:forbidigo // simulated time
		}
	})
}
