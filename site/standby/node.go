package standby

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/replica/etcd"
	"github.com/samya-db/samya/site/store"
)

// node is a node of a site.
type node struct {
	cfg    Config
	log    *slog.Logger
	client *etcd.Client
	keys   replica.Keys
	began  time.Time
	// state is told by the node's pages and metrics.
	state state
	// copies says that the node's data does not reach to the beginning of the log.
	copies bool
	stops  func(attempt int, failure error) error
}

// Run runs a node until ctx ends, and then returns nil. An error says that the node cannot
// go on: the disk has failed, or the data is refused.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuring the node: %w", err)
	}
	if cfg.TakeOver == 0 {
		cfg.TakeOver = defaultTakeOver
	}
	client, err := etcd.Open(cfg.Etcd)
	if err != nil {
		return err
	}
	n := &node{cfg: cfg, client: client, keys: replica.KeysOf(cfg.Site.Cluster, cfg.Site.Name), began: time.Now(), log: cfg.Site.Logger}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	n.log = n.log.With("node", cfg.Node)
	n.stops = n.patience(ctx)
	err = n.run(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return errors.Join(err, client.Close())
}

func (n *node) run(ctx context.Context) error {
	for {
		err := n.life(ctx)
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, replica.ErrFenced), errors.Is(err, site.ErrHandedOver):
			n.log.Warn("another node goes on with the site; this node follows", "reason", err)
		case errors.Is(err, replica.ErrBehind):
			n.log.Warn("this node copies the base of the active node", "reason", err)
			n.copies = true
		default:
			return err
		}
	}
}

// life opens the node's data, follows until the node is active, and runs the site until
// another node is active.
func (n *node) life(ctx context.Context) error {
	n.state.role.Store(&roleStarting)
	st, log, err := n.open(ctx)
	if err != nil {
		return err
	}
	pages, err := n.serveStandby()
	if err != nil {
		return errors.Join(err, st.Close())
	}
	n.state.role.Store(&roleStandby)
	n.state.log.Store(log)
	defer n.state.log.Store(nil)
	err = n.stand(ctx, st, log)
	pages.close()
	if err != nil {
		return errors.Join(err, st.Close())
	}
	return n.serve(ctx, st, log)
}

// open opens the node's data, which follows the log from there on. open writes the origin of
// a new log, and copies another node's base if the node's data does not reach the log.
func (n *node) open(ctx context.Context) (*store.Store, *replica.Log, error) {
	origin, err := n.origin(ctx)
	if err != nil {
		return nil, nil, err
	}
	dir := n.cfg.Site.DataDir
	has, err := store.Exists(dir)
	if err != nil {
		return nil, nil, err
	}
	if err := store.MarkNode(dir); err != nil {
		return nil, nil, err
	}
	if !has {
		// A new node follows a log that was never trimmed from its beginning.
		whole, err := n.reaches(origin, 0)
		if err != nil {
			return nil, nil, err
		}
		n.copies = n.copies || !whole
	}
	if n.copies {
		if err := n.copyAll(ctx, origin); err != nil {
			return nil, nil, err
		}
		n.copies = false
	}
	var log *replica.Log
	o := n.cfg.Site.StoreOptions()
	// etcd keeps the commits that are in no base.
	o.CheckpointBytes = min(cmp.Or(o.CheckpointBytes, checkpointBytes), checkpointBytes)
	o.CheckpointEvery = min(cmp.Or(o.CheckpointEvery, checkpointEvery), checkpointEvery)
	o.Incarnation, o.Begun = message.Incarnation(origin.Incarnation), versions.Version(origin.ClusterVersion)
	o.Members, o.Join = nil, origin.MembersVersion == 0
	for _, m := range origin.Members {
		o.Members = append(o.Members, core.SiteID(m))
	}
	if o.Join {
		o.Members = nil
	}
	o.Over = func(local *journal.Journal) (journal.Log, error) {
		var err error
		log, err = replica.New(local, replica.Options{
			KV: n.client, Keys: n.keys, Node: n.cfg.Node, Origin: origin, Spans: n.spans(), Wait: n.stops, Stalled: n.state.stall,
		})
		return log, err
	}
	st, err := store.Open(o)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the data directory %s: %w", dir, err)
	}
	if got := uint64(st.Incarnation()); got != origin.Incarnation {
		return nil, nil, errors.Join(st.Close(), fmt.Errorf("%w: the data in %s is not that of the log in etcd", store.ErrForeign, dir))
	}
	return st, log, nil
}

