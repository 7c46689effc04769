package site

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"google.golang.org/protobuf/types/known/durationpb"
)

// defaultPage is the number of leases in a page if the caller gives none.
const defaultPage = 100

// RenewLease implements samyav1.TokenServiceServer.
func (s tokens) RenewLease(ctx context.Context, r *samyav1.RenewLeaseRequest) (*samyav1.RenewLeaseResponse, error) {
	id, leaseErr := s.ownLease(r.GetLease())
	var ttlErr error
	if r.GetTtl() != nil {
		ttlErr = checks.TTL("ttl", r.GetTtl())
	}
	if err := errors.Join(leaseErr, ttlErr); err != nil {
		return nil, apierr.FromName(err)
	}
	if err := expired(ctx); err != nil {
		return nil, err
	}
	in := &input.RenewLease{Lease: keyOf(id), TTL: ticks(r.GetTtl().AsDuration()), Touches: touches(ctx)}
	q := asked{requestID: id}
	a, err := q.ask(ctx, s.Site, func(c input.Call) input.Input { in.Call = c; return in })
	if err != nil {
		return nil, err
	}
	return &samyav1.RenewLeaseResponse{Lease: s.lease(a.Lease())}, nil
}

// CommitLease implements samyav1.TokenServiceServer.
func (s tokens) CommitLease(ctx context.Context, r *samyav1.CommitLeaseRequest) (*samyav1.CommitLeaseResponse, error) {
	id, leaseErr := s.ownLease(r.GetLease())
	if err := errors.Join(
		leaseErr, name.Released("tokens", r.GetTokens(), 0), checks.RequestID("request_id", r.GetRequestId()),
	); err != nil {
		return nil, apierr.FromName(err)
	}
	if err := expired(ctx); err != nil {
		return nil, err
	}
	q := asked{requestID: cmp.Or(r.GetRequestId(), ulid.Make().String()), tokens: r.GetTokens()}
	in := &input.CommitLease{Lease: keyOf(id), Tokens: core.Tokens(r.GetTokens()), Request: keyOf(q.requestID), Touches: touches(ctx)}
	a, err := q.ask(ctx, s.Site, func(c input.Call) input.Input { in.Call = c; return in })
	if err != nil {
		return nil, err
	}
	return &samyav1.CommitLeaseResponse{
		Tokens: int64(a.Tokens), Returned: int64(a.Returned), RequestId: q.requestID, Site: s.cfg.Name,
	}, nil
}

// ListLeases implements samyav1.TokenServiceServer: the leases of this site. Its page
// token is the number of the last lease listed.
func (s tokens) ListLeases(ctx context.Context, r *samyav1.ListLeasesRequest) (*samyav1.ListLeasesResponse, error) {
	var entityErr, tokenErr error
	if r.GetEntity() != "" {
		entityErr = name.Entity("entity", r.GetEntity())
	}
	var after uint64
	if t := r.GetPageToken(); t != "" {
		if after, tokenErr = strconv.ParseUint(t, 10, 64); tokenErr != nil {
			tokenErr = &name.Error{Field: "page_token", Problem: "is none that a list returned"}
		}
	}
	if err := errors.Join(
		name.Holder("holder", r.GetHolder()), entityErr, name.PageSize("page_size", int64(r.GetPageSize())), tokenErr,
	); err != nil {
		return nil, apierr.FromName(err)
	}
	in := &input.ListLeases{
		Holder: r.GetHolder(), Entity: r.GetEntity(), After: after, Count: cmp.Or(int(r.GetPageSize()), defaultPage),
	}
	a, err := asked{entity: r.GetEntity()}.ask(ctx, s.Site, func(c input.Call) input.Input { in.Call = c; return in })
	if err != nil {
		return nil, err
	}
	resp := &samyav1.ListLeasesResponse{Leases: make([]*samyav1.Lease, len(a.Leases()))}
	for i := range a.Leases() {
		resp.Leases[i] = s.lease(&a.Leases()[i])
	}
	if a.More && len(a.Leases()) > 0 {
		resp.NextPageToken = strconv.FormatUint(a.Leases()[len(a.Leases())-1].Number, 10)
	}
	return resp, nil
}

// lease returns a lease of this site as callers see it.
func (s *Site) lease(v *answer.Lease) *samyav1.Lease {
	return &samyav1.Lease{
		Name: s.cfg.Name + "/" + v.ID, Entity: v.Entity, Tokens: int64(v.Tokens),
		Remaining: durationpb.New(time.Duration(v.Remaining) * time.Millisecond), Holder: v.Holder,
		Share: v.Share,
	}
}

// touches reports which entities the caller may touch, since the name of a lease does
// not tell its entity. Nil means all entities.
func touches(ctx context.Context) func(string) bool {
	scope := access.ScopeOf(ctx)
	if scope.All() {
		return nil
	}
	return scope.Covers
}

// ownLease returns the request id in the name of a lease of this site, or of a site that it
// takes over from.
func (s *Site) ownLease(lease string) (string, error) {
	home, id, err := name.Lease("lease", lease)
	if err == nil && home != s.cfg.Name && !s.inherits(core.SiteID(home)) {
		err = &name.Error{Field: "lease", Problem: "is one of site " + home + ", this is site " + s.cfg.Name}
	}
	return id, err
}

// leaseRef reads the lease that a release names; nil for none.
func (s *Site) leaseRef(lease string) (*input.LeaseRef, error) {
	if lease == "" {
		return nil, nil
	}
	home, id, err := name.Lease("lease", lease)
	if err == nil && !s.among(core.SiteID(home)) {
		err = &name.Error{Field: "lease", Problem: "is one of site " + home + ", which is none of the cluster"}
	}
	if err != nil {
		return nil, err
	}
	return &input.LeaseRef{Home: core.SiteID(home), Request: keyOf(id)}, nil
}

// leaseTerms are the terms of the lease that an acquire asks for; nil for none.
func leaseTerms(l *samyav1.LeaseTerms, requestID string) *input.LeaseTerms {
	if l == nil {
		return nil
	}
	return &input.LeaseTerms{ID: requestID, TTL: ticks(l.GetTtl().AsDuration()), Holder: l.GetHolder(), Share: l.GetShare()}
}
