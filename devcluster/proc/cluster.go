package proc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// conflictTries bounds the starts of a cluster, each on other ports, after a foreign
// program took a port between its choice and its use.
const conflictTries = 5

// Config configures the processes to run.
type Config struct {
	// Bin is the path of the samya program.
	Bin string
	// Dir holds the data directories and logs; it must exist.
	Dir string
	// Cluster is the cluster's name; empty means "demo".
	Cluster string
	// Sites are the names of the sites; each stands in the region of its name.
	Sites []string
	// Nodes is the number of nodes of each site, 1 to 3; 0 is 1. With several, the sites have
	// their log in an etcd of three processes.
	Nodes int
	// AppManagers are the names of the regions with an app manager.
	AppManagers []string
	// Latency is the latency injected between regions: "none", a matrix's name or a
	// file; empty means "none".
	Latency string
	// SiteArgs and AppManagerArgs are further arguments of each process.
	SiteArgs, AppManagerArgs []string
	// Grace is the time for a process to stop before it is killed; zero means 5s.
	Grace time.Duration
	// Ready is called with the name of each process once it is ready, unless Ready is
	// nil. Calls come from several goroutines, but never at the same time.
	Ready func(name string)
}

// Cluster is a set of running processes. Its methods may be called from
// several goroutines at once.
type Cluster struct {
	cfg         Config
	appManagers []*Process
	etcd        []*Process
	further     []*Process            // nodes beside the first of each site
	nodes       map[string][]*Process // all nodes by site, if there are several
	spawn       *spawner
	deaths      chan *DeathError
	stopOnce    sync.Once
	stopErr     error

	mu    sync.Mutex
	sites []*Process // those of the configuration, then those that joined
}

// Start starts all processes and waits until each is ready. It picks free ports, and
// other ports if a foreign program takes a port meanwhile. If it fails, or ctx is done
// before all are ready, no process is left behind.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg.Cluster = cmp.Or(cfg.Cluster, "demo")
	cfg.Latency = cmp.Or(cfg.Latency, "none")
	cfg.Grace = cmp.Or(cfg.Grace, 5*time.Second)
	if len(cfg.Sites) == 0 {
		return nil, errors.New("start a cluster: no sites")
	}
	logs := filepath.Join(cfg.Dir, "logs")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return nil, fmt.Errorf("start a cluster: make the directory of the logs: %w", err)
	}
	for try := 1; ; try++ {
		c, err := start(ctx, cfg, logs)
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil || try == conflictTries || !portTaken(err) {
			return nil, fmt.Errorf("start a cluster: %w", err)
		}
	}
}

// portTaken reports whether a process ended because its port was in use.
func portTaken(err error) bool {
	death, ok := errors.AsType[*DeathError](err)
	return ok && strings.Contains(death.Last, "address already in use")
}

