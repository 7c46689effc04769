package site_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/samya-db/samya/internal/sitetest"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
)

const callers = 64

// BenchmarkUnary measures durable acquires by gRPC straight to a site, each
// with an id of its own, in alternated rounds with a control: the same calls
// to a server that answers at once. It reports medians and their ratio.
func BenchmarkUnary(b *testing.B) {
	dir, err := os.MkdirTemp(".", "bench-*.tmp")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := sitetest.Start(b, []string{"us"}, func(cfg *site.Config) {
		cfg.DataDir, cfg.RequestRetention = dir, 10*time.Second
	})
	c.Create("acme/vm", 1<<50)
	control := echo(b)
	const rounds = 5
	var sites, echoes []float64
	var ids atomic.Uint64
	b.ResetTimer()
	for range rounds {
		n := max(callers, b.N/(2*rounds))
		echoes = append(echoes, acquireAll(b, control, n, &ids))
		sites = append(sites, acquireAll(b, c.Conn("us"), n, &ids))
	}
	b.StopTimer()
	slices.Sort(sites)
	slices.Sort(echoes)
	b.ReportMetric(sites[rounds/2], "site-ops/s")
	b.ReportMetric(echoes[rounds/2], "echo-ops/s")
	b.ReportMetric(sites[rounds/2]/echoes[rounds/2], "ratio")
	b.ReportMetric(0, "ns/op")
}

// acquireAll has all callers acquire n tokens together, one by one, and
// returns how many a second.
func acquireAll(b *testing.B, conn *grpc.ClientConn, n int, ids *atomic.Uint64) float64 {
	b.Helper()
	client := samyav1.NewTokenServiceClient(conn)
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan error, callers)
	began := time.Now()
	for range callers {
		go func() {
			for left.Add(-1) >= 0 {
				_, err := client.Acquire(context.Background(), &samyav1.AcquireRequest{
					Entity: "acme/vm", Tokens: 1, RequestId: strconv.FormatUint(ids.Add(1), 10),
				})
				if err != nil {
					done <- fmt.Errorf("acquire: %w", err)
					return
				}
			}
			done <- nil
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(began).Seconds()
}

type echoServer struct {
	samyav1.UnimplementedTokenServiceServer
}

func (echoServer) Acquire(_ context.Context, r *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	return &samyav1.AcquireResponse{Tokens: r.GetTokens(), RequestId: r.GetRequestId(), Site: "us"}, nil
}

// echo runs a bare gRPC server and returns a connection to it.
func echo(b *testing.B) *grpc.ClientConn {
	b.Helper()
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := grpc.NewServer()
	samyav1.RegisterTokenServiceServer(s, echoServer{})
	go func() { _ = s.Serve(l) }()
	b.Cleanup(s.Stop)
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	runtime.GC()
	return conn
}
