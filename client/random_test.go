package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// faulty lets operations at s fail in every possible way: refused, done with the answer
// lost, not done, done late, or answered as unknown. An unknown answer comes as from s
// itself, or as from an app manager that has gone from site to site.
func (s *server) faulty(rng *rand.Rand) {
	var mu sync.Mutex
	dice := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
	s.answers(func(op *samyav1.Operation) *samyav1.Result {
		r, _, _ := partsOf(op)
		switch dice(20) {
		case 0:
			s.execute(op)
			return nil
		case 1:
			return nil
		case 2:
			delay := time.Duration(dice(20_000)) * time.Millisecond
			if pause(context.Background(), delay) == nil {
				s.execute(op)
			}
			return nil
		case 3:
			s.execute(op)
			s.cut()
			return nil
		case 4:
			s.cut()
			return nil
		case 5:
			return failed(apierr.Overload(s.name, time.Duration(dice(1000))*time.Millisecond))
		case 6:
			return refuse(apierr.ShuttingDown)
		case 7, 8:
			e := &apierr.Error{Reason: apierr.OutcomeUnknown, RequestID: r.GetRequestId()}
			if s.front {
				e.Attempt = max(1, r.GetAttempt()) + 1
				e.Tried = append(append(e.Tried, r.GetTried()...), s.sites[0])
				if r.GetAttempt() > 1 && len(r.GetTried()) == 0 {
					e.Tried = nil
				}
			}
			if dice(2) == 0 {
				s.world.execute(s.sites[0], op)
			}
			return failed(e)
		}
		return s.execute(op)
	})
}

// TestEveryOperationCountsOnce: whatever becomes of messages and connections, the final
// answers to clients agree with the books. Every operation counts once, by its latest
// attempt.
func TestEveryOperationCountsOnce(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 10
	}
	var stats struct{ calls, resumed, elsewhere, acked int }
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(seed), 6))
				w := newWorld()
				servers := []*server{w.site("a", near), w.manager("b", near, "a", "c"), w.site("c", far)}
				for _, s := range servers {
					s.faulty(rand.New(rand.NewPCG(rng.Uint64(), 1)))
				}
				bubble(t, w, func(c *Config) { c.RepeatTime = 3 * time.Minute }, "a", func(c *Client) {
					var all sync.WaitGroup
					var mu sync.Mutex
					var held int64
					for range 4 {
						mine := rand.New(rand.NewPCG(rng.Uint64(), 2))
						all.Go(func() {
							for range 10 {
								ctx, cancel := context.WithTimeout(t.Context(), time.Duration(mine.IntN(5000))*time.Millisecond)
								n, resumed, site := settle(ctx, t, c, mine)
								cancel()
								mu.Lock()
								held += n
								stats.calls++
								if resumed {
									stats.resumed++
								}
								if site != "a" {
									stats.elsewhere++
								}
								mu.Unlock()
							}
						})
					}
					over := make(chan struct{})
					all.Go(func() { nemesis(over, servers, rand.New(rand.NewPCG(rng.Uint64(), 3))) })
					time.AfterFunc(time.Minute, func() {
						close(over)
						for _, s := range servers {
							s.answers(s.execute)
						}
					})
					all.Wait()
					// Operations that arrive late must change nothing.
					if err := pause(t.Context(), time.Minute); err != nil {
						t.Fatal(err)
					}
					w.books(t, held)
					for _, n := range w.acked {
						stats.acked += int(n)
					}
				})
			})
		})
	}
	t.Logf("%d calls, %d of them resumed, %d answered elsewhere, %d acknowledged", stats.calls, stats.resumed, stats.elsewhere, stats.acked)
	if stats.resumed < seeds || stats.elsewhere < seeds || stats.acked < seeds {
		t.Errorf("of %d calls %d were resumed, %d answered elsewhere and %d acknowledged: the faults do not bite", stats.calls, stats.resumed, stats.elsewhere, stats.acked)
	}
}

// settle makes an operation until its outcome is known, and returns the tokens that its
// client holds by it.
func settle(ctx context.Context, t *testing.T, c *Client, rng *rand.Rand) (tokens int64, resumed bool, site string) {
	t.Helper()
	n := 1 + rng.Int64N(9)
	move := func(ctx context.Context, err error) (int64, string, error) {
		g, err := c.Acquire(ctx, "acme/vm", n, Resume(err))
		return g.Tokens, g.Site, err
	}
	switch rng.IntN(4) {
	case 0:
		move = func(ctx context.Context, err error) (int64, string, error) {
			r, err := c.Release(ctx, "acme/vm", n, Resume(err))
			return -r.Tokens, r.Site, err
		}
	case 1:
		move = func(ctx context.Context, err error) (int64, string, error) {
			rs, berr := c.Batch(ctx, AcquireOp("acme/vm", n, Resume(err)))
			if berr != nil {
				return 0, "", berr
			}
			return rs[0].Tokens, rs[0].Site, rs[0].Err
		}
	case 2:
		move = func(ctx context.Context, err error) (int64, string, error) {
			g, err := c.AcquireAll(ctx, []Part{{"acme/vm", n}, {"acme/seats", 1}}, Resume(err))
			if err != nil {
				return 0, "", err
			}
			return n + 1, g.Site, nil
		}
	}
	tokens, site, err := move(ctx, nil)
	for errors.Is(err, ErrOutcomeUnknown) {
		resumed = true
		tokens, site, err = move(t.Context(), err)
	}
	if err == nil {
		return tokens, resumed, site
	}
	if resumed || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrOverloaded) && !errors.Is(err, ErrUnavailable) {
		t.Errorf("an operation ended with %v", err)
	}
	return 0, resumed, site
}

// nemesis takes targets down and up, and silences them, until it is over.
func nemesis(over <-chan struct{}, servers []*server, rng *rand.Rand) {
	for {
		s := servers[rng.IntN(len(servers))]
		switch rng.IntN(3) {
		case 0:
			s.set(connectivity.TransientFailure)
		case 1:
			s.setSilent(true)
		case 2:
			s.cut()
		}
		if err := pause(context.Background(), time.Duration(rng.IntN(4000))*time.Millisecond); err != nil {
			return
		}
		s.setSilent(false)
		s.set(connectivity.Ready)
		select {
		case <-over:
			return
		default:
		}
	}
}
