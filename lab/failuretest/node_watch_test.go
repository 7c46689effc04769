package failuretest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/samya-db/samya/devcluster/etcd"
	"github.com/samya-db/samya/site/sitetest"
)

// commitWatch sees every change of a site's keys in etcd, from the first on. It checks that
// each commit is put once, in the order of their numbers and without a gap.
type commitWatch struct {
	t      *testing.T
	client *clientv3.Client

	mu     sync.Mutex
	last   uint64 // the last commit
	node   string // the node that is active
	term   int64
	terms  []termBegun
	beats  int
	trims  int
	faults []string
}

// termBegun is the begin of a node's term.
type termBegun struct {
	node string
	at   time.Time
}

// watchCommits watches until the test ends.
func watchCommits(t *testing.T, cluster *etcd.Cluster) *commitWatch {
	t.Helper()
	client, err := etcd.Dial(cluster.Endpoints()...)
	if err != nil {
		t.Fatal(err)
	}
	w := &commitWatch{t: t, client: client}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { w.run(ctx) })
	t.Cleanup(func() {
		cancel()
		watching.Wait()
		_ = client.Close() // its watch has ended
	})
	return w
}

func (w *commitWatch) run(ctx context.Context) {
	for r := range w.client.Watch(ctx, nodePrefix, clientv3.WithPrefix(), clientv3.WithRev(1)) {
		w.mu.Lock()
		if err := r.Err(); err != nil {
			w.faults = append(w.faults, fmt.Sprintf("the watch ended: %v", err))
		}
		for _, e := range r.Events {
			w.see(e)
		}
		w.mu.Unlock()
	}
	if ctx.Err() == nil {
		w.mu.Lock()
		w.faults = append(w.faults, "the watch ended")
		w.mu.Unlock()
	}
}

// see checks a change. The caller holds the lock.
func (w *commitWatch) see(e *clientv3.Event) {
	key := strings.TrimPrefix(string(e.Kv.Key), nodePrefix)
	hex, commit := strings.CutPrefix(key, "log/")
	switch {
	case commit && e.Type == mvccpb.DELETE:
		w.trims++
	case commit && w.last == 0 && strings.Trim(hex, "0") == "" && e.Kv.Version == 1:
		// The empty commit that the log begins with.
	case commit:
		n, err := strconv.ParseUint(hex, 16, 64)
		if err != nil || n != w.last+1 || e.Kv.Version != 1 || e.Kv.CreateRevision != e.Kv.ModRevision {
			w.faults = append(w.faults, fmt.Sprintf("commit %s was put as version %d after commit %d", key, e.Kv.Version, w.last))
		}
		w.last = n
	case key == "leader":
		var who struct {
			Node string `json:"node"`
		}
		if err := json.Unmarshal(e.Kv.Value, &who); err != nil {
			w.faults = append(w.faults, fmt.Sprintf("the leader is %q: %v", e.Kv.Value, err))
		}
		w.node, w.term = who.Node, e.Kv.ModRevision
		w.terms = append(w.terms, termBegun{who.Node, time.Now()})
	case key == "beat":
		w.beats++
	}
}

// leader returns the node that is active, and its term.
func (w *commitWatch) leader() (node string, term int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.node, w.term
}

// begun returns when the first term after a time began; zero if none has.
func (w *commitWatch) begun(after time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.terms {
		if t.at.After(after) {
			return t.at
		}
	}
	return time.Time{}
}

// judge waits until the watch has seen the last commit, and fails the test for each fault.
func (w *commitWatch) judge() (commits uint64, terms int) {
	w.t.Helper()
	sitetest.Eventually(w.t, "the watch sees the last commit", func() error {
		ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Second)
		defer cancel()
		got, err := w.client.Get(ctx, nodePrefix+"log/", clientv3.WithLastKey()...)
		if err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(got.Kvs) != 1 || string(got.Kvs[0].Key) > fmt.Sprintf("%slog/%016x", nodePrefix, w.last) {
			return fmt.Errorf("it has seen commit %d", w.last)
		}
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.faults[:min(len(w.faults), 20)] {
		w.t.Error(f)
	}
	// Chosen faults may be over before anything is trimmed.
	if w.last == 0 || w.trims == 0 && os.Getenv(faultsEnv) == "" {
		w.t.Errorf("%d commits, %d trimmed: the watch has seen too little", w.last, w.trims)
	}
	return w.last, len(w.terms)
}
