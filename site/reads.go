package site

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"google.golang.org/protobuf/types/known/durationpb"
)

// GetEntity implements samyav1.EntityServiceServer: this site's share, with
// CONSISTENCY_BOUNDED also the last known shares of other sites. It asks nobody.
func (s entities) GetEntity(ctx context.Context, r *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
	bounded := r.GetConsistency() == samyav1.Consistency_CONSISTENCY_BOUNDED
	if err := errors.Join(name.Entity("name", r.GetName()), consistency(r.GetConsistency()), maxAge(r.GetMaxAge())); err != nil {
		return nil, apierr.FromName(err)
	}
	a, err := asked{entity: r.GetName()}.ask(ctx, s.Site, func(c input.Call) input.Input { return &input.Read{Call: c, Entity: r.GetName()} })
	if err != nil {
		return nil, err
	}
	kind := "local"
	if bounded {
		kind = "bounded"
	}
	s.metrics.reads.WithLabelValues(kind).Inc()
	return &samyav1.GetEntityResponse{Entity: entityOf(a.View()), Usage: s.usage(a.View(), bounded)}, nil
}

// CutEntity implements samyav1.EntityServiceServer: this site's share, with its part of
// the tokens in use. It asks nobody.
func (s entities) CutEntity(ctx context.Context, r *samyav1.CutEntityRequest) (*samyav1.CutEntityResponse, error) {
	if err := name.Entity("name", r.GetName()); err != nil {
		return nil, apierr.FromName(err)
	}
	a, err := asked{entity: r.GetName()}.ask(ctx, s.Site, func(c input.Call) input.Input { return &input.Read{Call: c, Entity: r.GetName(), Cut: true} })
	if err != nil {
		return nil, err
	}
	s.metrics.reads.WithLabelValues("cut").Inc()
	return cutOf(a.View(), s.usage(a.View(), false)), nil
}

// ResetEntity implements samyav1.EntityServiceServer: at this site alone.
func (s entities) ResetEntity(ctx context.Context, r *samyav1.ResetEntityRequest) (*samyav1.ResetEntityResponse, error) {
	if err := name.Entity("name", r.GetName()); err != nil {
		return nil, apierr.FromName(err)
	}
	a, err := asked{entity: r.GetName()}.ask(ctx, s.Site, func(c input.Call) input.Input { return &input.Reset{Call: c, Entity: r.GetName()} })
	if err != nil {
		return nil, err
	}
	return &samyav1.ResetEntityResponse{Returned: int64(a.Tokens)}, nil
}

// cutOf adds to a site's own share its part of the tokens in use.
func cutOf(v *answer.View, u *samyav1.Usage) *samyav1.CutEntityResponse {
	m := u.GetShares()[0].GetMoves()
	m.Own, m.Returning, m.Leased = int64(v.Count.Own), int64(v.Count.Returning), int64(v.Count.Leased)
	return &samyav1.CutEntityResponse{Entity: entityOf(v), Usage: u}
}

// consistency refuses a consistency that a single site cannot provide.
func consistency(c samyav1.Consistency) error {
	switch c {
	case samyav1.Consistency_CONSISTENCY_UNSPECIFIED, samyav1.Consistency_CONSISTENCY_LOCAL,
		samyav1.Consistency_CONSISTENCY_BOUNDED:
		return nil
	case samyav1.Consistency_CONSISTENCY_EXACT:
		return &name.Error{Field: "consistency", Problem: "a site tells of itself: an app manager asks all"}
	}
	return &name.Error{Field: "consistency", Problem: "none that is known"}
}

func maxAge(d *durationpb.Duration) error {
	if d == nil {
		return nil
	}
	if d.CheckValid() != nil {
		return &name.Error{Field: "max_age", Problem: "no valid duration"}
	}
	return name.Age("max_age", d.AsDuration())
}

// usage returns this site's share and, with others, the last known shares of other
// sites, in the order of their names.
func (s *Site) usage(v *answer.View, others bool) *samyav1.Usage {
	u := &samyav1.Usage{
		Complete: len(s.members()) == 1, MembersVersion: v.Members, Consistent: false, Surplus: int64(v.Surplus), WrittenOff: int64(v.WrittenOff),
		Available: -int64(v.Debt), Debt: int64(v.Debt), MayExceedBy: int64(v.MayExceed), WindowEndsMs: v.Ends,
		Shares: []*samyav1.Share{{
			Site: s.cfg.Name, Left: int64(v.Left), Offered: int64(v.Offered), Net: int64(v.Net),
			Age: durationpb.New(0), Known: true, Waiting: int64(v.Waiting), Redistributions: uint64(v.Applied) + v.Moved,
			Transfers: v.Fetches, Moves: movesOf(v),
		}},
	}
	if others {
		for i := range v.Others {
			u.Shares = append(u.Shares, heard(&v.Others[i]))
		}
		slices.SortFunc(u.Shares, func(a, b *samyav1.Share) int { return cmp.Compare(a.GetSite(), b.GetSite()) })
	}
	for _, sh := range u.GetShares() {
		u.Available += sh.GetLeft()
		u.Acquired += sh.GetNet()
		u.InTransit += sh.GetOffered()
		u.Debt -= min(0, sh.GetLeft()) + min(0, sh.GetOffered())
	}
	return u
}

func heard(o *answer.OtherView) *samyav1.Share {
	if o.Age == answer.Never {
		return &samyav1.Share{Site: string(o.Site)}
	}
	return &samyav1.Share{
		Site: string(o.Site), Known: true, Age: durationpb.New(time.Duration(o.Age) * time.Millisecond),
		Left: int64(o.Left), Offered: int64(o.Offered), Net: int64(o.Net),
	}
}

func movesOf(v *answer.View) *samyav1.Moves {
	m := &samyav1.Moves{Applied: uint64(v.Applied), Moved: v.Moved, Pledged: v.Moves.Pledged, Owed: int64(v.Debt), OwedSince: uint64(v.DebtSince)}
	for _, st := range v.Moves.Stars {
		m.Stars = append(m.Stars, &samyav1.StarMove{Leader: string(st.Leader), Counter: st.Counter, Applied: st.Applied})
	}
	m.Sent, m.Received = transfersOf(v.Moves.Sent), transfersOf(v.Moves.Received)
	m.Handed, m.Inherited = transfersOf(v.Moves.Handed), transfersOf(v.Moves.Inherited)
	return m
}

func transfersOf(moves []answer.TransferMove) []*samyav1.TransferMove {
	list := make([]*samyav1.TransferMove, 0, len(moves))
	for _, t := range moves {
		list = append(list, &samyav1.TransferMove{Site: string(t.Site), Seq: t.Seq, Tokens: int64(t.Tokens)})
	}
	return list
}
