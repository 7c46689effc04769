// Package realtime plays the demand of package replay in real time to five site
// processes on this machine, with the latencies of Table 5 injected between them:
// it shows whether what virtual time says holds for the product as it runs. It
// refuses to say anything of a run whose books do not add up in the end, or in
// which more than the limit was out at any time.
//
// Load is open, as in package replay: a request is made when it is due, whatever
// became of those before it, and its latency counts from then, so what this
// program itself is late by is part of it.
package realtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/lab/replay"
)

// Options say what to play and to whom. Demand and Bin must be set.
type Options struct {
	// Demand is what is asked for, in the five regions of the paper and without reads;
	// the play takes as long as its Span.
	Demand *replay.Demand
	// Limit is that of the one entity; default 5000.
	Limit int64
	// Bin is the samya program.
	Bin string
	// Dir is where data and logs are kept meanwhile, in a directory of their own that
	// is left behind only if the play fails; "": that of temporary files.
	Dir string
	// SiteArgs are further arguments of each site, such as --protocol.
	SiteArgs []string
	// Wait is how long an acquire may wait for tokens; default 5 s.
	Wait time.Duration
	// Progress is told what happens; nil: nobody is.
	Progress func(string)
}

const (
	// margin is how long beyond its Wait a request may take to be answered in time.
	margin = 5 * time.Second
	// settleTime bounds what is done before and after the load, each.
	settleTime = time.Minute
	// grace is how long a process may take to stop before it is killed.
	grace = 5 * time.Second
	// lead is how long the sites run with the entity before the first request, so
	// that each has heard of the others.
	lead = 2 * time.Second
	// entity is the name of the one that all is asked of.
	entity = "acme/vm"
)

// regions are those of the places of a demand, in their order, as the matrix of the
// latencies has them.
var regions = []string{"us", "as", "eu", "au", "sa"}

// ErrUnsound is the error of a play in which something did not hold.
var ErrUnsound = errors.New("a play on real processes is unsound")

func (o *Options) setDefaults() error {
	if o.Demand == nil || o.Bin == "" {
		return errors.New("no demand, or no program")
	}
	if d := o.Demand; d.Places != nil && !slices.Equal(d.Places, regions) || len(d.Reads) > 0 {
		return fmt.Errorf("demand of %v with %d reads: can play that of %v without any", d.Places, len(d.Reads), regions)
	}
	o.Limit = cmp.Or(o.Limit, int64(replay.Limit))
	o.Wait = cmp.Or(o.Wait, 5*time.Second)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return nil
}

// Play starts the sites, plays the demand, checks the books, and stops the sites.
// It fails with the cause of ctx if that ends, with a [*proc.DeathError] if a
// process dies, and with ErrUnsound. No process is left when it returns.
func Play(ctx context.Context, o Options) (_ *Result, err error) {
	if err := o.setDefaults(); err != nil {
		return nil, fmt.Errorf("play a demand: %w", err)
	}
	dir, err := os.MkdirTemp(o.Dir, "samya-realtime-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for data and logs: %w", err)
	}
	defer func() {
		if _, died := errors.AsType[*proc.DeathError](err); died || errors.Is(err, ErrUnsound) {
			o.Progress("data and logs are left in " + dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	// The processes find their files wherever this program was started.
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("the directory for data and logs: %w", err)
	}
	o.Progress("starting the sites")
	cluster, err := start(ctx, &o, dir)
	if err != nil {
		return nil, cause(ctx, err)
	}
	defer func() { err = errors.Join(err, cluster.Stop(context.WithoutCancel(ctx))) }()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		select {
		case death := <-cluster.Deaths():
			end(death)
		case <-ctx.Done():
		}
	}()
	result, err := play(ctx, &o, cluster)
	if err != nil {
		return nil, cause(ctx, err)
	}
	return result, nil
}

// cause prefers the reason why ctx ended over err, which is its consequence.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// start starts the sites, and an app manager through which nothing but the books is
// read: a site answers for itself alone.
func start(ctx context.Context, o *Options, dir string) (*proc.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	return proc.Start(ctx, proc.Config{
		Bin: o.Bin, Dir: dir, Cluster: "realtime", Sites: regions, AppManagers: regions[:1], WAN: "samya", Grace: grace,
		SiteArgs: append([]string{"--log-level", "warn"}, o.SiteArgs...), AppManagerArgs: []string{"--log-level", "warn"},
	})
}

// play is Play on sites that run.
func play(ctx context.Context, o *Options, cluster *proc.Cluster) (_ *Result, err error) {
	books, err := connect(cluster.AppManager(0).GRPC)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closed(ctx, books)) }()
	sites := make([]*client.Client, len(regions))
	for i := range sites {
		if sites[i], err = connect(cluster.Site(i).GRPC); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, closed(ctx, sites[i])) }()
	}
	if err := create(ctx, o, books, sites); err != nil {
		return nil, err
	}
	before, err := scrape(ctx, cluster.Sites())
	if err != nil {
		return nil, err
	}
	l := newLoad(o, sites)
	if err := l.run(ctx); err != nil {
		return nil, err
	}
	if err := l.check(ctx, books); err != nil {
		return nil, err
	}
	after, err := scrape(ctx, cluster.Sites())
	if err != nil {
		return nil, err
	}
	return l.result(after.minus(before)), nil
}

// connect makes a client of one process.
func connect(addr string) (*client.Client, error) {
	c, err := client.New(client.Config{Targets: []client.Target{{Address: "passthrough:///" + addr}}})
	if err != nil {
		return nil, fmt.Errorf("a client of %s: %w", addr, err)
	}
	return c, nil
}

// closed closes a client; at once if ctx is done, when calls may be under way and
// what ends with them is known.
func closed(ctx context.Context, c *client.Client) error {
	if err := c.Close(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}
