package ratelab

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/samya-db/samya/internal/wan"
)

// load makes the requests for all quotas of a system. Load is open: a request is sent when
// it is due, whatever the outcomes before.
type load struct {
	o      *Options
	at     limiter
	name   string
	quotas []*loaded
	start  time.Time
}

// loaded is a quota with its arrivals, and the answers.
type loaded struct {
	*Quota
	arrivals []arrival

	mu       sync.Mutex
	requests []request
}

// request is a request with its answer. Times are since the start, by the clock that is never
// set.
type request struct {
	due, sent, answered time.Duration
	// wall is the request by the clock that draws windows.
	wall    Span
	outcome outcome
}

// tellEvery is the interval between messages of progress.
const tellEvery = 20 * time.Second

// run makes all requests and returns when all are answered.
func (l *load) run(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	l.start = time.Now()
	var under sync.WaitGroup
	for _, q := range l.quotas {
		q.requests = make([]request, 0, len(q.arrivals))
		under.Go(func() {
			if err := l.make(ctx, q); err != nil {
				end(err)
			}
		})
	}
	loaded := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() { l.tell(ctx, loaded) })
	under.Wait()
	close(loaded)
	telling.Wait()
	return context.Cause(ctx)
}

// make makes the requests of a quota.
func (l *load) make(ctx context.Context, q *loaded) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var open sync.WaitGroup
	defer open.Wait()
	for _, a := range q.arrivals {
		if err := wan.Wait(ctx, time.Until(l.start.Add(a.due))); err != nil {
			return context.Cause(ctx)
		}
		open.Go(func() {
			sent := time.Now()
			how, err := l.at.ask(ctx, a.region, q.Quota)
			answered := time.Now()
			r := request{
				due: a.due, sent: sent.Sub(l.start), answered: answered.Sub(l.start), outcome: how,
				wall: Span{sent.UnixNano(), answered.UnixNano()},
			}
			if err != nil {
				end(fmt.Errorf("a request of %v in region %s: %w", q.Quota, Regions[a.region], err))
				return
			}
			q.mu.Lock()
			defer q.mu.Unlock()
			q.requests = append(q.requests, r)
		})
	}
	open.Wait()
	return context.Cause(ctx)
}

// tell reports progress until done is closed.
func (l *load) tell(ctx context.Context, done <-chan struct{}) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-done:
			return
		case <-ctx.Done():
			return
		}
		var said strings.Builder
		fmt.Fprintf(&said, "%s: %.0f of %.0f s", l.name, time.Since(l.start).Seconds(), l.o.Duration.Seconds())
		for _, q := range l.quotas {
			q.mu.Lock()
			n, of := 0, len(q.requests)
			for i := range q.requests {
				if q.requests[i].outcome == granted {
					n++
				}
			}
			q.mu.Unlock()
			fmt.Fprintf(&said, "; %s %d of %d", q.name(), n, of)
		}
		l.o.Progress(said.String())
	}
}
