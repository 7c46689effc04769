package site_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/samya-db/samya/internal/sitetest"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const callers = 64

// BenchmarkUnary measures durable acquires by gRPC straight to a site, each
// with an id of its own, in alternated rounds with a control: the same calls
// to a server that answers at once. Both are processes of their own. It
// reports medians and their ratio; on 2 cores 35,000 a second, 0.66 of the
// control.
func BenchmarkUnary(b *testing.B) {
	conn := startSite(b)
	control := startEcho(b)
	// A round of this many takes long enough to be a rate; one iteration of the
	// benchmark is all rounds.
	const rounds, perRound = 7, 15_000
	var sites, echoes []float64
	var ids atomic.Uint64
	b.ResetTimer()
	for range b.N * rounds {
		echoes = append(echoes, acquireAll(b, control, perRound, &ids))
		sites = append(sites, acquireAll(b, conn, perRound, &ids))
	}
	b.StopTimer()
	b.ReportMetric(median(sites), "site-ops/s")
	b.ReportMetric(median(echoes), "echo-ops/s")
	b.ReportMetric(median(sites)/median(echoes), "ratio")
	b.ReportMetric(0, "ns/op")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
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

// echoListen is the environment variable that makes this test binary the
// control: a bare gRPC server on the address it holds.
const echoListen = "SAMYA_BENCH_ECHO"

func TestMain(m *testing.M) {
	if addr := os.Getenv(echoListen); addr != "" {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		s := grpc.NewServer()
		samyav1.RegisterTokenServiceServer(s, echoServer{})
		fmt.Fprintln(os.Stderr, s.Serve(l))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// startEcho starts the control and returns a connection to it.
func startEcho(b *testing.B) *grpc.ClientConn {
	b.Helper()
	addr := sitetest.FreePort(b)
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), echoListen+"="+addr)
	return startProcess(b, cmd, addr)
}

// startSite builds samya, starts a site that is a cluster by itself, with its
// data on the file system of the work tree, creates an entity in it, and
// returns a connection to it.
func startSite(b *testing.B) *grpc.ClientConn {
	b.Helper()
	dir, err := os.MkdirTemp(".", "bench-*.tmp")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	binary := filepath.Join(dir, "samya")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", binary, "../cmd/samya")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("building samya: %v\n%s", err, out)
	}
	addr := sitetest.FreePort(b)
	conn := startProcess(b, exec.CommandContext(b.Context(), binary, "site", "--name", "us", "--members", "us",
		"--data", filepath.Join(dir, "data"), "--request-retention", "10s", "--log-level", "error",
		"--listen", addr, "--http", sitetest.FreePort(b), "--gossip", sitetest.FreePort(b), "--gossip-preset", "local"), addr)
	_, err = samyav1.NewEntityServiceClient(conn).CreateEntity(b.Context(),
		&samyav1.CreateEntityRequest{Name: "acme/vm", Limit: 1 << 50}, grpc.WaitForReady(true))
	if err != nil {
		b.Fatal(err)
	}
	return conn
}

// startProcess starts a server, to be ended with the benchmark.
func startProcess(b *testing.B, cmd *exec.Cmd, addr string) *grpc.ClientConn {
	b.Helper()
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}
