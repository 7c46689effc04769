package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// The ways of asking samya.
const (
	WayUnary      = "gRPC unary, 64 callers"
	WayStream64   = "SDK, 64 goroutines"
	WayStream1024 = "SDK, 1,024 goroutines"
	WayBatch      = "batches of 100"
	WayHTTP       = "HTTP, 64 callers"
	WayStreamOpen = "SDK, open loop, 30,000 a second"
)

const (
	// manyCallers is the usual number of callers.
	manyCallers = 64
	// streamCallers is the number of callers that share a busy stream.
	streamCallers = 1024
	// batchCallers is the number of callers with batches or pipelines: with more
	// callers redis becomes slower.
	batchCallers = 16
	// batchSize is the number of operations of a batch or a pipeline.
	batchSize = 100
	// retention is the least time in seconds for which a system must remember
	// request ids, unless it keeps them for good.
	retention = 60
	// creators is the number of entities created or read at a time.
	creators = 64
)

// SamyaSystem is samya: a cluster of a single site, and an app manager.
type SamyaSystem struct {
	// Bin is the samya program.
	Bin string
	// Retention is the time for which the site remembers request ids; 0 means a
	// minute.
	Retention time.Duration
}

// repeatTime returns the time after its deadline during which a request may be
// repeated, and the length of the deadline: well within the retention.
func repeatTime(retention time.Duration) time.Duration { return retention / 6 }

// About describes the system.
func (s SamyaSystem) About() About {
	return About{
		Name: Samya, Kind: Durable,
		Promise:  "grant and request id are in the log, synced",
		Settings: strings.Join(s.settings(), " "),
		Ways: []Way{
			{Name: WayUnary, Callers: manyCallers, Batch: 1},
			{Name: WayStream64, Callers: manyCallers, Batch: 1, Sessions: true},
			{Name: WayStream1024, Callers: streamCallers, Batch: 1, Even: true, Sessions: true},
			{Name: WayBatch, Callers: batchCallers, Batch: batchSize, Even: true, Sessions: true},
			{Name: WayHTTP, Callers: manyCallers, Batch: 1},
			{Name: WayStreamOpen, Callers: openCallers, Batch: 1, Offered: offered, Sessions: true},
		},
	}
}

// keep is the time for which the site remembers request ids.
func (s SamyaSystem) keep() time.Duration { return cmp.Or(s.Retention, retention*time.Second) }

// settings are the settings of the site that differ from its defaults.
func (s SamyaSystem) settings() []string {
	return []string{"--request-retention", s.keep().String(), "--max-requests", "100000000"}
}

// Start starts the site and the app manager.
func (s SamyaSystem) Start(ctx context.Context, env *Env) (Running, error) {
	keep := s.keep()
	cluster, err := proc.Start(ctx, proc.Config{
		Bin: s.Bin, Dir: env.Dir, Sites: []string{"one"}, AppManagers: []string{"one"},
		SiteArgs:       append(s.settings(), "--log-level", "error"),
		AppManagerArgs: []string{"--log-level", "error", "--repeat-time", repeatTime(keep).String()}, Grace: grace,
	})
	if err != nil {
		return nil, err
	}
	r := &runningSamya{cluster: cluster, retention: keep}
	if r.conn, err = dial(cluster.Site(0).GRPC); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// dial returns a connection to a gRPC server on this machine.
func dial(addr string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	return conn, nil
}

type runningSamya struct {
	cluster   *proc.Cluster
	conn      *grpc.ClientConn
	retention time.Duration
}

// Processes returns the processes of the site and the app manager.
func (r *runningSamya) Processes() []int {
	var pids []int
	for _, p := range append(r.cluster.Sites(), r.cluster.AppManagers()...) {
		pids = append(pids, p.PID())
	}
	return pids
}

// Close stops the processes.
func (r *runningSamya) Close() error {
	if r.conn != nil {
		_ = r.conn.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return r.cluster.Stop(ctx)
}

// Open prepares a way of asking.
func (r *runningSamya) Open(_ context.Context, way string) (Driver, error) {
	switch way {
	case WayUnary:
		return openUnary(r.cluster.Site(0).GRPC)
	case WayStream64, WayStream1024, WayStreamOpen:
		return openSDK(r.cluster.Site(0).GRPC, repeatTime(r.retention))
	case WayBatch:
		return openBatches(r.cluster.Site(0).GRPC)
	case WayHTTP:
		return newHTTPDriver(r.cluster.AppManager(0).HTTP), nil
	default:
		return nil, fmt.Errorf("samya: %w: %s", errNoWay, way)
	}
}

var errNoWay = errors.New("no such way of asking")

// Create makes entities.
func (r *runningSamya) Create(ctx context.Context, entities []string, tokens int64) error {
	client := samyav1.NewEntityServiceClient(r.conn)
	return many(ctx, len(entities), func(ctx context.Context, i int) error {
		_, err := client.CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: entities[i], Limit: tokens}, grpc.WaitForReady(true))
		return err
	})
}

// Left reads the site's books.
func (r *runningSamya) Left(ctx context.Context, entities []string) ([]int64, error) {
	client := samyav1.NewEntityServiceClient(r.conn)
	left := make([]int64, len(entities))
	err := many(ctx, len(entities), func(ctx context.Context, i int) error {
		got, err := client.GetEntity(ctx, &samyav1.GetEntityRequest{
			Name: entities[i], Consistency: samyav1.Consistency_CONSISTENCY_LOCAL,
		})
		left[i] = got.GetUsage().GetAvailable()
		return err
	})
	return left, err
}

// many calls do for 0 to n-1, a few calls at a time.
func many(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(creators, n) {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := do(ctx, i); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

// unaryDriver makes a call for each operation.
type unaryDriver struct {
	conn   *grpc.ClientConn
	client samyav1.TokenServiceClient
}

func openUnary(addr string) (*unaryDriver, error) {
	conn, err := dial(addr)
	if err != nil {
		return nil, err
	}
	return &unaryDriver{conn: conn, client: samyav1.NewTokenServiceClient(conn)}, nil
}

// Acquire makes the calls in turn.
func (d *unaryDriver) Acquire(ctx context.Context, _ int, requests []Request, granted []bool) error {
	for i, r := range requests {
		_, err := d.client.Acquire(ctx, acquireOf(r))
		switch {
		case err == nil:
			granted[i] = true
		case status.Code(err) == codes.ResourceExhausted && apierr.From(err).Reason == apierr.OutOfTokens:
			granted[i] = false
		default:
			return err
		}
	}
	return nil
}

// noWait has a request answered at once, without tokens from other sites.
var noWait = durationpb.New(0)

// acquireOf returns a request of samya's API.
func acquireOf(r Request) *samyav1.AcquireRequest {
	return &samyav1.AcquireRequest{Entity: r.Entity, Tokens: 1, RequestId: r.ID, Wait: noWait}
}

// Close closes the connection.
func (d *unaryDriver) Close() error { return d.conn.Close() }
