// Package realtime plays the demand of package replay in real time to five site
// processes on this machine. The latencies of Table 5 lie between them. It shows
// whether the results of virtual time hold for the real product. It reports nothing
// of a play with wrong books, or a play in which clients ever held more tokens than
// the limit.
//
// Load is open, as in package replay: a request is sent when it is due, whatever
// the outcome of the requests before. Latency counts from then, so it includes the
// delay of this program.
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

// Options are the options of a play. Demand and Bin must be set.
type Options struct {
	// Demand is the demand, in the five regions of the paper and without reads. The
	// play takes its Span.
	Demand *replay.Demand
	// Limit is the limit of the only entity; default 5000.
	Limit int64
	// Bin is the samya program.
	Bin string
	// Dir holds a directory for data and logs, which stays only if the play fails;
	// empty means the directory of temporary files.
	Dir string
	// SiteArgs are further arguments of each site, such as --protocol.
	SiteArgs []string
	// Wait is the longest time that an acquire waits for tokens; default 5 s.
	Wait time.Duration
	// Progress, if not nil, is called with messages of progress.
	Progress func(string)
}

const (
	// margin is the time beyond Wait within which an answer is in time.
	margin = 5 * time.Second
	// repeatTime is how long beyond its deadline a request of unknown outcome can be
	// resumed.
	repeatTime = time.Minute
	// settleTime bounds the work before the load, and the work after it.
	settleTime = time.Minute
	// grace is the time for a process to stop before it is killed.
	grace = 5 * time.Second
	// lead is the time between the creation of the entity and the first request, in
	// which each site hears of the others.
	lead = 2 * time.Second
	// entity is the name of the only entity.
	entity = "acme/vm"
)

// regions are the regions of the places of a demand, in order, as the latency
// matrix names them.
var regions = []string{"us", "as", "eu", "au", "sa"}

// ErrUnsound is the error of an unsound play: a limit, an outcome or the books did
// not hold.
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
// It fails with the cause of ctx if ctx ends, with a [*proc.DeathError] if a
// process dies, and with ErrUnsound. It leaves no process behind.
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
	// The processes must find their files from any working directory.
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

// cause prefers the reason for the end of ctx to err, its consequence.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// start starts the sites, and an app manager to read the books: a site answers for
// itself alone.
func start(ctx context.Context, o *Options, dir string) (*proc.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	return proc.Start(ctx, proc.Config{
		Bin: o.Bin, Dir: dir, Cluster: "realtime", Sites: regions, AppManagers: regions[:1], Latency: "samya", Grace: grace,
		SiteArgs: append([]string{"--log-level", "warn"}, o.SiteArgs...), AppManagerArgs: []string{"--log-level", "warn"},
	})
}

// play is Play on running sites.
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

// connect makes a client of a process.
func connect(addr string) (*client.Client, error) {
	c, err := client.New(client.Config{
		Targets: []client.Target{{Address: "passthrough:///" + addr}}, RepeatTime: repeatTime,
	})
	if err != nil {
		return nil, fmt.Errorf("a client of %s: %w", addr, err)
	}
	return c, nil
}

// closed closes a client. It ignores the error if ctx is done: calls may then be
// under way, and their loss is known.
func closed(ctx context.Context, c *client.Client) error {
	if err := c.Close(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}
