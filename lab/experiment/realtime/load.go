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
	// retryEvery is the pause before a request with an unknown outcome, or a request
	// that must be done and was not, is made again.
	retryEvery = 100 * time.Millisecond
	// tellEvery is the interval between messages of progress.
	tellEvery = 10 * time.Second
)

// load makes the requests of a demand, each at the site of its place.
type load struct {
	o      *Options
	sites  []*client.Client
	ledger *ledger.Ledger
	start  time.Time

	mu       sync.Mutex
	requests []request // in the order of their answers
	resumed  int       // number of repeats to learn an outcome
}

// request is the outcome of an acquire or a release. Times are since the start.
type request struct {
	kind                ledger.Kind
	due, sent, answered time.Duration
	executed            bool
	// late reports whether the answer came too late.
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
			break // the leases under way end as well
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

// until waits until a time since the start.
func (l *load) until(ctx context.Context, at time.Duration) error {
	return wan.Wait(ctx, time.Until(l.start.Add(at)))
}

// lease acquires a token. If the token is granted, it releases the token after the
// hold, unless the release is due after the end of the demand.
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

// make repeats a request until its outcome is known.
func (l *load) make(ctx context.Context, kind ledger.Kind, at virtual.Place, due time.Duration) (request, error) {
	q := request{kind: kind, due: due, sent: time.Since(l.start)}
	patience := margin
	if kind == ledger.Acquire {
		patience += l.o.Wait
	}
	booked := l.ledger.Invoke(entity, kind, 1)
	id := ulid.Make().String()
	giveUp := time.Now().Add(patience + repeatTime)
	// open is the error that the request resumes from, once its outcome was unknown.
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
		// A request not done settles an acquire, unless its outcome was unknown
		// before.
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

// undone reports whether err says that the request was not done, for a reason other
// than a want of tokens.
func undone(err error) bool {
	return err != nil && !errors.Is(err, client.ErrOutcomeUnknown) &&
		(errors.Is(err, client.ErrUnavailable) || errors.Is(err, client.ErrOverloaded) || errors.Is(err, context.DeadlineExceeded))
}

// send makes a single call. It goes on from open if open is not nil: however often
// it is repeated, the request is done once.
func (l *load) send(ctx context.Context, kind ledger.Kind, at virtual.Place, id string, patience time.Duration, open error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var again client.Option = client.RequestID(id)
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

// book records the outcome of a request.
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
