package site

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/wire"
)

// RescueEntity implements samyav1.EntityServiceServer.
func (s entities) RescueEntity(ctx context.Context, r *samyav1.RescueEntityRequest) (*samyav1.RescueEntityResponse, error) {
	if err := checks.Rescue(r); err != nil {
		return nil, apierr.FromName(err)
	}
	told := &input.Rescue{
		Site: core.SiteID(r.GetSite()), Generation: r.GetGeneration(), Net: core.Tokens(r.GetNet()), Held: core.Tokens(r.GetHeld()),
	}
	for _, l := range r.GetLeases() {
		told.Leased = append(told.Leased, input.Leased{Tokens: core.Tokens(l.GetTokens()), Until: l.GetUntilMs()})
	}
	if err := s.wasLost(ctx, told.Site); err != nil {
		return nil, err
	}
	a, err := s.change(ctx, &input.Change{
		Kind: input.RescueEntity, Name: r.GetName(), Rescue: told, RequestID: r.GetRequestId(), Applied: true,
	})
	if err != nil {
		return nil, err
	}
	return &samyav1.RescueEntityResponse{Entity: entityOf(a.View()), Returned: int64(a.Returned), MissingSites: wire.Names(a.Unapplied())}, nil
}

// wasLost refuses a site that was not written off.
func (s *Site) wasLost(ctx context.Context, site core.SiteID) error {
	m, err := s.roster(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(m.Sites, func(m answer.Member) bool { return m.Site == site })
	switch {
	case i < 0:
		return apierr.New(apierr.MemberNotFound, "the cluster has no site %q", site)
	case stored.SeatState(m.Sites[i].State) != stored.SeatLost:
		return notLost(string(site))
	}
	return nil
}

func notLost(site string) *apierr.Error {
	return refused("site %q was not written off: all that it holds is its own", site)
}

// refusedRescue is refusal for a rescue of an entity; nil for a code that means the same for
// other changes.
func refusedRescue(a *answer.Answer, ch *input.Change) *apierr.Error {
	var e *apierr.Error
	switch {
	case a.Code == answer.Mismatch:
		e = apierr.New(apierr.VersionMismatch, "entity %q has changed meanwhile, or was created anew; nothing was done", ch.Name)
	case a.Code == answer.NoParent:
		e = apierr.New(apierr.VersionMismatch, "all that site %q held of an entity above %q has to come back first; nothing was done", ch.Rescue.Site, ch.Name)
	case a.Code == answer.Changing && len(a.Members().Sites) == 0 && a.Members().Behind == 0:
		e = apierr.New(apierr.MembersChanging, "the sites have not counted yet all that lost sites held of entity %q; nothing was done", ch.Name)
		e.RetryAfter = time.Second
	default:
		return nil
	}
	e.Entity, e.RequestID = ch.Name, ch.RequestID
	return e
}

// RescueMember implements samyav1.ClusterServiceServer.
func (s cluster) RescueMember(ctx context.Context, r *samyav1.RescueMemberRequest) (*samyav1.RescueMemberResponse, error) {
	if err := checks.Member(r); err != nil {
		return nil, apierr.FromName(err)
	}
	m, version, err := s.changeMember(ctx, &input.Change{Kind: input.RescueSite, Name: r.GetName(), RequestID: r.GetRequestId()})
	if err != nil {
		return nil, err
	}
	return &samyav1.RescueMemberResponse{Member: m, Version: version}, nil
}

// rememberedOf is what this site remembers of a lost site's data; nil for nothing.
func rememberedOf(r answer.Remembered) *samyav1.Remembered {
	if r.Incarnation == 0 {
		return nil
	}
	return &samyav1.Remembered{Incarnation: fmt.Sprintf("%016x", r.Incarnation), Commit: r.Commits, Served: r.Served}
}
