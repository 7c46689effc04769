package failuretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/stored"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ask makes an attempt straight at a site.
func (r *retried) ask(ctx context.Context, c *client) reply {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return r.call(ctx, c, grpc.WaitForReady(true))
}

// each hands requests to several workers.
func each(rs []*retried, do func(*retried)) {
	var all sync.WaitGroup
	const workers = 8
	for k := range workers {
		all.Go(func() {
			for i := k; i < len(rs); i += workers {
				do(rs[i])
			}
		})
	}
	all.Wait()
}

// askAgain repeats the latest attempt of every request at the site that answered it, and
// compares the answers. If an app manager made further tries of the attempt, the site
// refuses the repeat as superseded. askAgain returns the number of equal answers.
func askAgain(t *testing.T, rs []*retried, at map[string]*client) int {
	t.Helper()
	var same, superseded atomic.Int64
	each(rs, func(r *retried) {
		c, ok := at[r.answer.site]
		if !ok {
			return // a refusal that was not recorded
		}
		got := r.ask(t.Context(), c)
		switch {
		case got.reason() == r.answer.reason() && got.tokens == r.answer.tokens && got.lease == r.answer.lease:
			same.Add(1)
		case got.reason() == apierr.Superseded && r.verb != commitVerb:
			superseded.Add(1)
		default:
			t.Errorf("%s, attempt %d: %s answered %+v, and the repeat %+v", r.id, r.attempt, r.answer.site, r.answer, got)
		}
	})
	if same.Load() < superseded.Load() {
		t.Errorf("%d repeats have the same answer, %d are superseded", same.Load(), superseded.Load())
	}
	return int(same.Load())
}

// knownEverywhere takes acquires with an attempt that said that earlier attempts may have
// reached any site, so that all sites know them. Each site must refuse earlier attempts
// as superseded, and refuse other requests under the id. For a release, a site stops
// asking other sites as soon as a site has it.
func knownEverywhere(t *testing.T, rs []*retried, clients []*client) int {
	t.Helper()
	var refused atomic.Int64
	each(rs, func(r *retried) {
		for _, c := range clients {
			early, other := *r, *r
			early.attempt--
			if got := early.ask(t.Context(), c); !late(got) {
				t.Errorf("%s, attempt %d after %d at %s: %+v", r.id, early.attempt, r.attempt, c.site.Name, got)
			}
			other.tokens++
			if got := other.ask(t.Context(), c); got.reason() != apierr.RequestIDReused {
				t.Errorf("%s, for %d tokens after %d, at %s: %+v", r.id, other.tokens, r.tokens, c.site.Name, got)
			}
			refused.Add(1)
		}
	})
	return int(refused.Load())
}

// late reports whether a reply to an earlier attempt moves nothing.
func late(got reply) bool {
	return got.reason() == apierr.Superseded || got.reason() == apierr.OutOfTokens
}

// reusedThroughAppManagers uses an id for another request at an app manager, over
// gRPC and HTTP, and checks the codes.
func reusedThroughAppManagers(t *testing.T, r *retried, d *door) {
	t.Helper()
	other := *r
	other.tokens++
	_, err := d.tokens.Acquire(t.Context(), other.acquire())
	if status.Code(err) != codes.AlreadyExists {
		t.Errorf("another request under %s over gRPC: %v", r.id, err)
	}
	code, text, err := postJSON(t.Context(), d.http, "http://"+d.process.HTTP+"/v1/entities/"+entity+":acquire", map[string]any{
		"tokens": other.tokens, "request_id": r.id, "attempt": r.attempt, "not_after": r.notAfter.UTC().Format(time.RFC3339Nano),
	})
	if err != nil || code != http.StatusConflict {
		t.Errorf("another request under %s over HTTP: %d %s %v", r.id, code, text, err)
	}
}

