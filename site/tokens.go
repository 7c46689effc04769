package site

import (
	"context"
	"time"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core/input"
)

// defaultWait is how long an acquire that names no wait may wait for tokens. Its answer
// comes sooner if the site learns sooner that there are none.
const defaultWait = 5 * time.Second

// tokens serves samyav1.TokenService.
type tokens struct {
	samyav1.UnimplementedTokenServiceServer
	*Site
}

// Acquire implements samyav1.TokenServiceServer.
func (s tokens) Acquire(ctx context.Context, r *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	in := new(input.Acquire)
	q, err := s.readAcquire(in, r, timeLeft(ctx))
	if err != nil {
		return nil, err
	}
	if err := expired(ctx); err != nil {
		return nil, err
	}
	traced := traceOf(ctx, s.cfg.Traces)
	in.Trace = traced.context()
	a, err := q.askTraced(ctx, s.Site, traced, func(c input.Call) input.Input { in.Call = c; return in })
	if err != nil {
		return nil, err
	}
	resp := new(samyav1.AcquireResponse)
	s.acquired(resp, in, &a, &q)
	return resp, nil
}

// Release implements samyav1.TokenServiceServer.
func (s tokens) Release(ctx context.Context, r *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
	in := new(input.Release)
	q, err := s.readRelease(in, r)
	if err != nil {
		return nil, err
	}
	if err := expired(ctx); err != nil {
		return nil, err
	}
	a, err := q.askTraced(ctx, s.Site, traceOf(ctx, s.cfg.Traces), func(c input.Call) input.Input { in.Call = c; return in })
	if err != nil {
		return nil, err
	}
	resp := new(samyav1.ReleaseResponse)
	s.released(resp, &a, &q)
	return resp, nil
}
