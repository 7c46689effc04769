package failuretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/wan"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// TestChaos runs five real sites under load, in each mode of the protocol and under each
// strategy. Meanwhile it kills sites, stops them and cuts them off from each other, all
// at once and at random. It sweeps all answers to clients for over-grants. In the end,
// with all sites and links up, every request has its answer, nothing is set aside, and
// the sites' books are the clients' ledger.
func TestChaos(t *testing.T) {
	for _, by := range pick(fewSetups[:2], allSetups) {
		t.Run(by.String(), func(t *testing.T) {
			chaos(t, by, pick(8*time.Second, 60*time.Second))
		})
	}
}

func chaos(t *testing.T, by setup, length time.Duration) {
	t.Helper()
	const limit = 1000
	seed := seedOf(t)
	t.Logf("seed %d", seed)
	bin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cuts := t.TempDir()
	cluster := start(t, proc.Config{
		Bin: bin, Sites: regions,
		SiteArgs: append(by.args(), "--request-retention", "30m", cutsFlag, cuts),
	})
	clients := dialAll(t, cluster)
	create(t, limit, clients...)
	n := &nemesis{t: t, cluster: cluster, clients: clients, cuts: cuts, counts: make(map[string]int)}
	n.cutsWork()

	w := &crowd{t: t, ledger: ledger.New(nil), limit: limit, began: time.Now(), clients: clients}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var all sync.WaitGroup
	for i := range clients {
		for k := range 3 {
			rng := rand.New(rand.NewPCG(seed, uint64(10*i+k)))
			all.Go(func() { w.client(ctx, i, k, rng) })
		}
	}
	// At most two sites are down at once, so that the others decide things.
	all.Go(func() { n.processFaults(ctx, rand.New(rand.NewPCG(seed, 1000)), clients[:3]) })
	all.Go(func() { n.processFaults(ctx, rand.New(rand.NewPCG(seed, 1001)), clients[3:]) })
	all.Go(func() { n.networkFaults(ctx, rand.New(rand.NewPCG(seed, 1002))) })
	all.Wait()
	n.heal()
	w.settle()
	settled(t, limit, w.ledger.Held(entity), clients...)
	w.repeatAll()

	redistributions := clients[0].share(t).GetRedistributions()
	transfers := uint64(0)
	for _, c := range clients {
		transfers += c.share(t).GetTransfers()
	}
	peak := w.ledger.MaxAcquired(entity)
	if peak.Tokens > limit {
		t.Errorf("seed %d: %d tokens were out after %s, the limit is %d", seed, peak.Tokens, peak.At, limit)
	}
	if p := w.ledger.Pending(entity); p != (ledger.Pending{}) {
		t.Errorf("seed %d: without an answer: %+v", seed, p)
	}
	if w.granted == 0 || w.released == 0 || redistributions+transfers == 0 || (transfers > 0) != (by.strategy == "transfer") || long() && w.settled == 0 {
		t.Errorf("seed %d: too little happened, or what should not: %+v, %d redistributions, %d rounds of transfers",
			seed, w.crowdCounts, redistributions, transfers)
	}
	fs := n.figures()
	for _, f := range fs {
		if long() && f.value == 0 {
			t.Errorf("seed %d: no %s", seed, f.name)
		}
	}
	report(t, append(figures{
		{"seed", seed},
		{"requests", w.granted + w.released + w.refused + w.failed},
		{"granted", w.granted},
		{"released", w.released},
		{"refused", w.refused},
		{"settled", w.settled},
		{"redistributions", redistributions},
		{"rounds of transfers", transfers},
		{"max acquired", peak.Tokens},
		{"limit", limit},
	}, fs...))
}

// crowd is the clients of all sites. A region's holdings follow a short day, so
// that tokens have to move.
type crowd struct {
	t       *testing.T
	ledger  *ledger.Ledger
	limit   int64
	began   time.Time
	clients []*client

	mu      sync.Mutex
	unknown []pending
	given   []given
	crowdCounts
}

// pending is a request without an answer.
type pending struct {
	given
	op *ledger.Op
}

// crowdCounts counts the answers to clients; settled counts the answers that a repeat
// brought.
type crowdCounts struct{ granted, released, refused, failed, settled int }