// moveOn makes a further attempt of each answered request, at another site than the
// answering site. The new answer counts. moveOn returns the increase of the clients'
// holdings.
func moveOn(t *testing.T, rs []*retried, clients []*client, seed uint64) int64 {
	t.Helper()
	var more atomic.Int64
	each(rs, func(r *retried) {
		before, next := *r, r
		next.attempt, next.anywhere = r.attempt+1, true
		at := int(seed+uint64(r.tokens)) % len(clients)
		if clients[at].site.Name == before.answer.site {
			at = (at + 1) % len(clients)
		}
		next.answer = next.ask(t.Context(), clients[at])
		if !next.settles(next.answer) {
			t.Errorf("%s, attempt %d at %s: %+v", r.id, next.attempt, clients[at].site.Name, next.answer)
		}
		if r.verb == acquireVerb {
			more.Add(next.answer.tokens - before.answer.tokens)
		}
	})
	return more.Load()
}

// repeatAll repeats the answered requests: at the sites that answered, which must give
// the same answers; at all sites as earlier attempts and as other requests; and a sample
// at other sites as further attempts. Only the further attempts may move tokens, once.
func (f *failures) repeatAll(held int64, clients []*client) {
	t, w := f.t, f.w
	t.Helper()
	at := make(map[string]*client)
	for _, c := range clients {
		at[c.site.Name] = c
	}
	var everywhere, further []*retried
	for _, r := range w.done {
		if r.verb == commitVerb || r.lease != "" || r.ttl > 0 {
			continue
		}
		if r.verb == acquireVerb && r.anywhere && r.attempt > 1 && r.answer.site != "" {
			everywhere = append(everywhere, r)
		}
		if r.answer.site != "" {
			further = append(further, r)
		}
	}
	same := askAgain(t, w.done, at)
	everywhere = everywhere[:min(len(everywhere), 200)]
	refused := knownEverywhere(t, everywhere, clients)
	if len(everywhere) == 0 {
		t.Errorf("seed %d: no acquire is known at all sites", w.seed)
	} else {
		reusedThroughAppManagers(t, everywhere[0], w.doors[0])
	}
	f.sameBooks("after the repeats", held, clients)

	rng := rand.New(rand.NewPCG(w.seed, 2000))
	rng.Shuffle(len(further), func(i, j int) { further[i], further[j] = further[j], further[i] })
	further = further[:min(len(further), 200)]
	held += moveOn(t, further, clients, w.seed)
	f.quiet()
	f.sameBooks("after the further attempts", held, clients)
	report(t, figures{
		{"answers the same", fmt.Sprintf("%d of %d", same, len(w.done))},
		{"known everywhere", refused},
		{"moved to another site", len(further)},
	})
}

// sameBooks waits until the sites' books match the clients' holdings. If they do not, it
// reads the requests that differ from the disks.
func (f *failures) sameBooks(when string, held int64, clients []*client) {
	t := f.t
	t.Helper()
	var last error
	for began := time.Now(); time.Since(began) < patience/2; pause(t, 20*time.Millisecond) {
		left, offered, net := books(t, clients)
		if offered == 0 && net == held && left+net == f.w.limit {
			return
		}
		last = fmt.Errorf("left %d, offered %d, acquired %d; the clients hold %d of %d", left, offered, net, held, f.w.limit)
	}
	t.Errorf("%s: %v", when, last)
	f.checkDisks()
	t.FailNow()
}

// checkDisks ends all sites and compares the records of each request with the answer to
// its client: each request ran once, at a single site, or never.
func (f *failures) checkDisks() {
	t := f.t
	t.Helper()
	byKey := make(map[attempt.Key]map[string]stored.Request)
	for _, p := range f.cluster.Sites() {
		kill(t, p)
		state, err := loaded(t, copyData(t, p), p.Name)
		if err != nil {
			t.Fatal(err)
		}
		_, records := blocksOf(t, &state, 0)
		for _, r := range records {
			if byKey[r.Key] == nil {
				byKey[r.Key] = make(map[string]stored.Request)
			}
			byKey[r.Key][p.Name] = r
		}
	}
	for _, r := range f.w.done {
		if r.verb == commitVerb || r.lease != "" {
			continue
		}
		var ran int64
		for _, record := range byKey[keyOfRequest(r.id)] {
			if record.State == stored.Ran {
				ran += int64(record.Tokens)
			}
		}
		if ran != r.answer.tokens {
			t.Errorf("%s, attempt %d, %d tokens: its client was told %+v at %s; the sites have %+v",
				r.id, r.attempt, r.tokens, r.answer, r.by, byKey[keyOfRequest(r.id)])
		}
	}
}
