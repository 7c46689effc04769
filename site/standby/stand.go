package standby

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/store"
)

// stand follows the log until the node is active, and has the log to the end.
func (n *node) stand(ctx context.Context, st *store.Store, log *replica.Log) error {
	// After a crash the local log has all commits since the last checkpoint. A take-over need
	// not wait for them, even if it comes soon.
	defer carry(st)()
	interval := n.cfg.TakeOver / signsOfLife / 2
	changed := make(chan struct{}, 1)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go n.watch(watching, changed, interval)
	w := &watcher{self: n.cfg.Node, patience: n.cfg.TakeOver, interval: interval}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var told time.Duration
	for {
		for more := true; more; {
			var err error
			if more, err = log.Follow(0); err != nil {
				return fmt.Errorf("following the log: %w", err)
			}
		}
		s, err := n.look(log)
		if err != nil {
			return err
		}
		if w.due(n.now(), s) {
			won, err := n.lead(st, log, s.leader)
			if won || err != nil {
				return err
			}
			w.lost()
		}
		if told == 0 || n.now()-told >= toldEvery {
			told = n.now()
			if err := n.tell(st, log); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watch wakes the standby at each sign of the active node, so that a planned hand-over is
// quick. It does not wake the standby at each commit: each look costs etcd's members a dozen
// messages, as its reads are linearizable, and the few commits between two looks cost a
// take-over nothing. If the watch breaks, the standby looks by itself.
func (n *node) watch(ctx context.Context, changed chan<- struct{}, pause time.Duration) {
	from, to := n.keys.Signs()
	for ctx.Err() == nil {
		n.client.Watch(ctx, from, to, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// look reads the signs of the active node.
func (n *node) look(log *replica.Log) (signs, error) {
	leader, beat, err := log.Signs()
	if err != nil {
		return signs{}, fmt.Errorf("looking for the active node: %w", err)
	}
	s := signs{leader: leader, beat: beat.Rev, last: log.Last()}
	if len(beat.Value) > 0 && json.Unmarshal(beat.Value, &s.word) != nil {
		s.word = word{} // of a later build: it is a sign of life all the same
	}
	return s, nil
}

// carry has the store carry its log over to the base, in the background. end stops the
// work after the step under way.
func carry(st *store.Store) (end func()) {
	var carrying sync.WaitGroup
	var over atomic.Bool
	carrying.Go(func() {
		for !over.Load() {
			// A failure is the log's, which returns it to all others.
			if more, err := st.Step(); err != nil || !more {
				return
			}
		}
	})
	return func() {
		over.Store(true)
		carrying.Wait()
	}
}

// lead tries to make this node active. Meanwhile the store carries its log over to the
// base, for which the site would wait later. The rest is left to the start of the site: the
// node gives signs of life then.
func (n *node) lead(st *store.Store, log *replica.Log, seen replica.Leader) (won bool, err error) {
	began := time.Now()
	defer carry(st)()
	me := replica.Leader{Node: n.cfg.Node, Run: rand.Uint64(), GRPC: n.cfg.Site.GRPC, HTTP: n.cfg.Site.HTTP}
	if won, err = log.Lead(seen, me); err != nil || !won {
		return won, err
	}
	n.state.takeOvers.Add(1)
	n.log.Info("this node is the active one", "before", seen.Node, "term", log.Term(), "commit", uint64(log.Last()), "took", time.Since(began))
	return true, nil
}

// tell stores how far this node is.
func (n *node) tell(st *store.Store, log *replica.Log) error {
	return log.Tell(replica.Standing{
		Through: st.Stats().Through, Last: log.Last(), Build: n.cfg.Site.Build.Version, HTTP: n.cfg.Site.HTTP, Time: time.Now().UnixMilli(),
	})
}

// copyAgain is the pause after a copy that failed.
const copyAgain = time.Second

// copyAll copies until a copy succeeds: the active node may change or be away meanwhile.
func (n *node) copyAll(ctx context.Context, origin replica.Origin) error {
	for {
		began := time.Now()
		err := n.copy(ctx, origin)
		if err == nil {
			n.log.Info("the base of the active node is copied", "took", time.Since(began))
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		n.log.Warn("the base of the active node is not copied yet; the node goes on trying", "error", err)
		select {
		case <-time.After(copyAgain):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// copy makes the node's data of the active node's base.
func (n *node) copy(ctx context.Context, origin replica.Origin) error {
	// Before the first part, so that nothing is trimmed that the first part lacks.
	if err := n.pin(0); err != nil {
		return err
	}
	leader, err := replica.LeaderOf(n.client, n.keys, n.stops)
	if err != nil {
		return err
	}
	if leader.GRPC == "" {
		return fmt.Errorf("copying a base: no node of site %s is active", n.cfg.Site.Name)
	}
	source, err := n.dialSource(leader.GRPC, origin)
	if err != nil {
		return err
	}
	defer source.close()
	// The commits of the copy are not the node's.
	if err := n.spans().Clear(); err != nil {
		return fmt.Errorf("forgetting the runs of the node's commits: %w", err)
	}
	return store.Copy(ctx, n.cfg.Site.DataDir, origin.Incarnation, source)
}

// spansName is the file with the runs of the node's commits, in the data directory.
const spansName = "runs"

func (n *node) spans() replica.SpansFile {
	return replica.SpansFile(filepath.Join(n.cfg.Site.DataDir, spansName))
}

// pin has the log keep all commits behind through.
func (n *node) pin(through journal.Number) error {
	return replica.Pin(n.client, n.keys, n.cfg.Node, through, time.Now().UnixMilli(), n.stops)
}
