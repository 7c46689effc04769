// Package spans receives the traces of samya's processes by the OpenTelemetry protocol, and
// shows them as trees, for tests and for people without a collector. It keeps a bounded number
// of spans in memory. It refuses to be a store of traces.
package spans

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// maxSpans bounds the spans kept.
const maxSpans = 100_000

// Receiver is a server of the OpenTelemetry protocol over gRPC. Its methods may be called from
// several goroutines at once.
type Receiver struct {
	coltracepb.UnimplementedTraceServiceServer
	listener net.Listener
	server   *grpc.Server
	served   sync.WaitGroup

	mu             sync.Mutex
	spans          []Span
	count, exports int
	err            error
}

// Listen starts a receiver on an address, host:port. forget has it keep nothing and decode nothing, so
// that it takes little from a measurement.
func Listen(ctx context.Context, addr string, forget bool) (*Receiver, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("receiving traces: %w", err)
	}
	var options []grpc.ServerOption
	if forget {
		options = append(options, grpc.ForceServerCodecV2(unread{}))
	}
	r := &Receiver{listener: l, server: grpc.NewServer(options...)}
	coltracepb.RegisterTraceServiceServer(r.server, r)
	r.served.Go(func() {
		if err := r.server.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.err = err
		}
	})
	return r, nil
}

// Addr returns the address that the receiver listens on.
func (r *Receiver) Addr() string { return r.listener.Addr().String() }

// Close stops the receiver. It returns why serving failed before, if it did.
func (r *Receiver) Close() error {
	r.server.Stop()
	r.served.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Received returns how many spans have come, and in how many exports.
func (r *Receiver) Received() (spans, exports int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count, r.exports
}

// unread is a codec that decodes nothing.
type unread struct{}

// Name implements encoding.CodecV2.
func (unread) Name() string { return "proto" }

// Marshal implements encoding.CodecV2: the answer to an export has no fields.
func (unread) Marshal(any) (mem.BufferSlice, error) { return nil, nil }

// Unmarshal implements encoding.CodecV2.
func (unread) Unmarshal(mem.BufferSlice, any) error { return nil }

// Spans returns the spans kept, in the order in which they came.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Span(nil), r.spans...)
}

// Export implements coltracepb.TraceServiceServer.
func (r *Receiver) Export(_ context.Context, in *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exports++
	for _, resource := range in.GetResourceSpans() {
		about := attributes(resource.GetResource().GetAttributes())
		for _, scope := range resource.GetScopeSpans() {
			r.count += len(scope.GetSpans())
			for _, s := range scope.GetSpans() {
				if len(r.spans) == maxSpans {
					continue
				}
				r.spans = append(r.spans, Span{
					Trace: fmt.Sprintf("%x", s.GetTraceId()), ID: fmt.Sprintf("%x", s.GetSpanId()), Parent: fmt.Sprintf("%x", s.GetParentSpanId()),
					Name: s.GetName(), Process: about["service.name"] + " " + about["service.instance.id"], Resource: about,
					Began: s.GetStartTimeUnixNano(), Ended: s.GetEndTimeUnixNano(), Attributes: attributes(s.GetAttributes()),
				})
			}
		}
	}
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

// attributes are attributes as texts.
func attributes(list []*commonpb.KeyValue) map[string]string {
	all := make(map[string]string, len(list))
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			all[a.GetKey()] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			all[a.GetKey()] = fmt.Sprint(v.IntValue)
		case *commonpb.AnyValue_BoolValue:
			all[a.GetKey()] = fmt.Sprint(v.BoolValue)
		case *commonpb.AnyValue_DoubleValue:
			all[a.GetKey()] = fmt.Sprint(v.DoubleValue)
		}
	}
	return all
}
