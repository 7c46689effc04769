package failuretest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/wan"
)

// nemesis makes real sites fail in random ways until it is told to heal them.
type nemesis struct {
	t       *testing.T
	cluster *proc.Cluster
	clients []*client
	cuts    string

	mu     sync.Mutex
	counts map[string]int
}

func (n *nemesis) count(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[what]++
}

// The faults that a nemesis counts.
const (
	killed        = "kill"
	stopped       = "stop"
	stoppedOpen   = "stop in a redistribution"
	stoppedKilled = "stop and kill"
	partedFull    = "partition"
	partedOneWay  = "one-way partition"
	isolated      = "isolated site"
)

// processFaults kills and stops sites of some, a single site at a time, until ctx ends.
// Pauses and absences go from much less to more than the time-outs of the protocols.
func (n *nemesis) processFaults(ctx context.Context, rng *rand.Rand, some []*client) {
	for wan.Wait(ctx, between(rng, 100*time.Millisecond, time.Second)) == nil {
		p := some[rng.IntN(len(some))].site
		length := between(rng, 300*time.Millisecond, 5*time.Second)
		switch rng.IntN(5) {
		case 0:
			n.do(p.Kill())
			n.count(killed)
		case 1:
			n.do(p.Signal(syscall.SIGSTOP))
			n.count(stoppedKilled)
			n.wait(ctx, length/2)
			n.do(p.Kill())
		case 2, 3:
			p = n.busy(ctx, some)
			n.stop(p)
		default:
			n.stop(p)
		}
		n.wait(ctx, length)
		if p.PID() != 0 {
			n.do(p.Signal(syscall.SIGCONT))
			continue
		}
		n.do(p.Start())
	}
}

func (n *nemesis) stop(p *proc.Process) {
	n.do(p.Signal(syscall.SIGSTOP))
	n.count(stopped)
	if instanceOpen(n.t, p) || transferOpen(n.t, p) {
		n.count(stoppedOpen)
	}
}

// busy returns a site of some that has clients waiting or tokens offered, and so most
// likely leads an instance. If it finds none soon, it returns the first site of some.
func (n *nemesis) busy(ctx context.Context, some []*client) *proc.Process {
	for began := time.Now(); ctx.Err() == nil && time.Since(began) < 2*time.Second; n.wait(ctx, 2*time.Millisecond) {
		for _, c := range some {
			if s, ok := c.tryShare(ctx); ok && (whileWaiting(s) || whileOffering(s)) {
				return c.site
			}
		}
	}
	return some[0].site
}

// networkFaults cuts sites off from each other, until ctx ends.
func (n *nemesis) networkFaults(ctx context.Context, rng *rand.Rand) {
	for wan.Wait(ctx, between(rng, 200*time.Millisecond, 1500*time.Millisecond)) == nil {
		sites := slices.Clone(regions)
		rng.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
		some, others := sites[:2], sites[2:]
		switch rng.IntN(3) {
		case 0:
			n.cut(some, others)
			n.cut(others, some)
			n.count(partedFull)
		case 1:
			if rng.IntN(2) == 0 {
				some, others = others, some
			}
			n.cut(some, others)
			n.count(partedOneWay)
		default:
			n.cut(sites[:1], sites[1:])
			n.cut(sites[1:], sites[:1])
			n.count(isolated)
		}
		n.wait(ctx, between(rng, 300*time.Millisecond, 5*time.Second))
		n.join()
	}
}

// cut loses the messages from some to others.
func (n *nemesis) cut(some, others []string) {
	for _, from := range some {
		for _, to := range others {
			if from != to {
				n.do(os.WriteFile(cutFile(n.cuts, from, to), nil, 0o600))
			}
		}
	}
}

// join undoes all cuts.
func (n *nemesis) join() {
	for _, from := range regions {
		for _, to := range regions {
			if err := os.Remove(cutFile(n.cuts, from, to)); !errors.Is(err, fs.ErrNotExist) {
				n.do(err)
			}
		}
	}
}

// wait waits, no longer than ctx lasts.
func (n *nemesis) wait(ctx context.Context, d time.Duration) {
	_ = wan.Wait(ctx, d) // the caller looks at ctx next
}

func (n *nemesis) do(err error) {
	if err != nil {
		n.t.Errorf("making sites fail: %v", err)
	}
}

// heal joins all links and waits until all sites are ready.
func (n *nemesis) heal() {
	n.t.Helper()
	n.join()
	for _, p := range n.cluster.Sites() {
		if p.PID() == 0 {
			n.do(p.Start())
			continue
		}
		n.do(p.Signal(syscall.SIGCONT))
	}
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	if err := n.cluster.WaitReady(ctx); err != nil {
		n.t.Fatal(err)
	}
}

// figures are the counts, by name.
func (n *nemesis) figures() figures {
	var fs figures
	for _, what := range []string{killed, stopped, stoppedOpen, stoppedKilled, partedFull, partedOneWay, isolated} {
		fs = append(fs, figure{what, n.counts[what]})
	}
	return fs
}

// between draws a length of time.
func between(rng *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(rng.Int64N(int64(high-low)))
}

// cutsWork checks that a cluster decides nothing with all links cut, and decides with all
// links joined: otherwise the faults above would have no effect.
func (n *nemesis) cutsWork() {
	t := n.t
	t.Helper()
	n.cut(regions, regions)
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	if _, err := n.clients[0].create(ctx, "acme/cut"); err == nil {
		t.Fatal("a cluster decides although all its links are cut")
	}
	n.join()
	ctx, cancel = context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	for ctx.Err() == nil {
		if _, err = n.clients[0].create(ctx, "acme/cut"); err == nil {
			return
		}
	}
	t.Fatal(fmt.Errorf("a cluster does not decide with all its links: %w", err))
}
