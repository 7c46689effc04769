package standby

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/store"
)

// serve runs the site until ctx ends, or until another node is active. The site closes the
// store.
func (n *node) serve(ctx context.Context, st *store.Store, log *replica.Log) error {
	n.state.role.Store(&roleActive)
	n.state.handing.Store(false)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cfg := n.cfg.Site
	cfg.Data, cfg.Instance, cfg.Term = st, n.cfg.Node, log.Term()
	// The log told that no later data exists.
	cfg.Unvouched = true
	active := &active{node: n, st: st, log: log, cancel: cancel}
	active.heard()
	cfg.Nodes = active
	defer n.state.others.Store(nil)
	err := active.alive(ctx, func() error {
		began := time.Now()
		s, err := site.New(cfg)
		if err != nil {
			return fmt.Errorf("starting the site at node %s: %w", n.cfg.Node, err)
		}
		n.state.takeOver.Store(int64(time.Since(began)))
		return s.Run(ctx)
	})
	if cause := context.Cause(ctx); errors.Is(cause, replica.ErrFenced) || errors.Is(cause, site.ErrHandedOver) {
		// The site has stopped for this reason, whatever else went wrong.
		return cause
	}
	if err == nil {
		// The site has stopped in order, and all commits are in the log: no other node has to
		// wait.
		err = active.beat(anyNode)
	}
	return err
}

// active is the node while the node runs the site.
type active struct {
	*node
	st     *store.Store
	log    *replica.Log
	cancel context.CancelCauseFunc
	// confirmed is when etcd last confirmed that the node is active, as node.now tells.
	confirmed atomic.Int64
}

// alive gives signs of life while the site starts and runs. Much data takes longer to start
// than a take-over: without signs, two nodes would take the site from each other for ever.
func (a *active) alive(ctx context.Context, run func() error) error {
	lives := make(chan struct{})
	go func() {
		defer close(lives)
		a.live(ctx)
	}()
	err := run()
	a.cancel(nil)
	<-lives
	return err
}

// live gives signs of life, tells how far the node is, and trims the log, until ctx ends.
func (a *active) live(ctx context.Context) {
	var lives sync.WaitGroup
	defer lives.Wait()
	// The upkeep may take long, and must not keep back a sign.
	lives.Go(func() {
		a.every(ctx, toldEvery, a.upkeep())
	})
	a.every(ctx, a.cfg.TakeOver/signsOfLife, func(context.Context) error {
		if a.state.handing.Load() {
			return nil
		}
		err := a.beat("")
		if err == nil {
			a.heard()
		}
		return err
	})
}

// every acts again and again until ctx ends, or until another node is active.
func (a *active) every(ctx context.Context, interval time.Duration, act func(context.Context) error) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := act(ctx); errors.Is(err, replica.ErrFenced) {
			a.cancel(err)
			return
		}
	}
}

func (a *active) heard() { a.confirmed.Store(int64(a.now())) }

// errUnconfirmed: another node may have taken over.
var errUnconfirmed = errors.New("etcd has not confirmed for a while that this node is active")

// unconfirmed reports whether another node may be active: for the time of a take-over etcd
// has confirmed nothing.
func (a *active) unconfirmed() bool {
	return a.now()-time.Duration(a.confirmed.Load()) >= a.cfg.TakeOver
}

// Watch implements site.Nodes. A call that came just before the node was unconfirmed is
// given up by the next look.
func (a *active) Watch(ctx context.Context, giveUp func()) {
	a.every(ctx, a.cfg.TakeOver/signsOfLife, func(context.Context) error {
		if a.unconfirmed() {
			giveUp()
		}
		return nil
	})
}

// beat gives a sign of life; to is as in word.
func (a *active) beat(to string) error {
	value, err := json.Marshal(word{To: to, Term: a.log.Term()})
	if err != nil {
		return fmt.Errorf("encoding a sign of life: %w", err)
	}
	return a.log.Beat(value)
}

