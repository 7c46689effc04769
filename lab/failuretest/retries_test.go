package failuretest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/sitetest"
)

// clientsOfRetries is how many clients retry at once.
const clientsOfRetries = 100

// TestRetries lets 100 clients acquire, release, and hold leases through app managers,
// over gRPC and HTTP, while it kills sites and app managers. Each client repeats a
// request of unknown outcome at another app manager until it has an answer. The test also
// kills sites that have executed requests, before any answer to these requests can leave.
// In the end the sites' books match the clients' holdings, as the clients know them.
func TestRetries(t *testing.T) {
	needStrace(t)
	const limit = 700
	seed := seedOf(t)
	t.Logf("seed %d", seed)
	length, wanted := pick(8*time.Second, 30*time.Second), pick(1, 3)
	cluster := start(t, proc.Config{
		Sites: regions, AppManagers: regions[:3],
		// No answer may be forgotten before it is asked for again.
		SiteArgs: []string{"--request-retention", "30m"},
	})
	clients := dialAll(t, cluster)
	create(t, limit, clients...)
	var doors []*door
	for _, p := range cluster.AppManagers() {
		doors = append(doors, newDoor(t, p))
	}
	w := newRetriers(t, seed, limit, doors)
	w.ttlMin, w.ttlMax = pick(2*time.Second, 10*time.Second), pick(10*time.Second, 60*time.Second)

	// The load goes on for longer if too few kills came between executing and
	// replying.
	ctx, cancel := context.WithTimeout(t.Context(), 6*length)
	defer cancel()
	owners := make([]*owner, clientsOfRetries)
	var all, faults sync.WaitGroup
	for i := range owners {
		owners[i] = &owner{w: w, rng: rand.New(rand.NewPCG(seed, uint64(i))), name: fmt.Sprint(i), overHTTP: i%2 == 0}
		all.Go(func() { owners[i].run(ctx) })
	}
	f := &failures{t: t, w: w, cluster: cluster}
	faults.Go(func() { f.killSites(ctx, rand.New(rand.NewPCG(seed, 1000)), cluster.Sites()[3:], length) })
	faults.Go(func() { f.killAppManagers(ctx, rand.New(rand.NewPCG(seed, 1001))) })
	f.killExecuted(ctx, rand.New(rand.NewPCG(seed, 1002)), cluster.Sites()[:3], length, wanted)
	cancel()
	faults.Wait()
	heal(t, cluster)
	all.Wait()
	if w.hasFailed() {
		t.Fatalf("seed %d: a request has no answer", seed)
	}

	expireAll(t, owners)
	f.quiet()
	held := w.ledger.Held(entity)
	sum := int64(0)
	for _, o := range owners {
		sum += o.held
	}
	if sum != held {
		t.Fatalf("the clients hold %d, their ledger %d", sum, held)
	}
	f.sameBooks("after the load", held, clients)
	if f.executed < wanted {
		t.Errorf("seed %d: %d kills of a site after it executed and before it replied, want %d", seed, f.executed, wanted)
	}
	peak := w.ledger.MaxAcquired(entity)
	if peak.Tokens > limit {
		t.Errorf("seed %d: %d tokens were out after %s, the limit is %d", seed, peak.Tokens, peak.At, limit)
	}
	if slices.Contains([]int{
		w.granted, w.partly, w.released, w.leased, w.renewed, w.committed, w.returned, w.expired, w.repeated,
	}, 0) {
		t.Errorf("seed %d: something never happened: %+v", seed, w.retryCounts)
	}
	_, _, net := books(t, clients)
	f.repeatAll(held, clients)
	report(t, figures{
		{"seed", seed},
		{"requests", len(w.done)},
		{"attempts", w.attempts},
		{"repeated", w.repeated},
		{"most attempts", w.most},
		{"granted", w.granted},
		{"partly", w.partly},
		{"released", w.released},
		{"parked", w.parked},
		{"refused", w.refused},
		{"leases", w.leased},
		{"renewed", w.renewed},
		{"committed", w.committed},
		{"given back", w.returned},
		{"expired", w.expired + w.missed},
		{"kills of sites", f.sites},
		{"stops of sites", f.stops},
		{"after executing, before replying", f.executed},
		{"requests executed then", f.lost},
		{"kills of app managers", f.managers},
		{"held", held},
		{"books", net},
		{"max acquired", peak.Tokens},
		{"limit", limit},
	})
}

// failures kills the processes that the clients depend on.
type failures struct {
	t       *testing.T
	w       *retriers
	cluster *proc.Cluster

	mu                     sync.Mutex
	sites, stops, managers int
	// executed counts the kills of a site that had executed requests before any of their
	// answers left; lost counts the requests.
	executed, lost int
}

func (f *failures) do(err error) {
	if err != nil {
		f.t.Errorf("making processes fail: %v", err)
	}
}

func (f *failures) count(what *int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*what++
}

