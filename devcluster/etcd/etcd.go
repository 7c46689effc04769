// Package etcd runs a cluster of real etcd processes on this machine, for tests and
// measurements of sites with its log in etcd. It refuses to weaken etcd: every member
// syncs its disk, and etcd alone decides who leads.
package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/samya-db/samya/devcluster/proc"
)

// Config configures a cluster.
type Config struct {
	// Dir holds the data directories and logs; it must exist.
	Dir string
	// Members is the number of members; 0 means 3.
	Members int
	// QuotaBytes is how long the database of a member may get; 0 means 4 GiB. Beyond,
	// etcd refuses all writes until somebody frees space and disarms the alarm.
	QuotaBytes int64
	// Bin is the etcd program; empty: etcd from PATH.
	Bin string
	// Grace is the time for a member to stop before it is killed; 0 means 5 s.
	Grace time.Duration
}

const (
	defaultMembers = 3
	defaultQuota   = 4 << 30
	defaultGrace   = 5 * time.Second
	// heartbeat and election are short: all members are on the same machine.
	heartbeat = 50 * time.Millisecond
	election  = 500 * time.Millisecond
)

// ErrNotInstalled says that there is no etcd program.
var ErrNotInstalled = errors.New("etcd is not installed (Debian has it in package etcd-server)")

// Installed returns the path of the etcd program.
func Installed() (string, error) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	return path, nil
}

// Member is a member of a cluster. Its methods may be called from several goroutines at
// once. Kill, Start and PID are those of the process: a killed member may start again on
// its data.
type Member struct {
	*proc.Process
	// Endpoint is the host:port where clients ask the member.
	Endpoint string
}

// Pause stops the member without its knowledge, as SIGSTOP does.
func (m *Member) Pause() error { return m.Signal(syscall.SIGSTOP) }

// Resume has a paused member go on.
func (m *Member) Resume() error { return m.Signal(syscall.SIGCONT) }

// Cluster is a running cluster.
type Cluster struct {
	programs *proc.Programs
	members  []*Member
	client   *clientv3.Client
	grace    time.Duration
}

// conflictTries bounds the starts of a cluster, each on other ports, after a foreign
// program took a port.
const conflictTries = 5

// Start starts all members and waits until the cluster answers. If Start fails, no process
// is left behind.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg.Members = cmp.Or(cfg.Members, defaultMembers)
	cfg.QuotaBytes = cmp.Or(cfg.QuotaBytes, defaultQuota)
	cfg.Grace = cmp.Or(cfg.Grace, defaultGrace)
	if cfg.Bin == "" {
		var err error
		if cfg.Bin, err = Installed(); err != nil {
			return nil, err
		}
	}
	for try := 1; ; try++ {
		c, err := start(ctx, &cfg)
		if err == nil {
			return c, nil
		}
		death, died := errors.AsType[*proc.DeathError](err)
		if try == conflictTries || ctx.Err() != nil || !died || !strings.Contains(death.Last, "address already in use") {
			return nil, fmt.Errorf("start etcd: %w", err)
		}
	}
}

// start makes a single attempt.
func start(ctx context.Context, cfg *Config) (_ *Cluster, err error) {
	addrs, err := proc.FreePorts(ctx, 2*cfg.Members)
	if err != nil {
		return nil, err
	}
	clients, peers := addrs[:cfg.Members], addrs[cfg.Members:]
	var all []string
	for i, peer := range peers {
		all = append(all, memberName(i)+"=http://"+peer)
	}
	c := &Cluster{programs: proc.NewPrograms(), grace: cfg.Grace}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
		}
	}()
	dir, err := os.MkdirTemp(cfg.Dir, "etcd-*")
	if err != nil {
		return nil, fmt.Errorf("make the directory of the data: %w", err)
	}
	for i := range cfg.Members {
		name := memberName(i)
		p, err := c.programs.Start(proc.Program{
			Name: name, Log: filepath.Join(dir, name+".log"),
			Argv: []string{
				cfg.Bin, "--name", name, "--data-dir", filepath.Join(dir, name),
				"--listen-client-urls", "http://" + clients[i], "--advertise-client-urls", "http://" + clients[i],
				"--listen-peer-urls", "http://" + peers[i], "--initial-advertise-peer-urls", "http://" + peers[i],
				"--initial-cluster", strings.Join(all, ","), "--initial-cluster-token", filepath.Base(dir),
				"--heartbeat-interval", millis(heartbeat), "--election-timeout", millis(election),
				"--auto-compaction-retention", "0", "--quota-backend-bytes", strconv.FormatInt(cfg.QuotaBytes, 10),
				"--logger", "zap", "--log-level", "warn",
			},
		})
		if err != nil {
			return nil, err
		}
		c.members = append(c.members, &Member{Process: p, Endpoint: clients[i]})
	}
	if c.client, err = Dial(clients...); err != nil {
		return nil, err
	}
	return c, c.WaitHealthy(ctx)
}

