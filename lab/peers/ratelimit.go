package peers

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/wan"
)

// Ratelimit configures the service of envoyproxy/ratelimit.
type Ratelimit struct {
	// Bin is the program.
	Bin string
	// Dir is an empty directory for its configuration and log.
	Dir string
	// Redis is the address of redis.
	Redis string
	// Rules is the file of its limits.
	Rules string
}

// pipelineWindow is the interval at which the service sends its requests to redis. With
// this, the longest that its settings recommend, and as many connections as by default, it
// decides most requests a second.
const pipelineWindow = "500us"

// Start starts the service. It returns the address of its gRPC listener, and the process.
func (r Ratelimit) Start(ctx context.Context, programs *proc.Programs, name string) (addr string, p *proc.Process, err error) {
	config := filepath.Join(r.Dir, "limits", "config")
	if err := os.MkdirAll(config, 0o700); err != nil {
		return "", nil, err
	}
	if err := os.WriteFile(filepath.Join(config, "rules.yaml"), []byte(r.Rules), 0o600); err != nil {
		return "", nil, err
	}
	addrs, err := proc.FreePorts(ctx, 3)
	if err != nil {
		return "", nil, err
	}
	argv := []string{
		"env", "USE_STATSD=false", "DISABLE_STATS=true", "LOG_LEVEL=warn", "BACKEND_TYPE=redis", "REDIS_TYPE=SINGLE",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + r.Redis, "REDIS_PIPELINE_WINDOW=" + pipelineWindow,
		"RUNTIME_ROOT=" + r.Dir, "RUNTIME_SUBDIRECTORY=limits", "RUNTIME_WATCH_ROOT=false",
	}
	for i, prefix := range []string{"GRPC_", "", "DEBUG_"} {
		host, port, err := net.SplitHostPort(addrs[i])
		if err != nil {
			return "", nil, err
		}
		argv = append(argv, prefix+"HOST="+host, prefix+"PORT="+port)
	}
	p, err = programs.Start(proc.Program{Name: name, Log: filepath.Join(r.Dir, "log"), Argv: append(argv, r.Bin)})
	if err != nil {
		return "", nil, err
	}
	return addrs[0], p, listens(ctx, p, addrs[0])
}

// Dial returns a client of a rate limit service on this machine, and a function that closes it.
func Dial(addr string) (ratelimitv3.RateLimitServiceClient, func() error, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	return ratelimitv3.NewRateLimitServiceClient(conn), conn.Close, nil
}

// Ask is a request of a single hit for a descriptor of a single entry.
func Ask(domain, key, value string) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{Domain: domain, Descriptors: []*commonv3.RateLimitDescriptor{
		{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: key, Value: value}}},
	}}
}

// Answers waits until a service decides a request.
func Answers(ctx context.Context, c ratelimitv3.RateLimitServiceClient, ask *ratelimitv3.RateLimitRequest) error {
	for {
		tctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := c.ShouldRateLimit(tctx, ask)
		cancel()
		if err == nil {
			return nil
		}
		if wan.Wait(ctx, 100*time.Millisecond) != nil {
			return fmt.Errorf("the rate limit service does not decide: %w", err)
		}
	}
}
