package appmgr

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// defaultPage is how many leases a page has unless the caller gives a size.
const defaultPage = 100

// RenewLease implements samyav1.TokenServiceServer, at the lease's home. It may
// be repeated at will.
func (s *service) RenewLease(ctx context.Context, in *samyav1.RenewLeaseRequest) (*samyav1.RenewLeaseResponse, error) {
	home, _, err := name.Lease("lease", in.GetLease())
	var ttlErr error
	if in.GetTtl() != nil {
		ttlErr = ttl("ttl", in.GetTtl())
	}
	if err := errors.Join(err, ttlErr); err != nil {
		return nil, apierr.FromName(err)
	}
	resp := &samyav1.RenewLeaseResponse{}
	return answer(resp, s.admin(ctx, call{
		method: samyav1.TokenService_RenewLease_FullMethodName, req: in, resp: resp, site: home, by: "lease",
	}))
}

// CommitLease implements samyav1.TokenServiceServer, at the lease's home.
func (s *service) CommitLease(ctx context.Context, in *samyav1.CommitLeaseRequest) (*samyav1.CommitLeaseResponse, error) {
	home, _, err := name.Lease("lease", in.GetLease())
	if err := errors.Join(err, name.Released("tokens", in.GetTokens(), 0), requestID(in.GetRequestId())); err != nil {
		return nil, apierr.FromName(err)
	}
	req, resp := proto.CloneOf(in), &samyav1.CommitLeaseResponse{}
	req.RequestId = s.id(in.GetRequestId())
	return answer(resp, s.admin(ctx, call{
		method: samyav1.TokenService_CommitLease_FullMethodName, req: req, resp: resp, site: home, by: "lease", requestID: req.GetRequestId(),
	}))
}

// ListLeases implements samyav1.TokenServiceServer: it lists the leases of all sites,
// site by site in the order of their names. A page token is the name of the site where
// the next page begins, a colon and that site's own token. A site without an answer is
// left out; the page that would have had its leases names it in missing.
func (s *service) ListLeases(ctx context.Context, in *samyav1.ListLeasesRequest) (*samyav1.ListLeasesResponse, error) {
	var entityErr error
	if in.GetEntity() != "" {
		entityErr = name.Entity("entity", in.GetEntity())
	}
	from, token, tokenErr := leasePage(in.GetPageToken())
	if err := errors.Join(
		name.Holder("holder", in.GetHolder()), entityErr, name.PageSize("page_size", int64(in.GetPageSize())), tokenErr,
	); err != nil {
		return nil, apierr.FromName(err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	members, err := s.router.membersNow(ctx)
	if err != nil {
		return nil, err
	}
	out := &samyav1.ListLeasesResponse{}
	room, answered := cmp.Or(in.GetPageSize(), defaultPage), false
	for _, site := range siteNames(members) {
		if site < from {
			continue
		}
		if site != from {
			token = ""
		}
		if room == 0 {
			out.NextPageToken = site + ":"
			break
		}
		page, err := s.leasesAt(ctx, site, &samyav1.ListLeasesRequest{
			Holder: in.GetHolder(), Entity: in.GetEntity(), PageSize: room, PageToken: token,
		})
		switch apierr.ReasonOf(err) {
		case "":
			out.Leases = append(out.Leases, page.GetLeases()...)
			room -= min(room, int32(len(page.GetLeases())))
		case apierr.EntityNotFound:
		case apierr.InvalidField:
			return nil, err
		default:
			out.Missing = append(out.Missing, site)
			continue
		}
		answered = true
		if page.GetNextPageToken() != "" {
			out.NextPageToken = site + ":" + page.GetNextPageToken()
			break
		}
	}
	if !answered && len(out.GetMissing()) > 0 {
		return nil, unreachable("")
	}
	return out, nil
}

// leasesAt asks a site for its leases. It does not wait for a site known to be down.
func (s *service) leasesAt(ctx context.Context, site string, in *samyav1.ListLeasesRequest) (*samyav1.ListLeasesResponse, error) {
	l := s.router.link(site)
	if l == nil || l.state().Reach == health.Down {
		return nil, unreachable(site)
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	resp := &samyav1.ListLeasesResponse{}
	_, err := s.router.try(ctx, call{
		method: samyav1.TokenService_ListLeases_FullMethodName, req: in, resp: resp, read: true, entity: in.GetEntity(),
	}, site, false)
	return resp, err
}

// leasePage splits a page token into a site and the site's own token.
func leasePage(t string) (site, token string, err error) {
	if t == "" {
		return "", "", nil
	}
	site, token, ok := strings.Cut(t, ":")
	if !ok || name.Site("page_token", site) != nil || pageToken(token) != nil {
		return "", "", &name.Error{Field: "page_token", Problem: "not a token that an earlier page gave"}
	}
	return site, token, nil
}

// siteNames returns the sorted names of sites.
func siteNames(members []*samyav1.Site) []string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.GetName()
	}
	slices.Sort(names)
	return names
}
