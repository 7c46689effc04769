package main

import (
	"context"
	"errors"
	"time"

	"github.com/samya-db/samya/client"
)

// policies are the budgets of each team, in the order in which they are charged: the
// scarce day last, since the minute's tokens come back to be taken again soon.
var policies = []string{"minute", "day"}

func entity(team, policy string) string { return "llm/" + team + "/" + policy }

// budgets are the rate quotas of all teams.
type budgets struct {
	samya *client.Client
	// wait is the time that a reservation may wait for tokens of each policy.
	wait time.Duration
	// ttl is the time after which the tokens of a gateway that died come back.
	ttl time.Duration
}

// create creates the budgets of a team that has none.
func (b *budgets) create(ctx context.Context, team string, day, minute int64) error {
	err := b.samya.CreateEntity(ctx, entity(team, "day"), day, client.Rate{Per: "1d"})
	if err != nil && !errors.Is(err, client.ErrEntityExists) {
		return err
	}
	err = b.samya.CreateEntity(ctx, entity(team, "minute"), minute, client.Rate{Per: "1m", Kind: "bucket"})
	if err != nil && !errors.Is(err, client.ErrEntityExists) {
		return err
	}
	return nil
}

// reservation is tokens held for a request: a lease of each policy.
type reservation struct {
	budgets *budgets
	tokens  int64
	leases  []*client.Lease
	kept    []context.CancelFunc
}

// refusedError says which policy had no tokens for a request, or no answer.
type refusedError struct {
	policy string
	err    error
}

func (e *refusedError) Error() string { return e.policy + ": " + e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// reserve takes tokens of all policies or of none, and renews them until the reservation
// is settled. AcquireAll would be a single request, but makes no leases. A lease in
// its place is undone without a trace: the tokens come back to the window or bucket.
func (b *budgets) reserve(ctx context.Context, team string, tokens int64) (*reservation, error) {
	r := &reservation{budgets: b, tokens: tokens}
	for _, policy := range policies {
		l, err := b.samya.AcquireLease(ctx, entity(team, policy), tokens, b.ttl, client.Wait(b.wait), client.Holder("llm-gateway"))
		if err != nil {
			// A lease of unknown outcome ends by itself.
			_, undo := r.settle(ctx, 0)
			return nil, &refusedError{policy, errors.Join(err, undo)}
		}
		_, stop := l.Keep(context.WithoutCancel(ctx))
		r.leases, r.kept = append(r.leases, l), append(r.kept, stop)
	}
	return r, nil
}

// settle commits the tokens used, and gives the rest back. It returns the tokens charged to
// the day. They are fewer than the tokens used if the estimate was too low and the budget
// has no more. An error says that tokens may have come back unused.
//
// It goes on if ctx ends: a caller who hangs up has used the tokens all the same.
func (r *reservation) settle(ctx context.Context, used int64) (charged int64, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.budgets.ttl)
	defer cancel()
	for i, l := range r.leases {
		kept, e := settleLease(ctx, l, min(used, r.tokens))
		r.kept[i]()
		if more := used - r.tokens; e == nil && more > 0 {
			kept += r.budgets.takeUpTo(ctx, l.Entity, more)
		}
		charged, err = kept, errors.Join(err, e) // the day is last
	}
	return charged, err
}

// settleLease keeps tokens of a lease for good. Commit means all by 0, so nothing used is a
// return.
func settleLease(ctx context.Context, l *client.Lease, used int64) (kept int64, err error) {
	if used == 0 {
		_, err = l.Return(ctx, 0)
		return 0, err
	}
	kept, _, err = l.Commit(ctx, used)
	return kept, err
}

// takeUpTo takes the tokens that are left, at most so many.
func (b *budgets) takeUpTo(ctx context.Context, entity string, most int64) int64 {
	grant, err := b.samya.Acquire(ctx, entity, most, client.Wait(0), client.AtLeast(1))
	if err != nil {
		return 0
	}
	return grant.Tokens
}
