package failuretest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/devcluster/proc"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// fillBatch is how many requests a call of fill has, fillCallers how many calls are
	// under way.
	fillBatch, fillCallers = 100, 16
	// restartTime bounds the restart of a site that remembers 10 million requests.
	restartTime = 5 * time.Second
	// restartPeak bounds the peak of memory in a restart, in hundredths of the memory
	// before it.
	restartPeak = 120
)

// TestRestartWithManyRequests fills a site with remembered requests, kills it, and starts
// it again. It measures the memory of a request, the time of the restart, and the peak of
// memory meanwhile. The restarted site knows the requests. The short form has too few for
// the bounds.
func TestRestartWithManyRequests(t *testing.T) {
	for _, n := range pick([]int{50_000}, []int{10_000_000, 15_000_000}) {
		t.Run(fmt.Sprint(n), func(t *testing.T) { restartWith(t, n) })
	}
}

func restartWith(t *testing.T, n int) {
	t.Helper()
	cluster := start(t, proc.Config{Sites: []string{"us"}, SiteArgs: []string{"--request-retention", "30m", "--max-requests", "20000000"}})
	site := cluster.Site(0)
	c := dial(t, site)
	create(t, 1<<40, c)
	calm := pick(100*time.Millisecond, 3*time.Second)
	idle := footprints(t, site, calm)
	began := time.Now()
	fill(t, c, n)
	filled := time.Since(began)
	full := footprints(t, site, calm)

	if err := site.Kill(); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	if err := site.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := site.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	peak := footprintOf(t, site).peak
	after := footprints(t, site, calm)

	net := shareOf(t, c)
	for _, i := range []int{0, n / 2, n - 1} {
		batch := fillOf(i, 1)
		if out, err := c.Batch(t.Context(), batch); err != nil || len(out.GetResults()) != 1 || out.GetResults()[0].GetAcquire() == nil {
			t.Fatalf("repeating request %d: %v, %v", i, out, err)
		}
	}
	if again := shareOf(t, c); again != net || net != int64(n) {
		t.Errorf("%d tokens are out, %d after repeats, want %d", net, again, n)
	}

	each := float64(full.own-idle.own) * 1024 / float64(n)
	t.Logf("%d requests in %s, %.1f bytes each; resident %d kB; restart in %s, peak %d kB, then %d kB", n, filled, each, full.rss, took, peak, after.rss)
	if long() && peak*100 > restartPeak*full.rss {
		t.Errorf("the restart took %d kB at its peak, before it the site had %d kB", peak, full.rss)
	}
	if most := restartTime * time.Duration(max(n, 10_000_000)) / 10_000_000; took > most {
		t.Errorf("the restart took %s, at most %s", took, most)
	}
	report(t, figures{
		{"bytes a request", fmt.Sprintf("%.1f", each)},
		{"kB before", full.rss},
		{"kB at the peak", peak},
		{"kB after", after.rss},
		{"restart ms", took.Milliseconds()},
	})
}

// fill makes acquires of a token each, with n different ids.
func fill(t *testing.T, c *client, n int) {
	t.Helper()
	var next, refused atomic.Int64
	var callers sync.WaitGroup
	for range fillCallers {
		callers.Go(func() {
			for {
				first := int(next.Add(fillBatch)) - fillBatch
				if first >= n || t.Context().Err() != nil {
					return
				}
				out, err := c.Batch(t.Context(), fillOf(first, min(fillBatch, n-first)))
				if err != nil {
					t.Error(err)
					return
				}
				for _, r := range out.GetResults() {
					if r.GetAcquire() == nil {
						refused.Add(1)
					}
				}
			}
		})
	}
	callers.Wait()
	if refused.Load() > 0 || t.Failed() {
		t.Fatalf("%d of %d requests were refused", refused.Load(), n)
	}
}

// fillOf is a call of fill.
func fillOf(first, n int) *samyav1.BatchRequest {
	in := &samyav1.BatchRequest{Operations: make([]*samyav1.Operation, n)}
	for i := range in.Operations {
		in.Operations[i] = &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{
			Entity: entity, Tokens: 1, RequestId: fmt.Sprint("filled-", first+i), Wait: durationpb.New(0),
		}}}
	}
	return in
}

// shareOf is the number of tokens out at a site.
func shareOf(t *testing.T, c *client) int64 {
	t.Helper()
	_, _, net := books(t, []*client{c})
	return net
}
