package appmgr

import (
	"context"
	"net"
	"path"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/appmgr/limiter"
	"github.com/samya-db/samya/internal/apierr"
)

// counted returns how many calls of a method had an outcome.
func (r *rig) counted(method string, reason apierr.Reason) float64 {
	r.t.Helper()
	all, err := r.cfg.Registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	want := map[string]string{"api": "grpc", "method": method, "reason": string(reason)}
	for _, family := range all {
		if family.GetName() != "samya_appmgr_requests_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			if !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return want[l.GetName()] != l.GetValue() }) {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// overWire serves the gRPC API of a rig over a pipe. It returns the services of the
// server and a connection to it.
func (r *rig) overWire() (map[string]grpc.ServiceInfo, *grpc.ClientConn, func()) {
	gs, _, _ := r.grpcServer()
	pipe := bufconn.Listen(1 << 20)
	go func() { _ = gs.Serve(pipe) }()
	conn, err := grpc.NewClient("passthrough:///am", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	if err != nil {
		r.t.Fatal(err)
	}
	return gs.GetServiceInfo(), conn, func() {
		_ = conn.Close()
		gs.Stop()
	}
}

// invoke calls a method with an empty request, and returns the reason of the error. A
// stream that tells something is not refused.
func invoke(ctx context.Context, conn *grpc.ClientConn, method string, m grpc.MethodInfo) apierr.Reason {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if !m.IsClientStream && !m.IsServerStream {
		return reasonOf(conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}))
	}
	desc := &grpc.StreamDesc{ClientStreams: m.IsClientStream, ServerStreams: m.IsServerStream}
	s, err := conn.NewStream(ctx, desc, method)
	if err == nil {
		if err = s.SendMsg(&emptypb.Empty{}); err == nil || m.IsServerStream {
			err = s.RecvMsg(&emptypb.Empty{})
		}
	}
	return reasonOf(err)
}

func reasonOf(err error) apierr.Reason {
	if err == nil {
		return "OK"
	}
	return apierr.FromGRPC(err).Reason
}

// TestEveryMethodIsGuarded calls every method of the server: each is counted, bounded,
// refused at a stop and kept from ending the process. Health checks and the description
// of the API are only kept from ending it.
func TestEveryMethodIsGuarded(t *testing.T) {
	inBubble(t, fake.ThreeSites, func(c *Config) { c.MaxConcurrent = 1 }, func(r *rig) {
		t := r.t
		has, conn, stop := r.overWire()
		defer stop()
		guarded := 0
		each := func(what string, want apierr.Reason) {
			for service, info := range has {
				for _, m := range info.Methods {
					method := "/" + service + "/" + m.Name
					if open := []string{"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"}; slices.Contains(open, service) {
						if got := invoke(t.Context(), conn, method, m); got == apierr.Overloaded || got == apierr.ShuttingDown {
							t.Errorf("%s: %s is answered %s", what, method, got)
						}
						continue
					}
					guarded++
					before := r.counted(m.Name, want)
					if got := invoke(t.Context(), conn, method, m); got != want {
						t.Errorf("%s: %s is answered %q, want %q", what, method, got, want)
					}
					if n := r.counted(m.Name, want) - before; n != 1 {
						t.Errorf("%s: %s was counted %v times", what, method, n)
					}
				}
			}
		}
		release := make(chan struct{})
		fill := func() {
			held := func() error {
				<-release
				return nil
			}
			go func() { _ = r.limiter.Do(t.Context(), "grpc", "Acquire", held) }()
			for range limiter.MaxStreaming {
				for _, method := range []string{"WatchEntity", "WatchMembers", "Stream", "StreamRateLimitQuotas"} {
					go func() { _ = r.limiter.DoStreaming(t.Context(), "grpc", method, held) }()
				}
			}
			synctest.Wait()
		}
		fill()
		each("full", apierr.Overloaded)
		if got := r.limiter.UnderWay(); got != 4*limiter.MaxStreaming+1 {
			t.Errorf("%d requests and streams under way after refusals, want %d", got, 4*limiter.MaxStreaming+1)
		}
		close(release)
		synctest.Wait()
		r.limiter.Close()
		each("stopping", apierr.ShuttingDown)
		if guarded < 40 {
			t.Errorf("%d calls of guarded methods", guarded)
		}
	})
}

// TestPanicsEndNoMethod has every call of every method panic behind the limiter.
func TestPanicsEndNoMethod(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		// Without them the interceptor behind the limiter panics, and so do health checks.
		r.access, r.router = nil, nil
		has, conn, stop := r.overWire()
		defer stop()
		for service, info := range has {
			for _, m := range info.Methods {
				if service == healthpb.Health_ServiceDesc.ServiceName && m.Name == "List" {
					continue // it has nothing to panic over
				}
				if got := invoke(r.t.Context(), conn, path.Join("/", service, m.Name), m); got != apierr.Internal {
					r.t.Errorf("/%s/%s: %q, want %q", service, m.Name, got, apierr.Internal)
				}
			}
		}
		if n := r.limiter.UnderWay(); n != 0 {
			r.t.Errorf("%d calls are under way", n)
		}
	})
}

// TestUnknownMethodsShareAMetric: all unknown methods count under a single name.
func TestUnknownMethodsShareAMetric(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		_, conn, stop := r.overWire()
		defer stop()
		for _, method := range []string{"/x.Y/Z", "/samya.v1.TokenService/Borrow"} {
			if got := invoke(r.t.Context(), conn, method, grpc.MethodInfo{}); got != apierr.RouteNotFound {
				r.t.Errorf("%s: %q", method, got)
			}
		}
		if n := r.counted("none", apierr.RouteNotFound); n != 2 {
			r.t.Errorf("%v calls of unknown methods are counted", n)
		}
	})
}
