package reads

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// defaultPage is how many leases a page has unless the caller gives a size.
const defaultPage = 100

// ListLeases implements samyav1.TokenServiceServer: it lists the leases of all sites,
// site by site in the order of their names. A page token is the name of the site where
// the next page begins, a colon and that site's own token. A site without an answer is
// left out; the page that would have had its leases names it in missing.
func (s *Reads) ListLeases(ctx context.Context, in *samyav1.ListLeasesRequest) (*samyav1.ListLeasesResponse, error) {
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
	set, err := s.router.Members(ctx)
	if err != nil {
		return nil, err
	}
	out := &samyav1.ListLeasesResponse{}
	room, answered := cmp.Or(in.GetPageSize(), defaultPage), false
	for _, site := range sortedNames(set.Sites) {
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
		return nil, apierr.Unreachable("")
	}
	return out, nil
}

// leasesAt asks a site for its leases. It does not wait for a site known to be down.
func (s *Reads) leasesAt(ctx context.Context, site string, in *samyav1.ListLeasesRequest) (*samyav1.ListLeasesResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	resp := &samyav1.ListLeasesResponse{}
	err := s.router.At(ctx, site, route.Call{
		Method: samyav1.TokenService_ListLeases_FullMethodName, Req: in, Resp: resp, Read: true, Entity: in.GetEntity(),
	})
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

// sortedNames returns the sorted names of sites.
func sortedNames(members []*samyav1.Site) []string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.GetName()
	}
	slices.Sort(names)
	return names
}