// client keeps its part of its region's holdings at this time of day.
func (w *crowd) client(ctx context.Context, region, k int, rng *rand.Rand) {
	const parts = 3
	want := day(w.limit, 6*time.Second, region, len(w.clients))
	held := int64(0)
	var open []pending
	for i := 0; wan.Wait(ctx, time.Duration(1+rng.IntN(4))*time.Millisecond) == nil; i++ {
		// A request without an answer holds up tokens; in the end such requests would
		// hold all.
		if len(open) > 0 && rng.IntN(2) == 0 {
			if more, ok := w.again(ctx, open[0]); ok {
				held, open = held+more, open[1:]
			} else {
				open = append(open[1:], open[0])
			}
			continue
		}
		target := int64(want(time.Since(w.began))) / parts
		a := answer{id: fmt.Sprintf("chaos-%d-%d-%d", region, k, i), kind: ledger.Acquire, asked: 1 + rng.Int64N(10)}
		switch {
		case held >= a.asked && (held > target || rng.IntN(8) == 0):
			a.kind = ledger.Release
		case held > target:
			continue
		}
		at := region
		if rng.IntN(10) == 0 {
			at = rng.IntN(len(w.clients))
		}
		more, op := w.request(w.clients[at], a)
		held += more
		if op != nil {
			open = append(open, pending{given{w.clients[at], a}, op})
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unknown = append(w.unknown, open...)
}

// again repeats a request without an answer while sites fail. ok reports whether there is
// an answer now; more is the increase of the client's holdings.
func (w *crowd) again(ctx context.Context, p pending) (more int64, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
	defer cancel()
	got := send(ctx, p.client, p.answer, 0)
	if !binds(got) {
		return 0, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	more = w.resolve(p, got)
	if p.answer.kind == ledger.Release {
		more += p.answer.asked // they count as given back already
	}
	return more, true
}

// resolve books the answer to a request that had none, and returns the increase of the
// client's holdings. The caller holds the lock.
func (w *crowd) resolve(p pending, got answer) int64 {
	w.settled++
	if got.reason == "" {
		p.op.Resolve(ledger.Executed)
	} else {
		p.op.Resolve(ledger.Refused)
	}
	return w.book(given{p.client, got})
}

// request makes a request, and returns the increase of the client's holdings. A release
// of unknown outcome counts as executed: the client does not release its tokens again. If
// the request has no answer, request also returns the operation.
func (w *crowd) request(c *client, a answer) (more int64, unknown *ledger.Op) {
	op := w.ledger.Invoke(entity, a.kind, a.asked)
	ctx, cancel := context.WithTimeout(w.t.Context(), 1500*time.Millisecond)
	got := send(ctx, c, a, 400*time.Millisecond)
	cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case got.reason == "":
		op.Return(ledger.Executed)
		return w.book(given{c, got}), nil
	case got.reason.NothingDone():
		op.Return(ledger.Refused)
		if got.reason == apierr.OutOfTokens {
			return w.book(given{c, got}), nil
		}
		w.failed++
		return 0, nil
	default:
		op.Unknown()
		if a.kind == ledger.Release {
			more = -a.asked
		}
		return more, op
	}
}

// book counts an answer and returns the increase of the client's holdings. The caller
// holds the lock.
func (w *crowd) book(g given) int64 {
	w.given = append(w.given, g)
	switch {
	case g.answer.reason != "":
		w.refused++
		return 0
	case g.answer.kind == ledger.Release:
		w.released++
		return -g.answer.asked
	default:
		w.granted++
		return g.answer.tokens
	}
}

// settle repeats the requests without an answer until each has an answer.
func (w *crowd) settle() {
	w.t.Helper()
	for _, p := range w.unknown {
		var got answer
		sitetest.Eventually(w.t, "the answer to "+p.answer.id, func() error {
			if got = repeat(w.t.Context(), p.client, p.answer); !binds(got) {
				return fmt.Errorf("%+v", got)
			}
			return nil
		})
		w.resolve(p, got)
	}
}

// repeatAll repeats the answered requests, and checks that the answers are the same.
func (w *crowd) repeatAll() {
	w.t.Helper()
	var all sync.WaitGroup
	const workers = 8
	for k := range workers {
		all.Go(func() {
			for i := k; i < len(w.given); i += workers {
				g := w.given[i]
				if again := repeat(w.t.Context(), g.client, g.answer); again != g.answer {
					w.t.Errorf("%s answered %+v, and the repeat %+v", g.client.site.Name, g.answer, again)
				}
			}
		})
	}
	all.Wait()
}

// tryShare reads the site's own share if the site answers soon.
func (c *client) tryShare(ctx context.Context) (*samyav1.Share, bool) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	resp, err := c.GetEntity(ctx, &samyav1.GetEntityRequest{Name: entity})
	if err != nil {
		return nil, false
	}
	return resp.GetUsage().GetShares()[0], true
}

// create creates another entity.
func (c *client) create(ctx context.Context, name string) (*samyav1.Entity, error) {
	resp, err := c.CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: name, Limit: 1, RequestId: name})
	return resp.GetEntity(), err
}
