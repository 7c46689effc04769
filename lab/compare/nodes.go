package compare

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/samya-db/samya/devcluster/etcd"
	"github.com/samya-db/samya/devcluster/proc"
)

// SamyaNodes is a site of two nodes with its log in etcd, with etcd's three members.
type SamyaNodes struct {
	// Bin is the samya program.
	Bin string
}

// About describes the system.
func (SamyaNodes) About() About {
	return About{
		Name: SamyaEtcd, Kind: Durable, Promise: "grant and request id are in the logs of two members of etcd, synced",
		Ways: []Way{
			{Name: WayStream64, Callers: manyCallers, Batch: 1},
			{Name: WayStream1024, Callers: streamCallers, Batch: 1},
			{Name: WayBatch, Callers: batchCallers, Batch: batchSize},
		},
	}
}

// Installed fails if etcd's program is missing.
func (SamyaNodes) Installed() error {
	_, err := find("etcd", "etcd-server")
	return err
}

// Start starts etcd, and then the nodes. The first node is the active one.
func (s SamyaNodes) Start(ctx context.Context, env *Env) (Running, error) {
	cluster, err := etcd.Start(ctx, etcd.Config{Dir: env.Dir})
	if err != nil {
		return nil, err
	}
	r := &runningNodes{etcd: cluster}
	for _, name := range []string{"a", "b"} {
		if err := r.node(ctx, env, s.Bin, name); err != nil {
			return r, err
		}
	}
	r.conn, err = dial(r.nodes[0].GRPC)
	return r, err
}

type runningNodes struct {
	runningSamya
	etcd  *etcd.Cluster
	nodes []*proc.Process
}

// node starts a node, and waits until the first serves, or another follows.
func (r *runningNodes) node(ctx context.Context, env *Env, bin, name string) error {
	addrs, err := proc.FreePorts(ctx, 3)
	if err != nil {
		return err
	}
	p, err := env.Programs.Start(proc.Program{
		Name: "node " + name, Log: env.logFile("node-" + name),
		Argv: []string{
			bin, "site", "--name", "one", "--region", "one", "--members", "one", "--cluster", "demo",
			"--data", filepath.Join(env.Dir, "node-"+name), "--grpc", addrs[0], "--http", addrs[1], "--gossip", addrs[2],
			"--preset", "local", "--log", "etcd", "--node", name, "--etcd-endpoints", strings.Join(r.etcd.Endpoints(), ","),
			"--request-retention", (retention * time.Second).String(), "--max-requests", "100000000", "--log-level", "error",
			proc.LifelineFlag,
		},
	})
	if err != nil {
		return err
	}
	p.GRPC, p.HTTP = addrs[0], addrs[1]
	r.nodes = append(r.nodes, p)
	if len(r.nodes) == 1 {
		return p.WaitReady(ctx)
	}
	return poll(ctx, p, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.HTTP+"/livez", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

// Processes returns the processes of the nodes and of etcd.
func (r *runningNodes) Processes() []int {
	var pids []int
	for _, p := range r.nodes {
		pids = append(pids, p.PID())
	}
	return append(pids, membersOf(r.etcd)...)
}

func membersOf(cluster *etcd.Cluster) []int {
	var pids []int
	for _, m := range cluster.Members() {
		pids = append(pids, m.PID())
	}
	return pids
}

// Close stops the nodes, and then etcd.
func (r *runningNodes) Close() error {
	if r.conn != nil {
		_ = r.conn.Close() // nothing is under way on it
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	var errs []error
	for _, p := range r.nodes {
		errs = append(errs, p.Stop(ctx, grace))
	}
	return errors.Join(append(errs, r.etcd.Stop(ctx))...)
}

// Open prepares a way of asking the active node.
func (r *runningNodes) Open(_ context.Context, way string) (Driver, error) {
	switch way {
	case WayStream64, WayStream1024:
		return openSDK(r.nodes[0].GRPC, repeatTime(retention*time.Second))
	case WayBatch:
		return openBatches(r.nodes[0].GRPC)
	}
	return nil, fmt.Errorf("samya: %w: %s", errNoWay, way)
}
