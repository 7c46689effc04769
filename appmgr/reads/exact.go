package reads

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/shares"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// exact asks all member sites for their shares, and asks sites that lag behind the others
// again until the shares are a consistent cut. A site may take two seconds, or until the
// caller's deadline if that is sooner. For a site without an answer, exact uses the
// latest figures that this app manager has seen or a site has heard.
func (s *Reads) exact(ctx context.Context, entity string) (*samyav1.GetEntityResponse, error) {
	sum, _, err := s.gather(ctx, entity, s.telling(samyav1.Consistency_CONSISTENCY_BOUNDED), nil)
	return sum, err
}

// gather asks all member sites as exact does, and returns their last replies too. behind,
// if not nil, names further sites to ask again once all have answered.
func (s *Reads) gather(
	ctx context.Context, entity string, share teller, behind func([]reply) []string,
) (*samyav1.GetEntityResponse, []reply, error) {
	ctx, cancel := context.WithTimeout(ctx, within(ctx, readTime))
	defer cancel()
	members, err := s.router.Members(ctx)
	if err != nil {
		return nil, nil, err
	}
	members, replies, asking := unasked(nil, members)
	var sum *samyav1.GetEntityResponse
	rounds := 0
	for wait := firstAgain; ; wait = min(2*wait, lastAgain) {
		s.ask(ctx, entity, share, replies, asking, rounds)
		rounds++
		missing := false
		if version, site := latestMembers(replies); version > members.Version {
			// A site has joined, and may hold tokens.
			if later, err := s.router.MembersAt(ctx, version, site); err != nil {
				missing = true
			} else if members, replies, asking = unasked(replies, later); len(asking) > 0 {
				continue
			}
		}
		var again []string
		if sum, again, err = s.add(entity, replies, time.Now()); err != nil {
			return nil, nil, err
		}
		if behind != nil && sum.GetUsage().GetComplete() {
			again = append(again, behind(replies)...)
		}
		if missing {
			sum.Usage.Complete, sum.Usage.Consistent = false, false
			break
		}
		if len(again) == 0 || route.Pause(ctx, wait) != nil {
			break
		}
		asking = again
	}
	s.metrics.exactRead(sum.GetUsage(), rounds)
	return sum, replies, nil
}

// teller asks a site for its share of an entity.
type teller func(ctx context.Context, site, entity string) (*samyav1.GetEntityResponse, error)

// telling asks sites for what they tell with a consistency.
func (s *Reads) telling(how samyav1.Consistency) teller {
	return func(ctx context.Context, site, entity string) (*samyav1.GetEntityResponse, error) {
		return s.share(ctx, site, entity, how)
	}
}

// unasked returns the members with their replies, in their order, and the names of those
// that were not asked yet.
func unasked(replies []reply, members route.Members) (_ route.Members, all []reply, names []string) {
	for _, m := range members.Sites {
		i := slices.IndexFunc(replies, func(r reply) bool { return r.site == m.GetName() })
		if i >= 0 {
			all = append(all, replies[i])
			continue
		}
		all, names = append(all, reply{site: m.GetName()}), append(names, m.GetName())
	}
	return members, all, names
}

// latestMembers returns the highest version of the members in the replies, and the site
// that told it.
func latestMembers(replies []reply) (version uint64, site string) {
	for i := range replies {
		r := &replies[i]
		if v := r.resp.GetUsage().GetMembersVersion(); r.err == nil && v > version {
			version, site = v, r.site
		}
	}
	return version, site
}

// within shortens a time so that the result reaches the caller before its deadline.
func within(ctx context.Context, most time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return most
	}
	left := time.Until(deadline)
	return min(most, left-min(left/10, 50*time.Millisecond))
}

// firstAgain and lastAgain bound the pause before lagging sites are asked again: the
// missing moves are on their way to them.
const firstAgain, lastAgain = 10 * time.Millisecond, 160 * time.Millisecond

// ask asks sites for their shares, all at once, in one round. If the read is bounded, their
// answers include figures heard of other sites, which stand in for sites without an
// answer. A site that fails to answer again keeps its earlier share.
func (s *Reads) ask(ctx context.Context, entity string, share teller, replies []reply, sites []string, round int) {
	var asking sync.WaitGroup
	for i := range replies {
		r := &replies[i]
		if !slices.Contains(sites, r.site) {
			continue
		}
		asking.Go(func() {
			resp, err := share(ctx, r.site, entity)
			first := r.resp == nil && r.err == nil
			if err == nil || first || apierr.ReasonOf(err) == apierr.EntityNotFound {
				*r = reply{site: r.site, resp: resp, err: err, round: round}
			}
		})
	}
	asking.Wait()
}

