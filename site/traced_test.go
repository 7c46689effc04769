package site_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/samya-db/samya/internal/spanctx"
	"github.com/samya-db/samya/internal/tracing"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// noRoots begins no traces.
type noRoots struct{}

func (noRoots) Skip() uint64      { return math.MaxUint64 }
func (noRoots) ID() trace.TraceID { return trace.TraceID{} }

// TestTracesOfSites has an acquire wait for tokens of a site that knows no traces, and of one that does.
// The operation comes on a stream, and by a call of its own.
func TestTracesOfSites(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	traces := tracing.New(sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(recorder), sdktrace.WithIDGenerator(tracing.IDs{}), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample()))), noRoots{}, tracing.NewBound(1000))
	c := sitetest.Start(t, []string{"as", "eu", "us"}, func(cfg *site.Config) {
		if cfg.Strategy = "transfer"; cfg.Name != "as" {
			cfg.Traces = traces
		}
	})
	c.Create("acme/vm", 300)
	above := spanctx.Context{Trace: [16]byte{7}, Span: [8]byte{8}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := c.Tokens("us").Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	send := func(tag uint64, tokens int64, wire []byte) {
		t.Helper()
		if err := stream.Send(&samyav1.StreamRequest{Calls: []*samyav1.Call{{
			Tag: tag, Trace: wire,
			Operation: &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: tokens}}},
		}}}); err != nil {
			t.Fatal(err)
		}
		for {
			resp, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if len(resp.GetReplies()) == 0 {
				continue
			}
			if r := resp.GetReplies()[0]; r.GetTag() != tag || r.GetResult().GetAcquire().GetTokens() != tokens {
				t.Fatalf("answered %v", resp)
			}
			return
		}
	}
	send(1, 1, nil)
	send(2, 1, spanctx.Unrecorded.Bytes())
	send(3, 1, []byte("malformed"))
	send(4, 150, above.Bytes())
	sitetest.Eventually(t, "spans", func() error {
		names := make(map[string]int)
		for _, s := range recorder.Ended() {
			names[s.Name()]++
			if s.SpanContext().TraceID() != above.Trace {
				t.Errorf("%s is of another trace", s.Name())
			}
			if s.Name() == "samya.v1.TokenService/Acquire" {
				attrs := attribute.NewSet(s.Attributes()...)
				tokens, _ := attrs.Value(tracing.Tokens)
				requests, committed := attrs.Value(tracing.Requests)
				if s.Parent().SpanID() != above.Span || tokens.AsInt64() != 150 || !committed || requests.AsInt64() < 1 {
					t.Errorf("recorded %v, below %v", s.Attributes(), s.Parent())
				}
			}
		}
		// The receipt of what the site without traces has given is right below the transfer.
		if names["samya.v1.TokenService/Acquire"] != 1 || names["samya.wait"] != 1 || names["samya.transfer"] != 1 ||
			names["samya.transfer.give"] != 1 || names["samya.transfer.receive"] != 2 {
			return errors.New("not all spans are recorded")
		}
		return nil
	})
	if t.Failed() {
		t.Log(recorder.Ended())
	}
}
