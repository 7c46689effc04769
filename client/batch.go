package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// MaxBatch bounds the operations of a batch.
const MaxBatch = name.MaxOperations

// Op is an operation of a batch, made by AcquireOp or ReleaseOp.
type Op struct{ make func() *movement }

// AcquireOp returns an operation that does the same as Acquire.
func AcquireOp(entity string, tokens int64, opts ...AcquireOption) Op {
	return Op{func() *movement { return newAcquire(entity, tokens, opts) }}
}

// ReleaseOp returns an operation that does the same as Release.
func ReleaseOp(entity string, tokens int64, opts ...ReleaseOption) Op {
	return Op{func() *movement { return newRelease(entity, tokens, opts) }}
}

// Result is the outcome of an operation of a batch. Unless Err is set, it was done.
type Result struct {
	// Tokens granted or given back.
	Tokens int64
	// Left are the tokens left at the site just after the operation.
	Left int64
	// Site is the site that answered.
	Site string
	// RequestID is the operation's id.
	RequestID string
	// Parked is like Parked of a Receipt.
	Parked bool
	// Err is why the operation failed, an *Error.
	Err error
}

// Batch makes up to MaxBatch unrelated operations in a single call. Each operation is
// done or fails by itself, as its result tells. The results have the order of the
// operations. The error is an *Error, and not nil only if there are too many operations
// or none.
func (c *Client) Batch(ctx context.Context, ops ...Op) ([]Result, error) {
	if n := len(ops); n < 1 || n > MaxBatch {
		return nil, public(apierr.New(apierr.InvalidField, "a batch of %d operations, at least 1 and at most %d", n, MaxBatch))
	}
	results := make([]Result, len(ops))
	b := batch{c: c}
	for i, op := range ops {
		if op.make == nil {
			return nil, public(apierr.New(apierr.InvalidField, "operation %d was made by neither AcquireOp nor ReleaseOp", i))
		}
		m := op.make()
		if m.fault != nil {
			results[i].Err = m.invalid()
			continue
		}
		b.wait = max(b.wait, m.wait)
		b.open = append(b.open, item{m, &results[i]})
	}
	if len(b.open) > 0 {
		b.run(ctx)
	}
	return results, nil
}

// batch is a batch on its way. Operations not settled by a try are tried again, without
// the rest.
type batch struct {
	c    *Client
	open []item
	wait time.Duration // the longest wait of its acquires
}

type item struct {
	m *movement
	r *Result
}

// run makes the batch at target after target.
func (b *batch) run(ctx context.Context) {
	if err := b.c.enter(); err != nil {
		b.giveUp(err)
		return
	}
	defer b.c.leave()
	now := time.Now()
	deadline := b.c.deadline(ctx, b.wait, now)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	defer context.AfterFunc(b.c.ctx, cancel)()
	for _, i := range b.open {
		i.m.expire(deadline, b.c.cfg.RepeatTime)
	}
	t := tour{c: b.c, takes: slices.ContainsFunc(b.open, func(i item) bool { return i.m.release == nil })}
	t.start(now, "")
	for {
		at, more := t.target()
		if at == nil {
			if !t.pause(ctx, deadline, now) {
				b.giveUp(b.c.over(ctx, deadline, time.Now()))
				return
			}
			now = time.Now()
			t.start(now, "")
			continue
		}
		if !b.try(ctx, at, &t, b.c.until(deadline, now, b.wait, more)) {
			b.single(ctx)
			return
		}
		now = time.Now()
		if len(b.open) == 0 {
			return
		}
		if err := b.c.over(ctx, deadline, now); err != nil || b.open[0].m.spent(now) {
			b.giveUp(err)
			return
		}
	}
}

// giveUp ends the open operations, for the cause over, or as the last try ended if over
// is nil.
func (b *batch) giveUp(over error) {
	for _, i := range b.open {
		b.c.sessions.over(i.m, nil)
		i.r.Err = i.m.final(over)
	}
	b.open = nil
}

// try makes the open operations at a target. It reports false if the target knows no
// batches.
func (b *batch) try(ctx context.Context, at *target, t *tour, by time.Time) bool {
	ctx, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	req := &samyav1.BatchRequest{Operations: make([]*samyav1.Operation, len(b.open))}
	knows := at.sessions()
	for i, o := range b.open {
		b.c.sessions.name(o.m, knows)
		req.Operations[i] = o.m.operation()
	}
	site, resp := at.name(), &samyav1.BatchResponse{}
	fate, err := mux.Unsent, at.enter()
	if err == nil {
		fate, err = at.invoke(ctx, samyav1.TokenService_Batch_FullMethodName, req, resp)
		at.told(resp)
		at.leave()
	}
	if status.Code(err) == codes.Unimplemented {
		return false
	}
	var whole *samyav1.Failure
	switch {
	case err != nil && fate == mux.Answered:
		whole = apierr.FromGRPC(err).Failure()
	case err == nil && len(resp.GetResults()) != len(b.open):
		fate, err = mux.Lost, fmt.Errorf("%d results for %d operations", len(resp.GetResults()), len(b.open))
	}
	left := b.open[:0]
	now := time.Now()
	for i, o := range b.open {
		var result *samyav1.Result
		switch {
		case whole != nil:
			result = &samyav1.Result{Result: &samyav1.Result_Failure{Failure: whole}}
		case fate == mux.Answered:
			result = resp.GetResults()[i]
		}
		if !o.m.judge(result, fate, err, site) {
			t.learn(at, fate, o.m.last, now)
			left = append(left, o)
			continue
		}
		b.c.sessions.over(o.m, result)
		o.settle(result)
	}
	b.open = left
	return true
}

// settle writes the outcome of a settled operation into its result.
func (o item) settle(result *samyav1.Result) {
	switch {
	case o.m.last != nil:
		o.r.Err = o.m.final(nil)
	case result.GetAcquire() != nil:
		g := grant(result.GetAcquire())
		o.r.Tokens, o.r.Left, o.r.Site, o.r.RequestID = g.Tokens, g.Left, g.Site, g.RequestID
	default:
		r := receipt(result.GetRelease())
		o.r.Tokens, o.r.Left, o.r.Site, o.r.RequestID, o.r.Parked = r.Tokens, r.Left, r.Site, r.RequestID, r.Parked
	}
}

// single makes the open operations as separate calls, at targets that know no batches.
func (b *batch) single(ctx context.Context) {
	var all sync.WaitGroup
	for _, o := range b.open {
		all.Go(func() {
			result, err := b.c.move(ctx, o.m)
			if err != nil {
				o.r.Err = err
				return
			}
			o.settle(result)
		})
	}
	all.Wait()
	b.open = nil
}