// share asks a site for its share. It does not wait for a site known to be down.
func (s *Reads) share(ctx context.Context, site, entity string, how samyav1.Consistency) (*samyav1.GetEntityResponse, error) {
	resp := &samyav1.GetEntityResponse{}
	err := s.router.At(ctx, site, route.Call{
		Method: samyav1.EntityService_GetEntity_FullMethodName, Resp: resp, Read: true, Entity: entity,
		Req: &samyav1.GetEntityRequest{Name: entity, Consistency: how},
	})
	return resp, err
}

// reply is the answer of a site to a global read.
type reply struct {
	site string
	resp *samyav1.GetEntityResponse
	err  error
	// round is the round in which the site was asked. age is how old its figures were
	// when it answered.
	round int
	age   time.Duration
}

// absent reports whether the site answered that it has no such entity.
func (r *reply) absent() bool { return r.err != nil && apierr.ReasonOf(r.err) == apierr.EntityNotFound }

// add adds the replies up and keeps the figures for later reads. If all sites have
// answered and the shares are no consistent cut, again names the sites to ask again.
func (s *Reads) add(entity string, replies []reply, now time.Time) (sum *samyav1.GetEntityResponse, again []string, err error) {
	sum, fresh, err := merge(entity, replies, s.seen.get(entity), now)
	if err != nil {
		return nil, nil, err
	}
	s.seen.put(entity, fresh)
	u := sum.GetUsage()
	if !u.GetComplete() {
		return sum, nil, nil
	}
	all := make([]shares.Share, 0, len(replies))
	for i := range replies {
		all = append(all, replies[i].share())
	}
	cut := shares.Merge(all)
	u.Consistent = cut.Consistent
	return sum, cut.Again, nil
}

// figure is a share and the time at which it was seen.
type figure struct {
	share      *samyav1.Share
	generation uint64
	seen       time.Time
}