// upkeep returns what tells how far the node is, trims the log, and now and then compacts
// etcd.
func (a *active) upkeep() func(context.Context) error {
	var compacted time.Duration
	return func(ctx context.Context) error {
		if a.state.handing.Load() {
			return nil
		}
		if err := a.tell(a.st, a.log); err != nil {
			return err
		}
		nodes, err := a.log.Nodes()
		if err != nil {
			return err
		}
		a.sawOthers(nodes, a.log, time.Now())
		if _, err := a.log.Trim(); err != nil {
			return err
		}
		if a.cfg.KeepHistory || a.now()-compacted < compactedEvery {
			return nil
		}
		compacted = a.now()
		if err := a.client.Compact(ctx, a.keys.Prefix()); err != nil {
			a.node.log.Warn("etcd was not compacted", "error", err)
		}
		return nil
	}
}

// Stalled implements site.Nodes: the site takes no requests while etcd does not answer, or
// while the site is handed over.
func (a *active) Stalled() error {
	if a.state.handing.Load() {
		return site.ErrHandedOver
	}
	if failure := a.state.failure.Load(); failure != nil {
		return *failure
	}
	if a.unconfirmed() {
		return errUnconfirmed
	}
	return nil
}

// List implements site.Nodes.
func (a *active) List() (nodes []site.NodeStatus, err error) {
	all, err := a.log.Nodes()
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Node == a.cfg.Node {
			s.Last, s.Through, s.Time = a.log.Last(), a.st.Stats().Through, time.Now().UnixMilli()
		}
		nodes = append(nodes, site.NodeStatus{
			Name: s.Node, Active: s.Node == a.cfg.Node, Last: uint64(s.Last), Durable: uint64(s.Through), Copies: s.Copies,
			Build: s.Build, HTTP: s.HTTP, Told: time.UnixMilli(s.Time),
		})
	}
	return nodes, nil
}

// Standbys implements site.Nodes.
func (a *active) Standbys() int {
	if o := a.state.others.Load(); o != nil {
		return o.standbys
	}
	return 0
}

// Last implements site.Nodes.
func (a *active) Last() uint64 { return uint64(a.log.Last()) }

// Forget implements site.Nodes.
func (a *active) Forget(name string) error {
	if name == a.cfg.Node {
		return apierr.Invalid("node", name+" is the active node: hand the site over first")
	}
	return a.log.Forget(name)
}

// closely is how many commits a node may be behind to be handed the site, and freshly how
// old the node's word of that may be.
const (
	closely = 10_000
	freshly = 5 * time.Second
)

// quietMost is how long a hand-over waits for the answers of requests under way. Later
// answers have to be found out by the callers.
const quietMost = 20 * time.Millisecond

// HandOver implements site.Nodes. This node takes no requests from then on.
func (a *active) HandOver(ctx context.Context, to string, quiet func(context.Context)) (string, error) {
	nodes, err := a.log.Nodes()
	if err != nil {
		return "", err
	}
	last, now := a.log.Last(), time.Now()
	nodes = slices.DeleteFunc(nodes, func(s replica.Standing) bool {
		return s.Node == a.cfg.Node || s.Copies || to != "" && s.Node != to ||
			s.Last+closely < last || now.Sub(time.UnixMilli(s.Time)) > freshly
	})
	if len(nodes) == 0 {
		return "", apierr.New(apierr.SiteUnavailable, "no other node of site %s follows closely; nothing was done", a.cfg.Site.Name)
	}
	best := slices.MaxFunc(nodes, func(x, y replica.Standing) int { return int(x.Last) - int(y.Last) }) //nolint:gosec // small differences
	if !a.state.handing.CompareAndSwap(false, true) {
		return "", apierr.New(apierr.SiteUnavailable, "site %s is being handed over already", a.cfg.Site.Name)
	}
	ctx, done := context.WithTimeout(ctx, quietMost)
	quiet(ctx)
	done()
	if err := a.beat(best.Node); err != nil {
		a.state.handing.Store(false)
		return "", err
	}
	a.cancel(site.ErrHandedOver)
	return best.Node, nil
}
