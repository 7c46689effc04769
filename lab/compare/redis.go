package compare

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/samya-db/samya/devcluster/proc"
)

// The ways of asking redis.
const (
	WaySingle    = "64 callers"
	WayShared    = "64 callers, one connection"
	WayPipelined = "pipelines of 100"
	WayBenchmark = "redis-benchmark"
	WayBenchPipe = "redis-benchmark, pipelines of 100"
	WayOpen      = "open loop, 30,000 a second"
)

// The open loop: so many operations a second are due, and so many may be under way.
const (
	offered     = 30_000
	openCallers = streamCallers
)

// redisScript takes tokens and remembers the request in as few commands as
// possible: fewer commands make fewer lines of the append-only file.
//
//go:embed redis.lua
var redisScript string

// redisPlainScript takes tokens, and remembers no request.
//
//go:embed redis_plain.lua
var redisPlainScript string

// Redis is a redis server with an append-only file.
type Redis struct {
	// Always syncs the file before each answer instead of every second.
	Always bool
	// NoIDs remembers no request ids, as a limit in redis usually does not; with Always
	// only.
	NoIDs bool
}

// About describes the system.
func (s Redis) About() About {
	a := About{
		Name: RedisEverySec, Kind: Volatile,
		Promise: "appendfsync everysec: a crash loses up to two seconds",
		Ways: []Way{
			{Name: WaySingle, Callers: manyCallers, Batch: 1},
			{Name: WayShared, Callers: manyCallers, Batch: 1},
			{Name: WayPipelined, Callers: batchCallers, Batch: batchSize, Even: s.Always},
			{Name: WayBenchmark, Callers: manyCallers, Batch: 1, HotOnly: true},
			{Name: WayBenchPipe, Callers: batchCallers, Batch: batchSize, HotOnly: true},
		},
	}
	if s.Always {
		a.Name, a.Kind = RedisAlways, Durable
		a.Promise = "appendfsync always: grant and request id are in the append-only file, synced"
		a.Ways = append(a.Ways, Way{Name: WayOpen, Callers: openCallers, Batch: 1, Offered: offered})
	}
	if s.NoIDs {
		a.Name, a.Forgets = RedisNoIDs, true
		a.Promise = "appendfsync always: the grant is in the append-only file, synced; no request id is remembered, so a repeat takes tokens again"
		a.Ways = slices.DeleteFunc(a.Ways, func(w Way) bool { return w.Name == WayBenchmark || w.Name == WayBenchPipe })
	}
	a.Settings = strings.Join(s.settings(), " ")
	return a
}

// settings are the settings of the server that differ from its defaults.
func (s Redis) settings() []string {
	fsync := "everysec"
	if s.Always {
		fsync = "always"
	}
	return []string{"--save", "''", "--appendonly", "yes", "--appendfsync", fsync}
}

// ErrNotInstalled says that a program is missing.
var ErrNotInstalled = errors.New("not installed")

// find returns the path of a program.
func find(program, debian string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%s: %w (Debian has it in package %s)", program, ErrNotInstalled, debian)
	}
	return path, nil
}

// Installed fails if the server's program is missing.
func (s Redis) Installed() error {
	_, err := find("redis-server", "redis-server")
	return err
}

