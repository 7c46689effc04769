package standby

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/replica/replicatest"
	"github.com/samya-db/samya/site/store"
)

// TestUnconfirmed: once etcd has confirmed nothing for the time of a take-over, the active
// node takes no calls, and gives up all calls again and again, until etcd confirms that
// the node is active.
func TestUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takeOver = 1500 * time.Millisecond
		a := &active{node: &node{cfg: Config{TakeOver: takeOver}, began: time.Now()}}
		a.heard()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		var given atomic.Int64
		go func() {
			a.Watch(ctx, func() { given.Add(1) })
			close(ended)
		}()
		after := func(d time.Duration, stalled bool, want int64) {
			t.Helper()
			<-time.After(d)
			synctest.Wait()
			if err := a.Stalled(); errors.Is(err, errUnconfirmed) != stalled || given.Load() != want {
				t.Errorf("%v, %d times, want %v and %d", err, given.Load(), stalled, want)
			}
		}
		after(takeOver-time.Millisecond, false, 0)
		after(time.Millisecond, true, 1)
		after(takeOver/signsOfLife, true, 2)
		a.heard()
		after(takeOver/2, false, 2)
		a.heard()
		after(takeOver-time.Millisecond, false, 2)
		a.state.handing.Store(true)
		if err := a.Stalled(); !errors.Is(err, site.ErrHandedOver) {
			t.Errorf("while it is handed over: %v", err)
		}
		cancel()
		<-ended
	})
}

// TestSignsWhileStarting: a node gives signs of life from its take-over on, also while the
// site takes longer to start than other nodes wait, and none once the site has ended.
func TestSignsWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takeOver = 1500 * time.Millisecond
		keys := replica.KeysOf("c", "us")
		var signs atomic.Int64
		etcd := replicatest.New()
		etcd.Took = func(txn *replica.Txn, _ int64) {
			if txn.Then[0].Key == keys.Prefix()+"beat" {
				signs.Add(1)
			}
		}
		options := replica.Options{KV: etcd.At(nil), Keys: keys, Node: "a", Wait: func(int, error) error { return nil }}
		var err error
		options.Origin, err = replica.Found(options.KV, keys, replica.Origin{Cluster: "c", Site: "us", Incarnation: 1}, options.Wait)
		if err != nil {
			t.Fatal(err)
		}
		a := &active{node: &node{cfg: Config{TakeOver: takeOver, KeepHistory: true}, keys: keys, began: time.Now()}}
		a.cfg.Node, a.cfg.Site.Name = "a", "us"
		a.st, err = store.Open(store.Options{
			Dir: t.TempDir(), Site: "us", Members: []core.SiteID{"us"}, Incarnation: 1,
			Over: func(local *journal.Journal) (journal.Log, error) {
				var err error
				a.log, err = replica.New(local, options)
				return a.log, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if won, err := a.log.Lead(replica.Leader{}, replica.Leader{Node: "a", Run: 1}); !won || err != nil {
			t.Fatal(won, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		a.cancel = cancel
		err = a.alive(ctx, func() error {
			<-time.After(4*takeOver + time.Millisecond)
			synctest.Wait()
			return site.ErrHandedOver
		})
		if signs.Load() != 4*signsOfLife || !errors.Is(err, site.ErrHandedOver) {
			t.Errorf("%d signs, want %d; %v", signs.Load(), 4*signsOfLife, err)
		}
		<-time.After(takeOver)
		if signs.Load() != 4*signsOfLife {
			t.Errorf("%d signs in the end", signs.Load())
		}
		if err := a.st.Close(); err != nil {
			t.Error(err)
		}
	})
}
