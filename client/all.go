package client

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/parts"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Part is the tokens of a single entity that AcquireAll takes.
type Part struct {
	// Entity is the entity's name.
	Entity string
	// Tokens wanted, at least 1.
	Tokens int64
}

// AllGrant is the grant of AcquireAll, always of all tokens asked for.
type AllGrant struct {
	// Site is the site that granted.
	Site string
	// RequestID is the request's id.
	RequestID string
}

// AcquireAll takes tokens of up to MaxBatch entities, all or none. An entity may be named
// more than once. It returns once the grant is durable. The options are Wait, RequestID
// and Resume. The error is an *Error; with ErrOutOfTokens, Lacking names the entity that
// lacked tokens.
func (c *Client) AcquireAll(ctx context.Context, all []Part, opts ...AcquireOption) (AllGrant, error) {
	result, err := c.move(ctx, newAll(all, opts))
	if err != nil {
		return AllGrant{}, err
	}
	return AllGrant{Site: result.GetAcquire().GetSite(), RequestID: result.GetAcquire().GetRequestId()}, nil
}

func newAll(all []Part, opts []AcquireOption) *movement {
	m := newAcquire("", 0, opts)
	a := m.acquire
	m.acquire, m.all = nil, &samyav1.BatchRequest{Atomic: true, Wait: a.GetWait()}
	for _, p := range all {
		m.all.Operations = append(m.all.Operations, parts.Of(p.Entity, p.Tokens))
	}
	switch {
	case m.fault != nil:
	case a.GetMinTokens() != 0 || a.GetDryRun():
		m.fault = errors.New("AtLeast and DryRun are not of AcquireAll")
	default:
		m.fault = parts.Check(m.all)
	}
	return m
}

// batch returns the request of the next try of an AcquireAll.
func (m *movement) batch() *samyav1.BatchRequest {
	r := m.all
	r.RequestId, r.Acknowledged = m.id, m.acknowledges()
	r.Attempt, r.Tried = m.next()
	if r.NotAfter == nil {
		r.NotAfter = timestamppb.New(m.notAfter)
	}
	return r
}

// try makes a movement at a target; by is when the try ends.
func (c *Client) try(ctx context.Context, at *target, m *movement, by time.Time) (*samyav1.Result, mux.Fate, error) {
	if err := at.enter(); err != nil {
		return nil, mux.Unsent, err
	}
	defer at.leave()
	c.sessions.name(m, at.sessions())
	if m.all == nil {
		result, fate, err := at.mux.DoTraced(ctx, m.operation(), by, nil, m.trace)
		if errors.Is(err, mux.ErrClosed) && c.ctx.Err() == nil {
			err = errRetired
		}
		return result, fate, err
	}
	ctx, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	req, resp := m.batch(), &samyav1.BatchResponse{}
	fate, err := at.invoke(ctx, samyav1.TokenService_Batch_FullMethodName, req, resp)
	at.told(resp)
	switch {
	case err != nil && fate == mux.Answered:
		return &samyav1.Result{Result: &samyav1.Result_Failure{Failure: apierr.FromGRPC(err).Failure()}}, fate, nil
	case err != nil:
		return nil, fate, err
	case parts.Foreign(req, resp):
		return nil, mux.Lost, errNoResult
	}
	return &samyav1.Result{Result: &samyav1.Result_Acquire{Acquire: &samyav1.AcquireResponse{
		Site: resp.GetSite(), RequestId: resp.GetRequestId(),
	}}}, fate, nil
}