// Start starts the server.
func (s Redis) Start(ctx context.Context, env *Env) (Running, error) {
	bin, err := find("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	addrs, err := proc.FreePorts(ctx, 1)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addrs[0])
	if err != nil {
		return nil, err
	}
	argv := []string{bin, "--port", port, "--bind", "127.0.0.1", "--dir", env.Dir}
	for _, word := range s.settings() {
		argv = append(argv, strings.Trim(word, "'"))
	}
	script := redisScript
	if s.NoIDs {
		script = redisPlainScript
	}
	p, err := env.Programs.Start(proc.Program{
		Name: "redis-server", Log: env.logFile("redis"),
		Argv: argv,
	})
	if err != nil {
		return nil, err
	}
	r := &runningRedis{process: p, addr: addrs[0], env: env, noIDs: s.NoIDs}
	return r, poll(ctx, p, func(ctx context.Context) error {
		admin, err := r.connect(false)
		if err != nil {
			return err
		}
		r.admin = admin
		r.script, err = admin.Do(ctx, admin.B().ScriptLoad().Script(script).Build()).ToString()
		if err != nil {
			admin.Close()
			r.admin = nil
		}
		return err
	})
}

type runningRedis struct {
	process *proc.Process
	addr    string
	env     *Env
	script  string // SHA-1 of the script
	noIDs   bool
	admin   rueidis.Client
}

// connect returns a client. A shared client sends the requests of all callers over
// a single connection, and pipelines waiting requests.
func (r *runningRedis) connect(shared bool) (rueidis.Client, error) {
	o := rueidis.ClientOption{
		InitAddress: []string{r.addr}, ForceSingleClient: true, DisableCache: true,
		AlwaysPipelining: shared, DisableAutoPipelining: !shared, BlockingPoolSize: manyCallers,
		DisableRetry: true,
	}
	client, err := rueidis.NewClient(o)
	if err != nil {
		return nil, fmt.Errorf("connect to redis: %w", err)
	}
	return client, nil
}

// Processes returns the server's process.
func (r *runningRedis) Processes() []int { return []int{r.process.PID()} }

// Close closes the connection of the books.
func (r *runningRedis) Close() error {
	if r.admin != nil {
		r.admin.Close()
	}
	return nil
}

// Create sets the entities.
func (r *runningRedis) Create(ctx context.Context, entities []string, tokens int64) error {
	sets := make(rueidis.Commands, 0, len(entities))
	for _, e := range entities {
		sets = append(sets, r.admin.B().Set().Key(e).Value(strconv.FormatInt(tokens, 10)).Build())
	}
	for _, done := range r.admin.DoMulti(ctx, sets...) {
		if err := done.Error(); err != nil {
			return err
		}
	}
	return nil
}

// Left reads the entities.
func (r *runningRedis) Left(ctx context.Context, entities []string) ([]int64, error) {
	return r.admin.Do(ctx, r.admin.B().Mget().Key(entities...).Build()).AsIntSlice()
}

// Open connects to the server.
func (r *runningRedis) Open(_ context.Context, way string) (Driver, error) {
	switch way {
	case WayBenchmark, WayBenchPipe:
		return &redisBenchmark{running: r}, nil
	}
	client, err := r.connect(way == WayShared || way == WayOpen)
	if err != nil {
		return nil, err
	}
	return &redisDriver{client: client, script: r.script, noIDs: r.noIDs}, nil
}

// redisDriver runs the script for each operation.
type redisDriver struct {
	client rueidis.Client
	script string
	noIDs  bool
}

func (d *redisDriver) command(r Request) rueidis.Completed {
	if d.noIDs {
		return d.client.B().Evalsha().Sha1(d.script).Numkeys(1).Key(r.Entity).Arg("1").Build()
	}
	return d.client.B().Evalsha().Sha1(d.script).Numkeys(2).Key(r.Entity, r.ID).Arg("1", strconv.Itoa(retention)).Build()
}

// Acquire sends all requests as one pipeline.
func (d *redisDriver) Acquire(ctx context.Context, _ int, requests []Request, granted []bool) error {
	if len(requests) == 1 {
		n, err := d.client.Do(ctx, d.command(requests[0])).AsInt64()
		granted[0] = n == 1
		return err
	}
	commands := make(rueidis.Commands, 0, len(requests))
	for _, r := range requests {
		commands = append(commands, d.command(r))
	}
	for i, answer := range d.client.DoMulti(ctx, commands...) {
		n, err := answer.AsInt64()
		if err != nil {
			return err
		}
		granted[i] = n == 1
	}
	return nil
}

// Close closes the connections.
func (d *redisDriver) Close() error {
	d.client.Close()
	return nil
}

// redisBenchmark makes load with redis's own load generator and the same script.
type redisBenchmark struct{ running *runningRedis }

// benchmarkIDs is the number of ids that redis-benchmark draws from: its maximum,
// to draw few ids twice. It takes a number that does not fit an int for a single
// id.
const benchmarkIDs = math.MaxInt32

// errSelfmade says that a driver does not take single operations.
var errSelfmade = errors.New("it makes its load by itself")

// Acquire fails: the load generator chooses its requests.
func (*redisBenchmark) Acquire(context.Context, int, []Request, []bool) error { return errSelfmade }

// Close does nothing.
func (*redisBenchmark) Close() error { return nil }

// Measure runs the load generator twice: to learn the number of operations that
// fill the time, and to measure them.
func (d *redisBenchmark) Measure(ctx context.Context, l *Load) (*Sample, error) {
	const learned = 50_000
	s, err := d.run(ctx, l, learned)
	if err != nil {
		return nil, err
	}
	return d.run(ctx, l, int(s.Rate*l.Time.Seconds()))
}

// run makes n operations on an empty database and checks the books. Ids are drawn:
// an id drawn twice takes tokens once.
func (d *redisBenchmark) run(ctx context.Context, l *Load, n int) (*Sample, error) {
	n = (n + l.Batch - 1) / l.Batch * l.Batch // redis-benchmark makes whole pipelines
	bin, err := find("redis-benchmark", "redis-tools")
	if err != nil {
		return nil, err
	}
	r := d.running
	if err := r.admin.Do(ctx, r.admin.B().Flushdb().Build()).Error(); err != nil {
		return nil, err
	}
	if err := r.Create(ctx, l.Entities, tokens); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(r.addr)
	if err != nil {
		return nil, err
	}
	before, err := l.Usage()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, bin, "-h", host, "-p", port, "-c", strconv.Itoa(l.Callers), "-P", strconv.Itoa(l.Batch),
		"-n", strconv.Itoa(n), "-r", strconv.Itoa(benchmarkIDs), "--csv",
		"evalsha", r.script, "2", l.Entities[0], "id-__rand_int__", "1", strconv.Itoa(retention))
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("redis-benchmark: %w", err)
	}
	after, err := l.Usage()
	if err != nil {
		return nil, err
	}
	s, err := parseBenchmark(string(out))
	if err != nil {
		return nil, err
	}
	s.Operations, s.Seconds = int64(n), float64(n)/s.Rate
	s.ServerCPU = (after.Server - before.Server).Seconds() * 1e6 / float64(n)
	s.ClientCPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() * 1e6 / float64(n)
	keys, err := r.admin.Do(ctx, r.admin.B().Dbsize().Build()).AsInt64()
	if err != nil {
		return nil, err
	}
	left, err := r.Left(ctx, l.Entities)
	if err != nil {
		return nil, err
	}
	ids := keys - int64(len(l.Entities))
	if tokens-left[0] != ids || ids > int64(n) || ids < int64(n)*99/100 {
		return nil, fmt.Errorf("%d operations of redis-benchmark took %d tokens under %d ids: %w", n, tokens-left[0], ids, ErrBooks)
	}
	return s, nil
}

