package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"github.com/samya-db/samya/devcluster/proc"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// EchoCommand is the argument with which [Echo.Bin] runs [ServeEcho] on the two
// addresses that follow, for gRPC and for HTTP.
const EchoCommand = "echo"

// Echo is a server that answers at once, over gRPC or HTTP: an upper bound for an
// operation a call.
type Echo struct {
	// Bin is a program that knows [EchoCommand].
	Bin string
	// HTTP asks the server over HTTP.
	HTTP bool
}

// About describes the server.
func (e Echo) About() About {
	a := About{
		Name: BareGRPC, Kind: Control, Promise: "a gRPC server that answers at once",
		Ways: []Way{{Name: WayEcho, Callers: manyCallers, Batch: 1}},
	}
	if e.HTTP {
		a.Name, a.Promise = BareHTTP, "a net/http server that reads the body and answers at once"
	}
	return a
}

// Start starts the server.
func (e Echo) Start(ctx context.Context, env *Env) (Running, error) {
	addrs, err := proc.FreePorts(ctx, 2)
	if err != nil {
		return nil, err
	}
	p, err := env.Programs.Start(proc.Program{
		Name: "echo", Argv: []string{e.Bin, EchoCommand, addrs[0], addrs[1]}, Log: env.logFile("echo"),
	})
	if err != nil {
		return nil, err
	}
	r := &runningEcho{process: p, grpc: addrs[0], http: addrs[1], isHTTP: e.HTTP}
	return r, poll(ctx, p, func(ctx context.Context) error {
		for _, addr := range addrs {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			if err != nil {
				return err
			}
			_ = conn.Close()
		}
		return nil
	})
}

// poll retries try until it succeeds, the process ends, or ctx ends.
func poll(ctx context.Context, p *proc.Process, try func(context.Context) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Died():
			return fmt.Errorf("%s has ended", p.Name)
		case <-ctx.Done():
			return fmt.Errorf("wait for %s (%w): %w", p.Name, err, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

type runningEcho struct {
	process    *proc.Process
	grpc, http string
	isHTTP     bool
}

// Processes returns the server's process.
func (r *runningEcho) Processes() []int { return []int{r.process.PID()} }

// Open connects to the server.
func (r *runningEcho) Open(context.Context, string) (Driver, error) {
	if r.isHTTP {
		return newHTTPDriver(r.http), nil
	}
	return openUnary(r.grpc)
}

// Close does nothing.
func (r *runningEcho) Close() error { return nil }

// echoService grants everything.
type echoService struct {
	samyav1.UnimplementedTokenServiceServer
}

// Acquire grants the tokens.
func (echoService) Acquire(_ context.Context, r *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	return &samyav1.AcquireResponse{Tokens: r.GetTokens(), RequestId: r.GetRequestId(), Site: "one", Left: tokens}, nil
}

// echoAnswer is as long as an answer of an app manager.
const echoAnswer = `{"entity":"acme/hot","tokens":1,"request_id":"hot-10-32-1a2b","site":"one","left":274877906943}
`

// maxEchoBody bounds the part of a body that the HTTP control reads, in bytes.
const maxEchoBody = 64 << 10

// ServeEcho serves on both addresses until ctx ends.
func ServeEcho(ctx context.Context, grpcAddr, httpAddr string) error {
	var listen net.ListenConfig
	g, err := listen.Listen(ctx, "tcp", grpcAddr)
	if err != nil {
		return fmt.Errorf("echo: %w", err)
	}
	h, err := listen.Listen(ctx, "tcp", httpAddr)
	if err != nil {
		_ = g.Close()
		return fmt.Errorf("echo: %w", err)
	}
	rpc := grpc.NewServer()
	samyav1.RegisterTokenServiceServer(rpc, echoService{})
	web := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEchoBody)); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, echoAnswer) // the caller has gone
		}),
	}
	ended := make(chan error, 2)
	go func() { ended <- rpc.Serve(g) }()
	go func() { ended <- web.Serve(h) }()
	select {
	case <-ctx.Done():
		err = nil
	case err = <-ended:
	}
	rpc.Stop()
	return errors.Join(err, web.Close())
}
