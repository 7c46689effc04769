package compare

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/samya-db/samya/devcluster/proc"
)

// The ways of asking etcd.
const (
	WayCAS       = "compare-and-swap, 64 callers"
	WayCoalesced = "64 callers, one transaction"
)

// The prefixes of etcd's keys. Request ids stay for good: forgetting an id would
// cost a lease.
const (
	etcdEntity  = "e/"
	etcdRequest = "r/"
)

const (
	// maxTxnOps is the most operations of a transaction.
	maxTxnOps = 4096
	// maxTxnRequests is the most requests of a transaction: each request and each
	// entity takes an operation.
	maxTxnRequests = maxTxnOps/2 - 1
	// mgetKeys is the most keys that the books write or read in a transaction.
	mgetKeys = 1000
)

// EtcdSystem is an etcd cluster of a single server.
type EtcdSystem struct{}

// About describes the system.
func (EtcdSystem) About() About {
	return About{
		Name: Etcd, Kind: Durable, Promise: "grant and request id are in the write-ahead log, synced",
		Ways: []Way{
			{Name: WayCAS, Callers: manyCallers, Batch: 1},
			{Name: WayCoalesced, Callers: manyCallers, Batch: 1},
		},
	}
}

// Installed fails if the server's program is missing.
func (EtcdSystem) Installed() error {
	_, err := find("etcd", "etcd-server")
	return err
}

// Start starts the server.
func (EtcdSystem) Start(ctx context.Context, env *Env) (Running, error) {
	bin, err := find("etcd", "etcd-server")
	if err != nil {
		return nil, err
	}
	addrs, err := proc.FreePorts(ctx, 2)
	if err != nil {
		return nil, err
	}
	client, peer := "http://"+addrs[0], "http://"+addrs[1]
	p, err := env.Programs.Start(proc.Program{
		Name: "etcd", Log: env.logFile("etcd"),
		Argv: []string{
			bin, "--name", "one", "--data-dir", filepath.Join(env.Dir, "etcd"), "--initial-cluster", "one=" + peer,
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--max-txn-ops", strconv.Itoa(maxTxnOps), "--quota-backend-bytes", strconv.Itoa(8 << 30), "--log-level", "error",
		},
	})
	if err != nil {
		return nil, err
	}
	r := &runningEtcd{process: p, addr: addrs[0]}
	if r.client, err = r.connect(); err != nil {
		return nil, err
	}
	return r, poll(ctx, p, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := r.client.Get(ctx, "ready")
		return err
	})
}

type runningEtcd struct {
	process *proc.Process
	addr    string
	client  *clientv3.Client
}

func (r *runningEtcd) connect() (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{r.addr}, Logger: zap.NewNop(), DialTimeout: 5 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20))},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return client, nil
}

// Processes returns the server's process.
func (r *runningEtcd) Processes() []int { return []int{r.process.PID()} }

// Close closes the connection of the books.
func (r *runningEtcd) Close() error { return closeEtcd(r.client) }

// closeEtcd closes a client. A canceled context is no error: that is how a client
// ends.
func closeEtcd(c *clientv3.Client) error {
	if err := c.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Create puts the entities.
func (r *runningEtcd) Create(ctx context.Context, entities []string, tokens int64) error {
	for len(entities) > 0 {
		n := min(len(entities), mgetKeys)
		puts := make([]clientv3.Op, n)
		for i, e := range entities[:n] {
			puts[i] = clientv3.OpPut(etcdEntity+e, strconv.FormatInt(tokens, 10))
		}
		if _, err := r.client.Txn(ctx).Then(puts...).Commit(); err != nil {
			return err
		}
		entities = entities[n:]
	}
	return nil
}

// Left reads the entities.
func (r *runningEtcd) Left(ctx context.Context, entities []string) ([]int64, error) {
	left := make([]int64, 0, len(entities))
	for len(entities) > 0 {
		n := min(len(entities), mgetKeys)
		gets := make([]clientv3.Op, n)
		for i, e := range entities[:n] {
			gets[i] = clientv3.OpGet(etcdEntity + e)
		}
		got, err := r.client.Txn(ctx).Then(gets...).Commit()
		if err != nil {
			return nil, err
		}
		for i := range gets {
			known, err := readEntity(got.Responses[i].GetResponseRange())
			if err != nil {
				return nil, fmt.Errorf("%s: %w", entities[i], err)
			}
			left = append(left, known.left)
		}
		entities = entities[n:]
	}
	return left, nil
}

// Open connects to the server.
func (r *runningEtcd) Open(_ context.Context, way string) (Driver, error) {
	client, err := r.connect()
	if err != nil {
		return nil, err
	}
	if way == WayCAS {
		return &casDriver{client: client}, nil
	}
	return newCoalescing(client), nil
}