// origin returns the origin of the site's log, and writes the origin of a new log, unless
// another node has to.
func (n *node) origin(ctx context.Context) (replica.Origin, error) {
	origin, ok, err := replica.Look(n.client, n.keys, n.stops)
	if err != nil || ok {
		return origin, err
	}
	dir := n.cfg.Site.DataDir
	marked, err := store.IsNode(dir)
	if err != nil {
		return origin, err
	}
	has, err := store.Exists(dir)
	if err != nil {
		return origin, err
	}
	if marked && has {
		return origin, fmt.Errorf("%w: it has no log of site %s at all", replica.ErrLost, n.cfg.Site.Name)
	}
	if n.cfg.AwaitLog {
		return n.awaited(ctx)
	}
	origin = replica.Origin{Cluster: n.cfg.Site.Cluster, Site: n.cfg.Site.Name}
	o := n.cfg.Site.StoreOptions()
	if has {
		// A site of a single process goes over to etcd: the log is carried over whole.
		st, err := store.Open(o)
		if err != nil {
			return origin, fmt.Errorf("opening the data directory %s: %w", dir, err)
		}
		restored, err := st.Load()
		m := st.Members()
		origin.Incarnation, origin.After, origin.MembersVersion = uint64(st.Incarnation()), st.Stats().Number, m.Version
		origin.ClusterVersion = uint32(restored.Version)
		for _, s := range m.Sites {
			origin.Members = append(origin.Members, string(s))
		}
		if err := errors.Join(err, st.Close()); err != nil {
			return origin, err
		}
	} else {
		if len(o.Members) == 0 && !o.Join {
			return origin, store.ErrNoMembers
		}
		speaks := o.Versions
		if speaks == (versions.Range{}) {
			speaks = versions.Own()
		}
		origin.ClusterVersion = uint32(speaks.Newest)
		for _, s := range o.Members {
			origin.Members = append(origin.Members, string(s))
		}
		if len(o.Members) > 0 {
			origin.MembersVersion = 1
		}
		for origin.Incarnation == 0 {
			origin.Incarnation = rand.Uint64()
		}
	}
	return replica.Found(n.client, n.keys, origin, n.stops)
}

// awaited returns the origin of the site's log once another node has begun the log.
func (n *node) awaited(ctx context.Context) (replica.Origin, error) {
	n.log.Info("this node waits until another node has begun the log of the site", "site", n.cfg.Site.Name)
	again := time.NewTicker(askedEvery)
	defer again.Stop()
	for {
		select {
		case <-again.C:
		case <-ctx.Done():
			return replica.Origin{}, ctx.Err()
		}
		if origin, ok, err := replica.Look(n.client, n.keys, n.stops); ok || err != nil {
			return origin, err
		}
	}
}

// reaches reports whether the log in etcd has all commits behind a commit.
func (n *node) reaches(origin replica.Origin, through journal.Number) (bool, error) {
	first, err := replica.First(n.client, n.keys, n.stops)
	return first <= through+1 && through >= origin.After, err
}

// patience returns the wait before a call to etcd is repeated. The wait fails once ctx
// has ended for a while.
func (n *node) patience(ctx context.Context) func(attempt int, failure error) error {
	over := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(stopPatience, func() { close(over) }) })
	return func(attempt int, failure error) error {
		pause := min(firstPause<<min(attempt-1, 10), longestPause)
		if n.state.complain(attempt) {
			n.log.Warn("etcd does not answer; the node goes on trying", "attempt", attempt, "error", failure)
		}
		timer := time.NewTimer(pause/2 + rand.N(pause))
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-over:
			return context.Cause(ctx)
		}
	}
}

// Bounds of the part of a node's log that the base lacks.
const (
	checkpointBytes = 16 << 20
	checkpointEvery = 5 * time.Second
)

const (
	// firstPause and longestPause bound the pauses between repetitions of a call.
	firstPause   = 5 * time.Millisecond
	longestPause = 300 * time.Millisecond
	// stopPatience is how long a commit may wait for etcd once the node is to stop.
	stopPatience = 2 * time.Second
)

// now is the time since the node began.
func (n *node) now() time.Duration { return time.Since(n.began) }

// state is for other goroutines to ask.
type state struct {
	role atomic.Pointer[string]
	// others is nil while the node is not active.
	others atomic.Pointer[others]
	log    atomic.Pointer[replica.Log]
	// failure is why etcd does not answer; nil if etcd answers.
	failure  atomic.Pointer[error]
	handing  atomic.Bool
	takeOver atomic.Int64 // the length of the last take-over, in nanoseconds
	takeOvers,
	stalls atomic.Int64
}

var roleStarting, roleStandby, roleActive = "starting", "standby", "active"

// stall notes that etcd does not answer, or, with nil, that etcd answers again.
func (s *state) stall(failure error) {
	if failure == nil {
		s.failure.Store(nil)
		return
	}
	if s.failure.Swap(&failure) == nil {
		s.stalls.Add(1)
	}
}

// complain reports whether an attempt is worth a line in the log: the third, and then fewer
// and fewer.
func (s *state) complain(attempt int) bool {
	return attempt == 3 || attempt >= 10 && attempt&(attempt-1) == 0
}
