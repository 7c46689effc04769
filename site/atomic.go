package site

import (
	"context"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/input"
)

// acquireAll makes an atomic batch: a single acquire of several entities.
func (s tokens) acquireAll(ctx context.Context, r *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
	in := new(input.AcquireAll)
	q, err := s.readAll(in, r, timeLeft(ctx))
	if err != nil {
		return nil, err
	}
	if err := expired(ctx); err != nil {
		return nil, err
	}
	s.metrics.batches.Observe(float64(len(in.Parts)))
	traced := traceOf(ctx, s.cfg.Traces)
	in.Trace = traced.context()
	if _, err := q.askTraced(ctx, s.Site, traced, func(c input.Call) input.Input { in.Call = c; return in }); err != nil {
		return nil, err
	}
	resp := &samyav1.BatchResponse{
		Results: make([]*samyav1.Result, len(in.Parts)), RequestId: q.requestID, Site: s.cfg.Name, Sessions: knowSessions(s.speaks.Load()),
	}
	for i, p := range in.Parts {
		resp.Results[i] = &samyav1.Result{Result: &samyav1.Result_Acquire{
			Acquire: &samyav1.AcquireResponse{Tokens: int64(p.Tokens)},
		}}
	}
	return resp, nil
}

// readAll checks the fields of an atomic batch whose operations are checked already,
// gives it an id if it has none, and fills in the core's input. The caller waits for at
// most left.
func (s *Site) readAll(in *input.AcquireAll, r *samyav1.BatchRequest, left time.Duration) (asked, error) {
	q := asked{requestID: r.GetRequestId()}
	tries, triesErr := s.tries(r)
	if q.requestID == "" {
		q.requestID = ulid.Make().String()
	}
	if err := errors.Join(s.addressed(r.GetSite()), s.boundary().Batch(r), triesErr); err != nil {
		return q, apierr.FromName(err)
	}
	wait := checks.WaitOf(r.GetWait(), defaultWait)
	all := make([]input.Part, len(r.GetOperations()))
	for i, op := range r.GetOperations() {
		a := op.GetAcquire()
		all[i] = input.Part{Entity: a.GetEntity(), Tokens: core.Tokens(a.GetTokens())}
		q.tokens += a.GetTokens()
	}
	*in = input.AcquireAll{Parts: all, Request: keyOf(q.requestID), Wait: ticks(within(left, wait)), Once: r.GetOnce(), Tries: tries}
	return q, nil
}