// merge adds up the replies of the member sites to a read of entity. For a site without
// an answer it takes the latest of the old figures and the figures other sites have
// heard. It returns the figures to keep.
//
// The entity is taken from the reply of the highest generation and version. A site that
// knows only an earlier generation, or no such entity, holds nothing of this generation
// yet: its future tokens are in transit.
func merge(entity string, replies []reply, old map[string]figure, now time.Time) (*samyav1.GetEntityResponse, map[string]figure, error) {
	latest, err := newest(entity, replies)
	if err != nil {
		return nil, nil, err
	}
	owed := ownShare(latest).GetMoves().GetOwed()
	u := &samyav1.Usage{
		Complete: true, Surplus: latest.resp.GetUsage().GetSurplus(), WrittenOff: latest.resp.GetUsage().GetWrittenOff(), Available: -owed, Debt: owed,
		MayExceedBy: mayExceed(latest, replies),
	}
	generation := latest.resp.GetEntity().GetGeneration()
	keep := map[string]figure{}
	for i := range replies {
		r := &replies[i]
		f, known := old[r.site]
		switch {
		case r.err == nil && r.resp.GetEntity().GetGeneration() == generation:
			f, known = figure{share: ownShare(r), generation: generation, seen: now.Add(-r.age)}, true
			u.WindowEndsMs = max(u.GetWindowEndsMs(), r.resp.GetUsage().GetWindowEndsMs())
		case r.err == nil && r.age == 0 || r.absent():
			f, known = figure{share: &samyav1.Share{}, generation: generation, seen: now}, true
		default:
			u.Complete = false
			known = known && f.generation == generation
			if h, heard := heardOf(r.site, generation, replies, now); heard && (!known || h.seen.After(f.seen)) {
				// No site tells these two counts of another site. The counts only grow.
				h.share.Redistributions, h.share.Transfers = f.share.GetRedistributions(), f.share.GetTransfers()
				f, known = h, true
			}
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
		u.Debt -= min(0, f.share.GetLeft()) + min(0, f.share.GetOffered())
	}
	u.InTransit = latest.resp.GetEntity().GetLimit() - u.GetSurplus() - u.GetWrittenOff() - u.GetAvailable() - u.GetAcquired()
	return &samyav1.GetEntityResponse{Entity: latest.resp.GetEntity(), Usage: u}, keep, nil
}

// mayExceed returns by how much the limit may be exceeded at most. It is 0 if a site
// knows that all sites have heard of the debt, or if all sites tell so themselves. A lost
// site, whose tokens are written off, may be alive and hears of nothing.
func mayExceed(latest *reply, replies []reply) int64 {
	moves, generation := ownShare(latest).GetMoves(), latest.resp.GetEntity().GetGeneration()
	owed, since := moves.GetOwed(), moves.GetOwedSince()
	if owed == 0 {
		return 0
	}
	all := latest.resp.GetUsage().GetWrittenOff() == 0
	for i := range replies {
		r := &replies[i]
		if r.err != nil || r.resp.GetEntity().GetGeneration() != generation {
			all = false
			continue
		}
		m := ownShare(r).GetMoves()
		if m.GetOwed() > 0 && m.GetOwedSince() == since && r.resp.GetUsage().GetMayExceedBy() == 0 {
			return 0
		}
		all = all && m.GetApplied() >= since
	}
	if all {
		return 0
	}
	return owed
}

// heardOf returns the latest figures of a site that other sites have heard.
func heardOf(site string, generation uint64, replies []reply, now time.Time) (latest figure, heard bool) {
	for i := range replies {
		r := &replies[i]
		if r.err != nil || r.site == site || r.resp.GetEntity().GetGeneration() != generation {
			continue
		}
		for _, sh := range r.resp.GetUsage().GetShares() {
			if sh.GetSite() != site || !sh.GetKnown() {
				continue
			}
			if at := now.Add(-sh.GetAge().AsDuration()); !heard || at.After(latest.seen) {
				share := &samyav1.Share{Left: sh.GetLeft(), Offered: sh.GetOffered(), Net: sh.GetNet()}
				latest, heard = figure{share: share, generation: generation, seen: at}, true
			}
		}
	}
	return latest, heard
}

// newest returns the reply of the highest generation and version. If no site knows the
// entity, the error says whether the entity or the sites are missing.
func newest(entity string, replies []reply) (*reply, error) {
	var latest *reply
	var refusal *apierr.Error
	for i := range replies {
		r := &replies[i]
		if r.err != nil {
			e := apierr.From(r.err)
			if refusal == nil || e.Reason == apierr.EntityNotFound {
				refusal = e
			}
			continue
		}
		if e := r.resp.GetEntity(); latest == nil || cmp.Or(
			cmp.Compare(e.GetGeneration(), latest.resp.GetEntity().GetGeneration()),
			cmp.Compare(e.GetVersion(), latest.resp.GetEntity().GetVersion()),
			cmp.Compare(ownShare(r).GetMoves().GetApplied(), ownShare(latest).GetMoves().GetApplied())) > 0 {
			latest = r
		}
	}
	switch {
	case latest != nil:
		return latest, nil
	case refusal == nil:
		return nil, apierr.Unreachable("")
	case refusal.Reason == apierr.EntityNotFound:
		return nil, apierr.NotFound(entity)
	}
	return nil, refusal
}

// ownShare returns the share that a site tells of itself; zeros if it tells none.
func ownShare(r *reply) *samyav1.Share {
	for _, sh := range r.resp.GetUsage().GetShares() {
		if sh.GetSite() == r.site {
			return sh
		}
	}
	return &samyav1.Share{}
}

// share returns the reply in the form that shares.Merge takes.
func (r *reply) share() shares.Share {
	if r.err != nil {
		return shares.Share{Site: r.site, Round: r.round, Absent: true}
	}
	own, e := ownShare(r), r.resp.GetEntity()
	moves := own.GetMoves()
	sh := shares.Share{
		Site: r.site, Round: r.round, Generation: e.GetGeneration(), Limit: e.GetLimit(), Surplus: r.resp.GetUsage().GetSurplus(),
		WrittenOff: r.resp.GetUsage().GetWrittenOff(), Owed: moves.GetOwed(),
		Applied: moves.GetApplied(), Pledged: moves.GetPledged(),
		Left: own.GetLeft(), Offered: own.GetOffered(), Net: own.GetNet(),
	}
	for _, st := range moves.GetStars() {
		sh.Stars = append(sh.Stars, shares.Star{Leader: st.GetLeader(), Counter: st.GetCounter(), Applied: st.GetApplied()})
	}
	sh.Sent, sh.Received = transfers(moves.GetSent()), transfers(moves.GetReceived())
	sh.Handed, sh.Inherited = transfers(moves.GetHanded()), transfers(moves.GetInherited())
	return sh
}

func transfers(moves []*samyav1.TransferMove) []shares.Transfer {
	list := make([]shares.Transfer, 0, len(moves))
	for _, t := range moves {
		list = append(list, shares.Transfer{Site: t.GetSite(), Seq: t.GetSeq(), Tokens: t.GetTokens()})
	}
	return list
}