// errBenchmark says that an output is not redis-benchmark's.
var errBenchmark = errors.New("not the output of redis-benchmark --csv")

// parseBenchmark reads rate and latencies. The output has no 99.9th percentile.
func parseBenchmark(csv string) (*Sample, error) {
	lines := strings.Split(strings.TrimSpace(csv), "\n")
	if len(lines) != 2 {
		return nil, fmt.Errorf("%d lines: %w", len(lines), errBenchmark)
	}
	heads, values := strings.Split(lines[0], `","`), strings.Split(lines[1], `","`)
	var s Sample
	for head, to := range map[string]*float64{"rps": &s.Rate, "p50_latency_ms": &s.P50, "p99_latency_ms": &s.P99} {
		at := -1
		for i, h := range heads {
			if strings.Trim(h, `"`) == head {
				// The words of the script come first, without quotes.
				at = len(values) - len(heads) + i
			}
		}
		if at < 0 || at >= len(values) {
			return nil, fmt.Errorf("no %s: %w", head, errBenchmark)
		}
		v, err := strconv.ParseFloat(strings.Trim(values[at], `"`), 64)
		if err != nil || v <= 0 {
			return nil, fmt.Errorf("%s is %q: %w", head, values[at], errBenchmark)
		}
		*to = v
	}
	const toMicroseconds = 1000
	s.P50 *= toMicroseconds
	s.P99 *= toMicroseconds
	return &s, nil
}
