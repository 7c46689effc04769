package appmgr

import (
	"cmp"
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// GetEntity implements samyav1.EntityServiceServer: it asks all member sites
// for their shares and adds them up. A site that does not answer within two
// seconds, or the caller's deadline if that is sooner, is told of with the
// figures last seen.
func (s *service) GetEntity(ctx context.Context, in *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
	if err := name.Entity("name", in.GetName()); err != nil {
		return nil, apierr.FromName(err)
	}
	if err := ctx.Err(); err != nil {
		return nil, ended(err)
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	members, err := s.router.membersNow(ctx)
	if err != nil {
		return nil, err
	}
	replies := make([]reply, len(members))
	var asking sync.WaitGroup
	for i, m := range members {
		replies[i].site = m.GetName()
		asking.Go(func() { replies[i].resp, replies[i].err = s.share(ctx, m.GetName(), in) })
	}
	asking.Wait()
	return s.add(in.GetName(), replies, time.Now())
}

// share asks one site for its share. A site known to be down is not waited for.
func (s *service) share(ctx context.Context, site string, in *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
	l := s.router.link(site)
	if l == nil || l.state().reach == down {
		return nil, unreachable(site)
	}
	resp := &samyav1.GetEntityResponse{}
	_, err := s.router.try(ctx, call{
		method: samyav1.EntityService_GetEntity_FullMethodName, req: in, resp: resp, read: true, entity: in.GetName(),
	}, site, false)
	return resp, err
}

// reply is what one site answered to a global read.
type reply struct {
	site string
	resp *samyav1.GetEntityResponse
	err  error
}

// add adds the replies up and keeps the figures for later reads.
func (s *service) add(entity string, replies []reply, now time.Time) (*samyav1.GetEntityResponse, error) {
	sum, fresh, err := merge(entity, replies, s.seen.get(entity), now)
	if err == nil {
		s.seen.put(entity, fresh)
	}
	return sum, err
}

// figure is a share as it was seen.
type figure struct {
	share      *samyav1.Share
	generation uint64
	seen       time.Time
}

// merge adds up the replies of the member sites to a read of entity, and old
// figures for the sites that did not answer. It returns the figures to keep.
//
// The entity is that of the highest generation and version told. A site that
// knows only an earlier generation, or no such entity, holds nothing of this
// one yet: what it will hold is in transit.
func merge(entity string, replies []reply, old map[string]figure, now time.Time) (*samyav1.GetEntityResponse, map[string]figure, error) {
	latest, err := newest(entity, replies)
	if err != nil {
		return nil, nil, err
	}
	u := &samyav1.Usage{Complete: true}
	keep := map[string]figure{}
	for _, r := range replies {
		f, known := old[r.site]
		switch {
		case r.err == nil && r.resp.GetEntity().GetGeneration() == latest.GetGeneration():
			f, known = figure{share: ownShare(r), generation: latest.GetGeneration(), seen: now}, true
		case r.err == nil || apierr.ReasonOf(r.err) == apierr.EntityNotFound:
			f, known = figure{share: &samyav1.Share{}, generation: latest.GetGeneration(), seen: now}, true
		default:
			u.Complete = false
			known = known && f.generation == latest.GetGeneration()
		}
		if !known {
			u.Shares = append(u.Shares, &samyav1.Share{Site: r.site})
			continue
		}
		keep[r.site] = f
		u.Shares = append(u.Shares, &samyav1.Share{
			Site: r.site, Known: true, Age: durationpb.New(max(0, now.Sub(f.seen))),
			Left: f.share.GetLeft(), Offered: f.share.GetOffered(), Net: f.share.GetNet(),
			Waiting: f.share.GetWaiting(), Redistributions: f.share.GetRedistributions(),
			Transfers: f.share.GetTransfers(),
		})
		u.Available += f.share.GetLeft()
		u.Acquired += f.share.GetNet()
	}
	u.InTransit = latest.GetLimit() - u.GetAvailable() - u.GetAcquired()
	return &samyav1.GetEntityResponse{Entity: latest, Usage: u}, keep, nil
}

// newest returns the entity of the highest generation and version among the
// replies. If there is none, its error says whether it is the entity or the
// sites that are missing.
func newest(entity string, replies []reply) (*samyav1.Entity, error) {
	var latest *samyav1.Entity
	var refusal *apierr.Error
	for _, r := range replies {
		if r.err != nil {
			e := apierr.From(r.err)
			if refusal == nil || e.Reason == apierr.EntityNotFound {
				refusal = e
			}
			continue
		}
		e := r.resp.GetEntity()
		if latest == nil || cmp.Or(
			cmp.Compare(e.GetGeneration(), latest.GetGeneration()),
			cmp.Compare(e.GetVersion(), latest.GetVersion())) > 0 {
			latest = e
		}
	}
	switch {
	case latest != nil:
		return latest, nil
	case refusal == nil:
		return nil, unreachable("")
	case refusal.Reason == apierr.EntityNotFound:
		return nil, apierr.NotFound(entity)
	}
	return nil, refusal
}

// ownShare returns the share that a site told of itself; zeros if it told none.
func ownShare(r reply) *samyav1.Share {
	for _, sh := range r.resp.GetUsage().GetShares() {
		if sh.GetSite() == r.site {
			return sh
		}
	}
	return &samyav1.Share{}
}
