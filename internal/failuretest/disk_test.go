package failuretest

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/ledger"
	"github.com/samya-db/samya/internal/proc"
)

// TestFailedSyncStopsTheSite lets the syncs of a running site fail. The request
// under way is not acknowledged, nothing is after it, the site ends and says
// why, and its next start knows all that was acknowledged.
func TestFailedSyncStopsTheSite(t *testing.T) {
	needStrace(t)
	const limit = 1000
	cluster := start(t, proc.Config{Sites: []string{"us"}})
	site := cluster.Site(0)
	c := dial(t, site)
	create(t, limit, c)
	m := &movers{clients: []*client{c}, prefix: "eio"}
	// strace counts a thread's calls from when it attached: the first sync of a
	// commit makes pages durable, the second the meta page.
	for round, from := range pick([]int{1, 2}, []int{1, 2, 3, 4, 7, 12, 1, 2}) {
		m.prefix = fmt.Sprint("eio-", round)
		for range 20 {
			m.move(t.Context())
		}
		tr := attach(t, site.PID(), append(traced, "-e", fmt.Sprintf("inject=fdatasync:error=EIO:when=%d+", from))...)
		acknowledged := len(m.given)
		began := time.Now()
		for len(m.unknown) == 0 && time.Since(began) < patience {
			m.move(t.Context())
		}
		if len(m.unknown) == 0 {
			t.Fatal("no request failed")
		}
		acknowledged = len(m.given) - acknowledged
		for range 3 {
			if a := send(t.Context(), c, answer{id: "later", kind: ledger.Acquire, asked: 1}, 0); a.reason == "" {
				t.Errorf("a request is acknowledged after the failure: %+v", a)
			}
		}
		if status := exitStatus(expectDeath(t, cluster, site)); status <= 0 {
			t.Errorf("the site ends with status %d, want one above 0", status)
		}
		if log := site.Tail(3); !strings.Contains(log, "could not make its state durable") || !strings.Contains(log, "input/output error") {
			t.Errorf("the log does not say why the site ended:\n%s", log)
		}
		tr.wait()
		calls, err := parseTrace(tr.text())
		if err != nil {
			t.Fatal(err)
		}
		if after, failed := answersAfterFailure(calls, c.localAddr()); !failed || after != 0 {
			t.Errorf("a sync failed: %t; %d answers left the site after that", failed, after)
		}
		restart(t, site)
		unknown := m.settle(t)
		t.Logf("syncs fail from number %d of a thread on: %d acknowledged meanwhile, %d unknown and settled, %d answers repeated",
			from, acknowledged, unknown, m.check(t, limit))
	}
}

// TestKillAtASystemCall kills a site as it begins a write or a sync, under
// callers who make it redistribute, and checks after each restart that nothing
// acknowledged was lost.
func TestKillAtASystemCall(t *testing.T) {
	needStrace(t)
	const limit = 60
	cluster := start(t, proc.Config{Sites: []string{"us", "eu", "as"}})
	clients := dialAll(t, cluster)
	create(t, limit, clients...)
	m := &movers{clients: clients}
	kills, open, repeated := 0, 0, 0
	for _, name := range []string{"pwrite64", "fdatasync"} {
		for _, n := range pick([]int{1, 2, 30}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 24, 32, 40}) {
			if killAt(t, cluster, m, name, n) {
				open++
			}
			kills++
			repeated += m.check(t, limit)
			if t.Failed() {
				t.Fatalf("after a kill at %s number %d of a thread", name, n)
			}
		}
	}
	redistributions := clients[0].share(t).GetRedistributions()
	if redistributions == 0 || long() && open == 0 {
		t.Error("kills met acquires and releases alone, no redistribution")
	}
	t.Logf("%d kills, %d of them with an open instance; %d redistributions, %d answers repeated", kills, open, redistributions, repeated)
}

// killAt has callers move tokens until the first site is killed at the n-th
// call of a name that one of its threads makes, starts it again and settles
// what has no outcome. It reports whether an instance was open at the site.
func killAt(t *testing.T, cluster *proc.Cluster, m *movers, name string, n int) (open bool) {
	t.Helper()
	site := cluster.Site(0)
	m.prefix = fmt.Sprintf("kill-%s-%d", name, n)
	tr := attach(t, site.PID(), "-e", "trace="+name, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", name, n))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.run(ctx, 6)
	}()
	err := expectDeath(t, cluster, site)
	cancel()
	<-done
	tr.wait()
	if signal := killedBy(err); signal != syscall.SIGKILL {
		t.Errorf("the site was ended by %v, want SIGKILL: %v", signal, err)
	}
	if calls := strings.Count(tr.text(), name+"("); calls < n {
		t.Errorf("the site was killed after %d %s, want at least %d", calls, name, n)
	}
	open = instanceOpen(t, site.Data)
	restart(t, site)
	m.settle(t)
	return open
}
