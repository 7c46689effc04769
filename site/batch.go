package site

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/parts"
	"github.com/samya-db/samya/internal/spanctx"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/engine"
)

// Batch implements samyav1.TokenServiceServer.
func (s tokens) Batch(ctx context.Context, r *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
	if err := parts.Check(r); err != nil {
		return nil, apierr.FromName(err)
	}
	if r.GetAtomic() {
		return s.acquireAll(ctx, r)
	}
	if err := expired(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	b := s.begin(r.GetOperations(), timeLeft(ctx), traceOf(ctx, s.cfg.Traces).context())
	select {
	case <-b.done:
	case <-ctx.Done():
		b.giveUp(context.Cause(ctx))
	}
	resp := b.response(began)
	if !b.cancelled {
		batches.Put(b)
	}
	return resp, nil
}

// batch is the operations of a call.
type batch struct {
	site       *Site
	operations []operation
	// calls are the calls begun.
	calls []*engine.Call
	// open counts the calls without an answer; done is told when there are none.
	open atomic.Int64
	done chan struct{}
	// cancelled says that some calls were cancelled or given up. These are not used again.
	cancelled bool
}

var batches = sync.Pool{New: func() any { return &batch{done: make(chan struct{}, 1)} }}

// begin begins operations; malformed operations fail at once. within is the span of the call if
// its trace is recorded; else nil.
func (s *Site) begin(requests []*samyav1.Operation, left time.Duration, within *spanctx.Context) *batch {
	b := batches.Get().(*batch)
	b.site, b.calls = s, b.calls[:0]
	b.operations = slices.Grow(b.operations[:0], len(requests))[:len(requests)]
	for i, r := range requests {
		o := &b.operations[i]
		o.to, o.err = b, nil
		if err := s.read(o, r, left); err != nil {
			o.err = apierr.From(err).Within(parts.Field(i, r))
			continue
		}
		if within != nil {
			o.acquire.Trace = within
		}
		b.calls = append(b.calls, &o.Call)
	}
	// One more, so that the batch does not end before all calls are begun.
	b.open.Store(int64(len(b.calls)) + 1)
	if err := s.engine.Start(b.calls); err != nil {
		for _, c := range b.calls {
			o := c.To.(*operation)
			o.err = s.broken(err, o.asked)
		}
		b.ended(len(b.calls))
	}
	b.ended(1)
	return b
}

// told implements answeree.
func (b *batch) told(*operation) engine.Flusher {
	b.ended(1)
	return nil
}

func (b *batch) ended(n int) {
	if b.open.Add(-int64(n)) == 0 {
		b.done <- struct{}{}
	}
}

// giveUp cancels the calls without an answer.
func (b *batch) giveUp(cause error) {
	for _, c := range b.calls {
		if b.site.engine.Cancel(c) {
			b.cancelled = true
			o := c.To.(*operation)
			o.err = b.site.broken(fmt.Errorf("waiting for an answer: %w", cause), o.asked)
			b.ended(1)
		}
	}
	// The other answers were on their way.
	<-b.done
}

// response reports and counts the results of the operations.
func (b *batch) response(began time.Time) *samyav1.BatchResponse {
	all := make([]samyav1.Result, len(b.operations))
	resp := &samyav1.BatchResponse{Results: make([]*samyav1.Result, len(b.operations)), Sessions: knowSessions(b.site.speaks.Load())}
	var made results
	t := b.site.metrics.tally(b.site.metrics.batches, len(b.operations))
	for i := range b.operations {
		o := &b.operations[i]
		t.count(o, began, made.of(b.site, &all[i], o))
		b.cancelled = b.cancelled || o.Kept()
		resp.Results[i] = &all[i]
	}
	t.end()
	return resp
}
