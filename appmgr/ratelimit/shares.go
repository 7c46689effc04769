package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/ratelimit/quota"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/ratelimit/rules"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// holder is the holder of leases of share, in lists of leases.
const holder = "rate-limit-quota"

// Leasing is the part of the public API that leases need beside Quotas.
type Leasing interface {
	RenewLease(ctx context.Context, in *samyav1.RenewLeaseRequest) (*samyav1.RenewLeaseResponse, error)
	ReleaseInPlace(ctx context.Context, in *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error)
}

// Shares leases shares of the entities of rules, from the nearest site.
type Shares struct {
	entities *Entities
	leasing  Leasing
}

var _ quota.Leases = (*Shares)(nil)

// NewShares makes Shares of entities.
func NewShares(e *Entities, l Leasing) *Shares { return &Shares{e, l} }

// Lease implements quota.Leases. The lease has as many tokens as there are, up to tokens.
func (s *Shares) Lease(ctx context.Context, m *rules.Match, tokens int64, ttl time.Duration) (g quota.Granted, err error) {
	_, err = s.entities.with(ctx, []Charge{{m, tokens}}, func(at []*figure) (Taken, error) {
		k, err := s.entities.find(ctx, m)
		if err != nil {
			return Taken{}, err
		}
		wait, waits := s.entities.wait(ctx)
		if waits {
			defer s.entities.waited()
		}
		resp, err := s.entities.quotas.AcquireInPlace(ctx, &samyav1.AcquireRequest{
			Entity: m.Entity, Tokens: min(tokens, m.Limit), MinTokens: 1, Wait: wait,
			Lease: &samyav1.LeaseTerms{Ttl: durationpb.New(ttl), Holder: holder, Share: true},
		})
		if err != nil {
			return Taken{}, err
		}
		s.entities.saw(at[0], resp.GetLeft())
		l := resp.GetLease()
		g = quota.Granted{Lease: l.GetName(), Tokens: l.GetTokens(), Remaining: l.GetRemaining().AsDuration(), Terms: k.terms}
		if !l.GetShare() {
			// The site's build does not know leases of share: its tokens come back by the clock.
			return Taken{}, errors.Join(
				apierr.Wrap(apierr.Internal, fmt.Errorf("site %s leases no shares: its build is too old", resp.GetSite())),
				s.Return(ctx, quota.Return{Lease: l.GetName(), Entity: m.Entity}),
			)
		}
		return Taken{}, nil
	})
	return g, err
}

// Renew implements quota.Leases.
func (s *Shares) Renew(ctx context.Context, lease string, ttl time.Duration) (time.Duration, error) {
	resp, err := s.leasing.RenewLease(ctx, &samyav1.RenewLeaseRequest{Lease: lease, Ttl: durationpb.New(ttl)})
	return resp.GetLease().GetRemaining().AsDuration(), err
}

// Return implements quota.Leases.
func (s *Shares) Return(ctx context.Context, r quota.Return) error {
	_, err := s.leasing.ReleaseInPlace(ctx, &samyav1.ReleaseRequest{Entity: r.Entity, Lease: r.Lease, Tokens: r.Tokens})
	return err
}