// start makes a single attempt.
func start(ctx context.Context, cfg Config, logs string) (_ *Cluster, err error) {
	c := &Cluster{
		cfg: cfg, spawn: newSpawner(),
		// A process may die once for every restart; unread deaths are dropped.
		deaths: make(chan *DeathError, len(cfg.Sites)*max(1, cfg.Nodes)+len(cfg.AppManagers)+etcdMembers),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
		}
	}()
	var held ports
	if err := c.plan(ctx, &held, logs); err != nil {
		return nil, errors.Join(err, held.release())
	}
	if err := held.release(); err != nil {
		return nil, fmt.Errorf("let go of the ports: %w", err)
	}
	if err := c.startEtcd(ctx); err != nil {
		return nil, err
	}
	for _, p := range c.all() {
		if err := p.Start(); err != nil {
			return nil, err
		}
	}
	if err := c.WaitReady(ctx); err != nil {
		return nil, err
	}
	for site := range c.nodes {
		if _, err := c.Active(ctx, site); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// plan lays out the processes and holds their ports.
func (c *Cluster) plan(ctx context.Context, held *ports, logs string) error {
	var seeds []string
	if err := c.planEtcd(ctx, held, logs); err != nil {
		return err
	}
	for _, s := range c.cfg.Sites {
		p, err := c.site(ctx, held, logs, s, s)
		if err != nil {
			return err
		}
		p.Args = append(p.Args, "--members", strings.Join(c.cfg.Sites, ","))
		c.sites = append(c.sites, p)
		seeds = append(seeds, p.Gossip)
		if err := c.planNodes(ctx, held, logs, p); err != nil {
			return err
		}
	}
	for _, p := range c.further {
		seeds = append(seeds, p.Gossip)
	}
	for _, r := range c.cfg.AppManagers {
		p, err := c.process(ctx, held, logs, "am-"+r, "appmgr", "--name", "am-"+r, "--region", r)
		if err != nil {
			return err
		}
		p.Args = append(p.Args, c.cfg.AppManagerArgs...)
		c.appManagers = append(c.appManagers, p)
	}
	// All sites are seeds, since any site may be down when a process starts again.
	for _, p := range c.all() {
		p.Args = append(p.Args, "--join", strings.Join(without(seeds, p.Gossip), ","))
	}
	return nil
}

// process lays out a process, and holds its ports.
func (c *Cluster) process(ctx context.Context, held *ports, logs, name string, args ...string) (*Process, error) {
	p := &Process{
		Name: name, Log: filepath.Join(logs, name+".log"),
		bin: c.cfg.Bin, page: "/readyz", spawn: c.spawn, died: c.report, stop: stopSignal,
	}
	for _, addr := range []*string{&p.GRPC, &p.HTTP, &p.Gossip} {
		var err error
		if *addr, err = held.next(ctx); err != nil {
			return nil, fmt.Errorf("ports of %s: %w", name, err)
		}
	}
	p.Args = append(args,
		"--cluster", c.cfg.Cluster, "--grpc", p.GRPC, "--http", p.HTTP, "--gossip", p.Gossip,
		"--preset", "local", "--latency", c.cfg.Latency, LifelineFlag)
	return p, nil
}

// stopSignal asks a process to end.
const stopSignal = syscall.SIGTERM

// site lays out a process of a site, but for the sites that it knows of.
func (c *Cluster) site(ctx context.Context, held *ports, logs, site, name string) (*Process, error) {
	p, err := c.process(ctx, held, logs, name, "site", "--name", site, "--region", site)
	if err != nil {
		return nil, err
	}
	p.Data = filepath.Join(c.cfg.Dir, name)
	p.Args = append(append(p.Args, "--data", p.Data), c.cfg.SiteArgs...)
	return p, nil
}

// Join starts a site that joins the cluster by the gossip addresses of some processes. Such
// a site is ready only once it was given a seat; Join does not wait for that. The site is
// stopped with the cluster.
func (c *Cluster) Join(ctx context.Context, name string, seeds ...string) (*Process, error) {
	var held ports
	p, err := c.site(ctx, &held, filepath.Join(c.cfg.Dir, "logs"), name, name)
	if err := errors.Join(err, held.release()); err != nil {
		return nil, fmt.Errorf("have %s join: %w", name, err)
	}
	p.Args = append(p.Args, "--join", strings.Join(seeds, ","))
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("have %s join: %w", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sites = append(c.sites, p)
	return p, nil
}

// without returns addrs without an address; all of addrs if no other is left.
func without(addrs []string, one string) []string {
	var others []string
	for _, a := range addrs {
		if a != one {
			others = append(others, a)
		}
	}
	if len(others) == 0 {
		return addrs
	}
	return others
}

// report passes a death on.
func (c *Cluster) report(death *DeathError) {
	select {
	case c.deaths <- death:
	default:
	}
}

// Deaths returns the channel of processes that ended without having been asked to.
func (c *Cluster) Deaths() <-chan *DeathError { return c.deaths }

// Sites returns the site processes, in the order of the configuration; then those that
// joined.
func (c *Cluster) Sites() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sites)
}

// AppManagers returns the app manager processes, in the order of the
// configuration.
func (c *Cluster) AppManagers() []*Process { return c.appManagers }

// Site returns the site of index i in the configuration.
func (c *Cluster) Site(i int) *Process { return c.Sites()[i] }

// AppManager returns the app manager of index i in the configuration.
func (c *Cluster) AppManager(i int) *Process { return c.appManagers[i] }

func (c *Cluster) all() []*Process {
	return slices.Concat(c.Sites(), c.further, c.appManagers)
}

// WaitReady waits until every process answers that it is ready. It fails when ctx is
// done or a process has ended.
func (c *Cluster) WaitReady(ctx context.Context) error {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range c.all() {
		g.Go(func() error {
			if err := p.WaitReady(ctx); err != nil {
				return err
			}
			if c.cfg.Ready != nil {
				mu.Lock()
				defer mu.Unlock()
				c.cfg.Ready(p.Name)
			}
			return nil
		})
	}
	return g.Wait()
}

// Stop ends all processes, app managers before sites, etcd last, and waits until they are gone. It
// kills processes that take longer than the grace, and all processes at once when ctx is
// done. Stop may be called again; it returns the first call's error.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopOnce.Do(func() {
		c.spawn.refuse()
		c.stopErr = errors.Join(c.stop(ctx, c.appManagers), c.stop(ctx, append(c.Sites(), c.further...)), c.stop(ctx, c.etcd))
		c.spawn.close()
	})
	return c.stopErr
}

func (c *Cluster) stop(ctx context.Context, processes []*Process) error {
	errs := make([]error, len(processes))
	var wg sync.WaitGroup
	for i, p := range processes {
		wg.Go(func() { errs[i] = p.Stop(ctx, c.cfg.Grace) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
