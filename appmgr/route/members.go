package route

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/seats"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// membersInterval is the time between two fetches of the member set.
const membersInterval = 5 * time.Second

// Members is the member set of the cluster, as a site told it.
type Members struct {
	// Version counts the changes of the voters; 0 for a site that tells none.
	Version uint64
	// Sites are the member sites, in the order of their names.
	Sites []*samyav1.Site
}

func (m Members) has(site string) bool {
	return slices.ContainsFunc(m.Sites, func(s *samyav1.Site) bool { return s.GetName() == site })
}

// keepMembers fetches the member set every membersInterval until ctx ends, and at once
// when a list of seats has another version.
func (r *Router) keepMembers(ctx context.Context) {
	for {
		wait := membersInterval
		_, reseated := r.Seats()
		if _, err := r.fetchMembers(ctx); err != nil {
			r.log.DebugContext(ctx, "no site tells the member set", slog.Any("error", err))
			wait = r.cfg.ProbeInterval
		}
		if !r.await(ctx, wait, reseated) {
			return
		}
	}
}

// await waits for d, or until a list of seats has another version than the member set. It
// reports false once ctx has ended.
func (r *Router) await(ctx context.Context, d time.Duration, reseated <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-t.C:
			return true
		case <-reseated:
		}
		var known *seats.Book
		if known, reseated = r.Seats(); r.memberSet().Sites != nil && known.List().GetVersion() > r.memberSet().Version {
			return true
		}
	}
}

// meet fetches the member set if a site that has come up is none of it: it may have
// joined.
func (r *Router) meet(ctx context.Context, site string) {
	if m := r.memberSet(); m.Sites == nil || m.has(site) {
		return
	}
	if _, err := r.fetchMembers(ctx); err != nil {
		r.log.DebugContext(ctx, "no site tells whether a site has joined", slog.String("site", site), slog.Any("error", err))
	}
}

// memberSet returns the member set as a site last told it; without sites if none did.
func (r *Router) memberSet() Members {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members
}

// fetchMembers asks the best site for the member set and remembers it.
func (r *Router) fetchMembers(ctx context.Context) (Members, error) {
	return r.askMembers(ctx, func(ctx context.Context, c Call) error { return r.Do(ctx, c) })
}

// askMembers asks for the member set by a call, and remembers it.
func (r *Router) askMembers(ctx context.Context, do func(context.Context, Call) error) (Members, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.ProbeTimeout)
	defer cancel()
	resp := &samyav1.ListSitesResponse{}
	err := do(ctx, Call{Method: samyav1.ClusterService_ListSites_FullMethodName, Req: &samyav1.ListSitesRequest{}, Resp: resp, Read: true})
	if err != nil {
		return Members{}, err
	}
	ms := Members{Version: resp.GetMembersVersion(), Sites: resp.GetSites()}
	if len(ms.Sites) == 0 || len(ms.Sites) > MaxSites {
		return Members{}, apierr.New(apierr.Internal, "a site tells of %d member sites", len(ms.Sites))
	}
	if got := resp.GetCluster(); got != "" && got != r.cfg.Cluster {
		return Members{}, apierr.New(apierr.Internal, "a site is of cluster %.64q, not %q", got, r.cfg.Cluster)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members = ms
	return ms, nil
}

// Members returns the member set, asking for it if no site told it yet.
func (r *Router) Members(ctx context.Context) (Members, error) {
	if ms := r.memberSet(); ms.Sites != nil {
		return ms, nil
	}
	return r.fetchMembers(ctx)
}

// MembersAt returns the member set at a version or later, which a site has told that it
// knows. It asks that site unless the set is known.
func (r *Router) MembersAt(ctx context.Context, version uint64, site string) (Members, error) {
	ms := r.memberSet()
	if ms.Sites != nil && ms.Version >= version {
		return ms, nil
	}
	ms, err := r.askMembers(ctx, func(ctx context.Context, c Call) error { return r.At(ctx, site, c) })
	if err == nil && ms.Version < version {
		err = apierr.New(apierr.Internal, "site %s tells the members of version %d, not of %d", site, ms.Version, version)
	}
	return ms, err
}
