package compare

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/redis/rueidis"

	"github.com/samya-db/samya/devcluster/proc"
)

// RedisReplica is a redis server with a replica. An answer waits until the replica has
// received it.
type RedisReplica struct{}

// About describes the system.
func (RedisReplica) About() About {
	return About{
		Name: RedisWait, Kind: Volatile,
		Promise: "WAIT 1: the replica has it in memory; appendfsync everysec at both",
		Ways: []Way{
			{Name: WaySingle, Callers: manyCallers, Batch: 1},
			{Name: WayPut1024, Callers: streamCallers, Batch: 1},
			{Name: WayPipelined, Callers: batchCallers, Batch: batchSize},
		},
	}
}

// Installed fails if the server's program is missing.
func (RedisReplica) Installed() error { return Redis{}.Installed() }

// errNoReplica says that no replica follows.
var errNoReplica = errors.New("the replica does not follow")

// Start starts the server and the replica.
func (RedisReplica) Start(ctx context.Context, env *Env) (Running, error) {
	started, err := Redis{}.Start(ctx, env)
	if err != nil {
		return started, err
	}
	r := &runningReplica{runningRedis: started.(*runningRedis)}
	bin, err := find("redis-server", "redis-server")
	if err != nil {
		return r, err
	}
	addrs, err := proc.FreePorts(ctx, 1)
	if err != nil {
		return r, err
	}
	_, port, err := net.SplitHostPort(addrs[0])
	if err != nil {
		return r, err
	}
	_, of, err := net.SplitHostPort(r.addr)
	if err != nil {
		return r, err
	}
	dir := filepath.Join(env.Dir, "replica")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return r, err
	}
	r.replica, err = env.Programs.Start(proc.Program{
		Name: "redis-server, replica", Log: env.logFile("replica"),
		Argv: []string{
			bin, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--replicaof", "127.0.0.1 " + of,
			"--appendonly", "yes", "--appendfsync", "everysec",
		},
	})
	if err != nil {
		return r, err
	}
	return r, poll(ctx, r.replica, func(ctx context.Context) error {
		if err := r.admin.Do(ctx, r.admin.B().Set().Key("ready").Value("1").Build()).Error(); err != nil {
			return err
		}
		n, err := r.admin.Do(ctx, r.admin.B().Wait().Numreplicas(1).Timeout(100).Build()).AsInt64()
		if err == nil && n != 1 {
			err = errNoReplica
		}
		return err
	})
}

type runningReplica struct {
	*runningRedis
	replica *proc.Process
}

// Processes returns both processes.
func (r *runningReplica) Processes() []int {
	return append(r.runningRedis.Processes(), r.replica.PID())
}

// Open connects each caller by itself: a wait blocks its connection.
func (r *runningReplica) Open(_ context.Context, way string) (Driver, error) {
	callers := manyCallers
	if way == WayPut1024 {
		callers = streamCallers
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{r.addr}, ForceSingleClient: true, DisableCache: true,
		DisableAutoPipelining: true, BlockingPoolSize: callers, DisableRetry: true,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to redis: %w", err)
	}
	return &waitDriver{redisDriver{client: client, script: r.script}}, nil
}

// waitDriver runs the script for each operation, and waits for the replica.
type waitDriver struct{ redisDriver }

// Acquire sends all requests and the wait as one pipeline.
func (d *waitDriver) Acquire(ctx context.Context, _ int, requests []Request, granted []bool) error {
	commands := make(rueidis.Commands, 0, len(requests)+1)
	for _, r := range requests {
		commands = append(commands, d.command(r))
	}
	commands = append(commands, d.client.B().Wait().Numreplicas(1).Timeout(0).Build())
	for i, answer := range d.client.DoMulti(ctx, commands...) {
		n, err := answer.AsInt64()
		switch {
		case err != nil:
			return err
		case i < len(requests):
			granted[i] = n == 1
		case n < 1:
			return errNoReplica
		}
	}
	return nil
}