func memberName(i int) string { return "etcd-" + strconv.Itoa(i) }

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Dial returns a client of some endpoints with connections that come back soon.
func Dial(endpoints ...string) (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, Logger: zap.NewNop(), DialTimeout: time.Second,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: .2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: time.Second,
		})},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return c, nil
}

// Members returns the members, in the order of their names.
func (c *Cluster) Members() []*Member { return c.members }

// Endpoints returns the host:port of all members.
func (c *Cluster) Endpoints() []string {
	var all []string
	for _, m := range c.members {
		all = append(all, m.Endpoint)
	}
	return all
}

// Client returns a client of all members. The cluster closes it.
func (c *Cluster) Client() *clientv3.Client { return c.client }

const (
	// askedEvery is the pause between two questions to a cluster that is not healthy.
	askedEvery = 50 * time.Millisecond
	// askTime bounds a question.
	askTime = time.Second
)

// WaitHealthy waits until the cluster answers a linearizable read. It fails when ctx is
// done, or a member has ended by itself.
func (c *Cluster) WaitHealthy(ctx context.Context) error {
	return c.until(ctx, "to answer", func(ctx context.Context) error {
		_, err := c.client.Get(ctx, "health")
		return err
	})
}

// Leader waits until a running member says that it leads, and returns it.
func (c *Cluster) Leader(ctx context.Context) (leader *Member, err error) {
	err = c.until(ctx, "to have a leader", func(ctx context.Context) error {
		for _, m := range c.members {
			if m.PID() == 0 {
				continue
			}
			one, cancel := context.WithTimeout(ctx, askTime/4)
			status, err := c.client.Status(one, m.Endpoint)
			cancel()
			if err == nil && status.Leader != 0 && status.Leader == status.Header.GetMemberId() {
				leader = m
				return nil
			}
		}
		return errNoLeader
	})
	return leader, err
}

var errNoLeader = errors.New("no member says that it leads")

// until asks until there is no error.
func (c *Cluster) until(ctx context.Context, what string, ask func(context.Context) error) error {
	for {
		one, cancel := context.WithTimeout(ctx, askTime)
		err := ask(one)
		cancel()
		if err == nil {
			return nil
		}
		for _, m := range c.members {
			if death := m.Death(); death != nil && death.Err != nil && !killed(death) {
				return death
			}
		}
		select {
		case <-time.After(askedEvery):
		case <-ctx.Done():
			return fmt.Errorf("wait for etcd %s (%w): %w", what, err, ctx.Err())
		}
	}
}

// killed reports whether a member's end was a kill.
func killed(death *proc.DeathError) bool {
	exit, ok := errors.AsType[*exec.ExitError](death.Err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Stop ends all members. It kills members that take longer than the grace.
func (c *Cluster) Stop(ctx context.Context) error {
	var errs []error
	for _, m := range c.members {
		errs = append(errs, m.Resume())
	}
	if c.client != nil {
		if err := c.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
			errs = append(errs, fmt.Errorf("close the client of etcd: %w", err))
		}
	}
	return errors.Join(append(errs, c.programs.Stop(ctx, c.grace))...)
}
