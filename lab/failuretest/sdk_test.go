package failuretest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/samya-db/samya/client"
	"github.com/samya-db/samya/devcluster/proc"
)

// TestGoClientThroughKills has callers of the Go client acquire and release while it
// kills and restarts sites. Each caller resumes its calls of unknown outcome. In the end
// the books' acquired tokens are the callers' tokens.
func TestGoClientThroughKills(t *testing.T) {
	const limit, callers = 50_000, 100
	kills := pick(4, 20)
	cluster := start(t, proc.Config{Sites: regions})
	clients := dialAll(t, cluster)
	create(t, limit, clients...)
	cfg := sdk.Config{Region: regions[0], RepeatTime: 3 * time.Minute}
	for _, c := range clients {
		cfg.Targets = append(cfg.Targets, sdk.Target{Address: c.site.GRPC, Region: c.site.Name})
	}
	c, err := sdk.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())

	var all sync.WaitGroup
	var held, calls, resumed, elsewhere atomic.Int64
	over := make(chan struct{})
	for range callers {
		all.Go(func() {
			var mine int64
			for running := true; running; {
				moved, site, err := sdkMove(t.Context(), c, mine, nil)
				for errors.Is(err, sdk.ErrOutcomeUnknown) {
					resumed.Add(1)
					moved, site, err = sdkMove(t.Context(), c, mine, err)
				}
				// Refusals move nothing. A site may lack tokens while others are down.
				if err != nil && !errors.Is(err, sdk.ErrOutOfTokens) && !errors.Is(err, sdk.ErrUnavailable) && !errors.Is(err, sdk.ErrOverloaded) {
					t.Error(err)
					break
				}
				calls.Add(1)
				if site != regions[0] {
					elsewhere.Add(1)
				}
				mine += moved
				select {
				case <-over:
					running = false
				default:
				}
			}
			held.Add(mine)
		})
	}
	for i := range kills {
		pause(t, rand.N(500*time.Millisecond))
		p := cluster.Site(i % 2)
		kill(t, p)
		restart(t, p)
	}
	close(over)
	all.Wait()
	t.Logf("%d calls, %d answered elsewhere, %d resumed, %d tokens held", calls.Load(), elsewhere.Load(), resumed.Load(), held.Load())
	if elsewhere.Load() == 0 {
		t.Error("no call was answered by another site: the kills do not bite")
	}
	settled(t, limit, held.Load(), clients...)
}

// sdkMove acquires a few tokens, or gives back most of the held tokens.
func sdkMove(ctx context.Context, c *sdk.Client, held int64, before error) (moved int64, site string, err error) {
	if held < 100 {
		g, err := c.Acquire(ctx, entity, 7, sdk.Resume(before))
		return g.Tokens, g.Site, err
	}
	r, err := c.Release(ctx, entity, 90, sdk.Resume(before))
	return -r.Tokens, r.Site, err
}
