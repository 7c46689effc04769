package site_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/samya-db/samya/internal/buildtest"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

const callers = 64

// BenchmarkUnary measures durable acquires by gRPC straight to a site, each
// with an id of its own, in alternated rounds with a control: the same calls
// to a server that answers at once. Both are processes of their own. It
// reports medians, their ratio, and the processor time and the allocations of each
// process per call.
func BenchmarkUnary(b *testing.B) {
	s := startSite(b, buildSamya(b))
	control := startEcho(b, "grpc")
	compare(b, control, []*process{s.process}, grpcAcquire(dial(b, control.addr)), grpcAcquire(dial(b, s.addr)))
}

// compare measures both ways to acquire in alternated rounds, first echo at the control,
// then acquire through the servers.
func compare(b *testing.B, control *process, servers []*process, echo, acquire func(id string) error) {
	b.Helper()
	// A round of this many takes long enough to be a rate.
	const perRound = 15_000
	compareOf(b, callers, perRound, 1, control, servers, echo, acquire)
}

// compareOf is compare with the given callers, calls a round and operations a call.
func compareOf(
	b *testing.B, callers, perRound, each int, control *process, servers []*process, echo, acquire func(id string) error,
) {
	b.Helper()
	// An iteration of the benchmark is all rounds.
	const rounds = 7
	var ids atomic.Uint64
	round := func(do func(id string) error) float64 { return acquireAll(b, callers, do, perRound, &ids) }
	// The first calls make connections and fill pools.
	round(echo)
	round(acquire)
	var rates, echoes []float64
	before, made := map[*process]time.Duration{}, map[*process]float64{}
	for _, p := range append(servers, control) {
		before[p], made[p] = p.cpu(b), p.allocations(b)
	}
	b.ResetTimer()
	for range b.N * rounds {
		echoes = append(echoes, round(echo))
		rates = append(rates, round(acquire))
	}
	b.StopTimer()
	operations := float64(b.N * rounds * perRound * each)
	for p, was := range before {
		b.ReportMetric(float64((p.cpu(b)-was).Microseconds())/operations, p.name+"-cpu-µs/op")
		if p.http != "" {
			b.ReportMetric((p.allocations(b)-made[p])/operations, p.name+"-allocs/op")
		}
	}
	b.ReportMetric(median(rates)*float64(each), "ops/s")
	b.ReportMetric(median(echoes)*float64(each), "echo-ops/s")
	b.ReportMetric(median(rates)/median(echoes), "ratio")
	b.ReportMetric(0, "ns/op")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// acquireAll has all callers acquire n tokens together, token by token, and returns the
// tokens per second.
func acquireAll(b *testing.B, callers int, acquire func(id string) error, n int, ids *atomic.Uint64) float64 {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan error, callers)
	began := time.Now()
	for range callers {
		go func() {
			for left.Add(-1) >= 0 {
				if err := acquire(strconv.FormatUint(ids.Add(1), 10)); err != nil {
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

// grpcAcquire acquires by unary calls on a connection.
func grpcAcquire(conn *grpc.ClientConn) func(string) error {
	client := samyav1.NewTokenServiceClient(conn)
	return func(id string) error {
		_, err := client.Acquire(context.Background(), &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: id})
		return err
	}
}

type echoServer struct {
	samyav1.UnimplementedTokenServiceServer
}

func (e echoServer) Acquire(_ context.Context, r *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	return &samyav1.AcquireResponse{Tokens: r.GetTokens(), RequestId: r.GetRequestId(), Site: "us"}, nil
}

// The environment of this test binary as a control: the address of a bare server, and its
// kind, grpc or http.
const echoListen, echoKind = "SAMYA_BENCH_ECHO", "SAMYA_BENCH_ECHO_KIND"

func TestMain(m *testing.M) {
	if addr := os.Getenv(echoListen); addr != "" {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
		if err == nil && os.Getenv(echoKind) == "http" {
			err = http.Serve(l, http.HandlerFunc(echoHTTP)) //nolint:gosec // The control has no bounds to keep.
		} else if err == nil {
			s := grpc.NewServer()
			samyav1.RegisterTokenServiceServer(s, echoServer{})
			err = s.Serve(l)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// startEcho starts a control.
func startEcho(b *testing.B, kind string) *process {
	b.Helper()
	addr := sitetest.FreePort(b)
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), echoListen+"="+addr, echoKind+"="+kind)
	return startProcess(b, "echo", cmd, addr)
}

// samya is a binary and a directory for the data of its processes, on the file system of
// the work tree.
type samya struct{ binary, dir string }

func buildSamya(b *testing.B) samya {
	b.Helper()
	dir, err := os.MkdirTemp(".", "bench-*.tmp")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	binary, err := buildtest.Samya(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	return samya{binary, dir}
}

// siteProcess is a site that is a cluster by itself.
type siteProcess struct {
	*process
	gossip string
}

// startSite starts a site, with further flags, and creates an entity in it.
func startSite(b *testing.B, s samya, flags ...string) siteProcess {
	b.Helper()
	addr, http, gossip := sitetest.FreePort(b), sitetest.FreePort(b), sitetest.FreePort(b)
	args := []string{
		"site", "--name", "us", "--members", "us",
		"--data", filepath.Join(s.dir, "data"), "--request-retention", "10s", "--log-level", "error",
		"--grpc", addr, "--http", http, "--gossip", gossip, "--preset", "local",
	}
	p := startProcess(b, "site", exec.CommandContext(b.Context(), s.binary, append(args, flags...)...), addr)
	_, err := samyav1.NewEntityServiceClient(dial(b, addr)).CreateEntity(b.Context(),
		&samyav1.CreateEntityRequest{Name: "acme/vm", Limit: 1 << 50}, grpc.WaitForReady(true))
	if err != nil {
		b.Fatal(err)
	}
	p.http = http
	return siteProcess{p, gossip}
}

// process is a server of a benchmark, ended with it.
type process struct {
	name, addr string
	pid        int
	http       string // where its metrics are; empty: it has none
	stop       func() // ends it
	gossip     string
	dialed     sync.Once
	link       *grpc.ClientConn
}

// conn is the connection to the process.
func (p *process) conn(b *testing.B) *grpc.ClientConn {
	b.Helper()
	p.dialed.Do(func() { p.link = dial(b, p.addr) })
	return p.link
}

// startProcess starts a server that will listen on the address.
func startProcess(b *testing.B, name string, cmd *exec.Cmd, addr string) *process {
	b.Helper()
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	b.Cleanup(stop)
	sitetest.Eventually(b, name+" listens", func() error {
		c, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", addr)
		if err != nil {
			return err
		}
		return c.Close()
	})
	return &process{name: name, addr: addr, pid: cmd.Process.Pid, stop: stop}
}

// allocations is the number of objects that the process has allocated; 0 if it does not
// tell.
func (p *process) allocations(b *testing.B) float64 {
	b.Helper()
	if p.http == "" {
		return 0
	}
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+p.http+"/metrics", nil)
	if err != nil {
		b.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\ngo_memstats_mallocs_total ")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(line, 64)
	if !found || err != nil {
		b.Fatalf("%s tells no allocations: %v", p.name, err)
	}
	return n
}

// cpu is the processor time that the process has used; 0 where there is no
// /proc to tell.
func (p *process) cpu(b *testing.B) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return 0
	}
	// The name, in brackets, may hold spaces; user and system time are the 12th
	// and 13th fields behind it, in hundredths of a second.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			b.Fatalf("processor time of %s: %v", p.name, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// dial connects to a server.
func dial(tb testing.TB, addr string) *grpc.ClientConn {
	tb.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}