// killSites kills sites of some, a single site at a time, until ctx ends, or stops them
// so that they answer late. The first absence is longer than the protocols' time-outs.
func (f *failures) killSites(ctx context.Context, rng *rand.Rand, some []*proc.Process, length time.Duration) {
	away := length / 3
	for i := 0; wan.Wait(ctx, between(rng, 500*time.Millisecond, 2*time.Second)) == nil; i++ {
		p := some[rng.IntN(len(some))]
		if i > 0 && rng.IntN(3) == 0 {
			f.do(p.Signal(syscall.SIGSTOP))
			f.count(&f.stops)
			_ = wan.Wait(ctx, away) // ctx is looked at next
			f.do(p.Signal(syscall.SIGCONT))
		} else {
			f.do(p.Kill())
			f.count(&f.sites)
			_ = wan.Wait(ctx, away) // ctx is looked at next
			f.do(p.Start())
		}
		away = between(rng, time.Second, 4*time.Second)
	}
}

// killAppManagers kills app managers, sometimes two at once, until ctx ends.
func (f *failures) killAppManagers(ctx context.Context, rng *rand.Rand) {
	managers := f.cluster.AppManagers()
	for wan.Wait(ctx, between(rng, 300*time.Millisecond, 2*time.Second)) == nil {
		at, some := rng.IntN(len(managers)), 1+rng.IntN(2)
		for k := range some {
			f.do(managers[(at+k)%len(managers)].Kill())
			f.count(&f.managers)
		}
		_ = wan.Wait(ctx, between(rng, time.Second, 4*time.Second)) // ctx is looked at next
		for k := range some {
			f.do(managers[(at+k)%len(managers)].Start())
		}
	}
}

// killExecuted kills some sites in turn, each after it has executed requests and before
// it has answered them. It goes on for length, and until it has made as many such kills
// as wanted.
func (f *failures) killExecuted(ctx context.Context, rng *rand.Rand, some []*proc.Process, length time.Duration, wanted int) {
	t := f.t
	t.Helper()
	began := time.Now()
	for i := 0; (time.Since(began) < length || f.executed < wanted) && ctx.Err() == nil && !f.w.hasFailed(); i++ {
		_ = wan.Wait(ctx, between(rng, 300*time.Millisecond, 1500*time.Millisecond)) // ctx is looked at next
		p := some[i%len(some)]
		var open map[attempt.Key]*retried
		ran := killExecuted(t, p, func(ran []stored.Request) bool {
			open = f.w.unanswered()
			return slices.ContainsFunc(ran, func(r stored.Request) bool { return open[r.Key] != nil })
		})
		f.count(&f.sites)
		// Answers that left the site have come by then, through the live app managers.
		pause(t, 300*time.Millisecond)
		if lost := f.unreplied(p.Name, ran, open); lost > 0 {
			f.executed++
			f.lost += lost
			t.Logf("%s was killed after it executed %d requests and before it replied to any of them", p.Name, lost)
		}
		pause(t, between(rng, time.Second, 4*time.Second))
		restart(t, p)
	}
}

// unreplied counts the requests that a dead site executed in its last commit and that had
// no answer at its death. None of the commit's answers can have left.
func (f *failures) unreplied(site string, ran []stored.Request, open map[attempt.Key]*retried) int {
	lost := 0
	for _, r := range ran {
		if _, ok := open[r.Key]; !ok {
			continue // a release answered as parked, which is counted now
		}
		if f.w.hasAnswered(site, r.Key) {
			f.t.Errorf("%s answered a request in a commit that it was held in", site)
			return 0
		}
		lost++
	}
	return lost
}

// heal starts the processes that are down, and waits until all are ready.
func heal(t *testing.T, cluster *proc.Cluster) {
	t.Helper()
	for _, p := range append(append([]*proc.Process(nil), cluster.Sites()...), cluster.AppManagers()...) {
		if p.PID() == 0 {
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := cluster.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}

// expireAll waits until all leases that clients hold are over.
func expireAll(t *testing.T, owners []*owner) {
	t.Helper()
	for _, o := range owners {
		for len(o.leases) > 0 {
			pause(t, max(time.Millisecond, time.Until(o.leases[0].until)))
			o.expire()
		}
	}
}

// quiet waits until no site has a lease, a request to ask others about, or a waiting
// acquire.
func (f *failures) quiet() {
	f.t.Helper()
	for _, p := range f.cluster.Sites() {
		sitetest.Eventually(f.t, "quiet at "+p.Name, func() error {
			for _, name := range []string{"samya_site_leases", "samya_site_claims", "samya_site_waiting"} {
				n, err := gauge(f.t.Context(), p, name)
				if err == nil && n != 0 {
					err = fmt.Errorf("%s is %v", name, n)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// gauge reads a metric of a process.
func gauge(ctx context.Context, p *proc.Process, name string) (float64, error) {
	found, err := series(ctx, p, name)
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%s has %d metrics %s", p.Name, len(found), name)
	}
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

// series reads the values of all series of a process that a pattern matches,
// labels included.
func series(ctx context.Context, p *proc.Process, pattern string) ([]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.HTTP+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of %s: %w", p.Name, err)
	}
	defer func() { _ = resp.Body.Close() }() // all of it is read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of %s: %w", p.Name, err)
	}
	var values []float64
	for _, m := range regexp.MustCompile(`(?m)^`+pattern+` (\S+)$`).FindAllSubmatch(text, -1) {
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return nil, fmt.Errorf("read the metrics of %s: %w", p.Name, err)
		}
		values = append(values, v)
	}
	return values, nil
}
