package realtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/lab/replay"
	"github.com/samya-db/samya/lab/virtual"
)

const (
	// retryEvery is the pause before a request is made again whose outcome is not
	// known, or that must be done and was not.
	retryEvery = 100 * time.Millisecond
	// tellEvery is how often progress is told.
	tellEvery = 10 * time.Second
)

// load makes the requests of a demand, each at the site of its place.
type load struct {
	o      *Options
	sites  []*client.Client
	ledger *ledger.Ledger
	start  time.Time

	mu       sync.Mutex
	requests []request // as they were answered
	resumed  int       // how often one was asked again what had become of it
}

// request is what became of one acquire or release. Times are since the start.
type request struct {
	kind                ledger.Kind
	due, sent, answered time.Duration
	executed            bool
	// late: there was no answer in time.
	late bool
}

func newLoad(o *Options, sites []*client.Client) *load {
	return &load{o: o, sites: sites, ledger: ledger.New(nil), requests: make([]request, 0, 2*len(o.Demand.Leases))}
}

// run makes all requests and returns when all are answered.
func (l *load) run(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	l.o.Progress(fmt.Sprintf("making load: %d leases in %v", len(l.o.Demand.Leases), l.o.Demand.Span))
	l.start = time.Now()
	var leases, telling sync.WaitGroup
	loaded := make(chan struct{})
	telling.Go(func() { l.tell(ctx, loaded) })
	for i := range l.o.Demand.Leases {
		one := &l.o.Demand.Leases[i]
		if err := l.until(ctx, one.Due); err != nil {
			break // as the leases under way do
		}
		leases.Go(func() {
			if err := l.lease(ctx, one); err != nil {
				end(err)
			}
		})
	}
	leases.Wait()
	close(loaded)
	telling.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// until waits for a time since the start.
func (l *load) until(ctx context.Context, at time.Duration) error {
	return wan.Wait(ctx, time.Until(l.start.Add(at)))
}

// lease acquires a token and, if it is granted, releases it when it was held for
// long enough, unless that is behind the end of the demand.
func (l *load) lease(ctx context.Context, of *replay.Lease) error {
	got, err := l.make(ctx, ledger.Acquire, of.Place, of.Due)
	if err != nil || !got.executed {
		return err
	}
	due := max(of.Due+of.Hold, got.answered)
	if due >= l.o.Demand.Span {
		return nil
	}
	if err := l.until(ctx, due); err != nil {
		return err
	}
	_, err = l.make(ctx, ledger.Release, of.Place, due)
	return err
}

// make makes a request again and again until it is known what became of it.
func (l *load) make(ctx context.Context, kind ledger.Kind, at virtual.Place, due time.Duration) (request, error) {
	q := request{kind: kind, due: due, sent: time.Since(l.start)}
	patience := margin
	if kind == ledger.Acquire {
		patience += l.o.Wait
	}
	booked := l.ledger.Invoke(entity, kind, 1)
	id := ulid.Make().String()
	giveUp := time.Now().Add(patience + client.DefaultRepeatTime)
	// open is what the request is resumed from, once its outcome was not known.
	var open, err error
	for {
		err = l.send(ctx, kind, at, id, patience, open)
		if ctx.Err() != nil {
			return q, ctx.Err()
		}
		unknown := errors.Is(err, client.ErrOutcomeUnknown)
		if unknown {
			if open == nil {
				booked.Unknown()
			}
			open = err
		}
		// What was not done settles an acquire, unless it was not known before.
		if !unknown && (!undone(err) || kind == ledger.Acquire && open == nil) {
			break
		}
		if time.Now().After(giveUp) {
			return q, fmt.Errorf("%w: %v at site %s has no outcome: %w", ErrUnsound, kind, regions[at], err)
		}
		l.mu.Lock()
		l.resumed++
		l.mu.Unlock()
		if err := wan.Wait(ctx, retryEvery); err != nil {
			return q, err
		}
	}
	q.answered = time.Since(l.start)
	q.executed = err == nil
	q.late = q.answered-due > patience || undone(err)
	if refused := kind == ledger.Acquire && errors.Is(err, client.ErrOutOfTokens); err != nil && !q.late && !refused {
		return q, fmt.Errorf("%w: %v at site %s: %w", ErrUnsound, kind, regions[at], err)
	}
	l.book(q, booked, open != nil)
	return q, nil
}

// undone reports whether err tells that nothing was done and that this says nothing
// of the tokens.
func undone(err error) bool {
	return err != nil && !errors.Is(err, client.ErrOutcomeUnknown) &&
		(errors.Is(err, client.ErrUnavailable) || errors.Is(err, client.ErrOverloaded) || errors.Is(err, context.DeadlineExceeded))
}

// send makes one call, which goes on from open if that is not nil: the request is
// done once, however often it is asked for.
func (l *load) send(ctx context.Context, kind ledger.Kind, at virtual.Place, id string, patience time.Duration, open error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := client.RequestID(id)
	if open != nil {
		again = client.Resume(open)
	}
	var err error
	if kind == ledger.Acquire {
		_, err = l.sites[at].Acquire(ctx, entity, 1, client.Wait(l.o.Wait), again)
	} else {
		_, err = l.sites[at].Release(ctx, entity, 1, again)
	}
	return err
}

// book writes down what became of a request.
func (l *load) book(q request, booked *ledger.Op, unknown bool) {
	outcome := ledger.Refused
	if q.executed {
		outcome = ledger.Executed
	}
	if unknown {
		booked.Resolve(outcome)
	} else {
		booked.Return(outcome)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, q)
}

// tell tells how far it is until all is done.
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
		l.mu.Lock()
		committed := 0
		for i := range l.requests {
			if l.requests[i].committed() {
				committed++
			}
		}
		l.mu.Unlock()
		l.o.Progress(fmt.Sprintf("%.0f of %.0f s, %d transactions committed, %d tokens out",
			time.Since(l.start).Seconds(), l.o.Demand.Span.Seconds(), committed, l.ledger.Held(entity)))
	}
}
