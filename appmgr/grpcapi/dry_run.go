package grpcapi

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/samya-db/samya/appmgr/dryrun"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// A dry run is worked out here, from reads. No site is asked for the change: a site of an
// earlier build would make it.

// maxDepth bounds the entities that stand one below the other.
const maxDepth = 8

// find returns the entity of a name, and not the key of a template; nil if there is none.
func (s *Service) find(ctx context.Context, entity string) (*samyav1.Entity, error) {
	page, err := s.ListEntities(ctx, &samyav1.ListEntitiesRequest{Prefix: entity, PageSize: 1})
	if err != nil {
		return nil, err
	}
	if all := page.GetEntities(); len(all) > 0 && all[0].GetName() == entity {
		return all[0], nil
	}
	return nil, nil
}

// parentOf returns an entity's parent, nil for none.
func (s *Service) parentOf(ctx context.Context, e *samyav1.Entity) (*samyav1.Entity, error) {
	if e.GetParent() == "" {
		return nil, nil
	}
	return s.find(ctx, e.GetParent())
}

// quorum returns the members, or why they decide nothing at present.
func (s *Service) quorum(ctx context.Context) ([]*samyav1.Site, error) {
	list, err := s.ListSites(ctx, &samyav1.ListSitesRequest{})
	if err != nil {
		return nil, err
	}
	up := 0
	for _, site := range list.GetSites() {
		if site.GetHealth() != samyav1.SiteHealth_SITE_HEALTH_UNREACHABLE {
			up++
		}
	}
	if 2*up <= len(list.GetSites()) {
		return nil, apierr.New(apierr.NoQuorum, "%d of %d sites can be reached, and no majority; nothing was changed", up, len(list.GetSites()))
	}
	return list.GetSites(), nil
}

func (s *Service) dryCreate(ctx context.Context, in *samyav1.CreateEntityRequest) (*samyav1.CreateEntityResponse, error) {
	sites, err := s.quorum(ctx)
	if err != nil {
		return nil, err
	}
	there, err := s.find(ctx, in.GetName())
	if err != nil {
		return nil, err
	}
	if there != nil {
		return nil, refuse.Exists(in.GetName())
	}
	e := &samyav1.Entity{
		Name: in.GetName(), Limit: in.GetLimit(), Parent: in.GetParent(), Per: in.GetPer(), Kind: in.GetKind(), TimeZone: in.GetTimeZone(),
		Durable: in.Durable, Keys: in.GetKeys(), Version: 1,
	}
	parent, err := s.parentOf(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case e.GetParent() != "" && parent == nil:
		gone := apierr.New(apierr.ParentNotFound, "no entity %q to stand below", e.GetParent())
		gone.Entity = e.GetName()
		return nil, gone
	}
	depth := 1
	for up := parent; up != nil; depth++ {
		if depth == maxDepth {
			return nil, apierr.Invalid("parent", "more than 8 entities would stand one below the other")
		}
		if up, err = s.parentOf(ctx, up); err != nil {
			return nil, err
		}
	}
	return &samyav1.CreateEntityResponse{Entity: e, DryRun: dryrun.Create(dryrun.Creation{Entity: e, Parent: parent, Sites: sites})}, nil
}

func (s *Service) dryUpdate(ctx context.Context, in *samyav1.UpdateEntityRequest) (*samyav1.UpdateEntityResponse, error) {
	if err := errors.Join(
		name.Entity("name", in.GetName()), name.Limit("limit", in.GetLimit()), version("expected_version", in.GetExpectedVersion()),
		checks.RequestID("request_id", in.GetRequestId()),
	); err != nil {
		return nil, apierr.FromName(err)
	}
	if _, err := s.quorum(ctx); err != nil {
		return nil, err
	}
	now, err := s.GetEntity(ctx, &samyav1.GetEntityRequest{Name: in.GetName()})
	if err != nil {
		return nil, err
	}
	e := now.GetEntity()
	if want := in.GetExpectedVersion(); want != 0 && want != e.GetVersion() {
		err := apierr.New(apierr.VersionMismatch, "entity %q has version %d, not the version expected", e.GetName(), e.GetVersion())
		err.Entity = e.GetName()
		return nil, err
	}
	parent, err := s.parentOf(ctx, e)
	if err != nil {
		return nil, err
	}
	out := &samyav1.UpdateEntityResponse{DryRun: dryrun.Limit(e, now.GetUsage(), in.GetLimit(), parent)}
	for _, share := range now.GetUsage().GetShares() {
		if !share.GetKnown() || share.GetAge().AsDuration() > 0 {
			out.MissingSites = append(out.MissingSites, share.GetSite())
		}
	}
	e.Limit, e.Version = in.GetLimit(), e.GetVersion()+1
	out.Entity = e
	return out, nil
}

func (s *Service) dryDrain(ctx context.Context, in *samyav1.DrainMemberRequest) (*samyav1.DrainMemberResponse, error) {
	if _, err := s.quorum(ctx); err != nil {
		return nil, err
	}
	list, err := s.ListMembers(ctx, &samyav1.ListMembersRequest{})
	if err != nil {
		return nil, err
	}
	site := in.GetName()
	of := make(map[string]*samyav1.Member)
	var members []string
	for _, m := range list.GetMembers() {
		of[m.GetName()] = m
		if m.GetState() == samyav1.MemberState_MEMBER_STATE_MEMBER && m.GetName() != site {
			members = append(members, m.GetName())
		}
	}
	m := of[site]
	if m == nil {
		return nil, apierr.New(apierr.MemberNotFound, "the cluster has no site %q", site)
	}
	out := &samyav1.DrainMemberResponse{Member: m, Version: list.GetVersion()}
	state := strings.ToLower(strings.TrimPrefix(m.GetState().String(), "MEMBER_STATE_"))
	switch {
	case in.GetCancel() && m.GetState() == samyav1.MemberState_MEMBER_STATE_MEMBER:
		out.DryRun = dryrun.Nothing("site " + site + " is a member, and does not drain")
	case in.GetCancel() && m.GetState() == samyav1.MemberState_MEMBER_STATE_DRAINING:
		m.State, m.Heir = samyav1.MemberState_MEMBER_STATE_MEMBER, ""
		out.DryRun = dryrun.Keep(site)
	case !in.GetCancel() && (m.GetState() == samyav1.MemberState_MEMBER_STATE_DRAINING || m.GetState() == samyav1.MemberState_MEMBER_STATE_GONE):
		out.DryRun = dryrun.Nothing("site " + site + " is " + state + " already")
	case in.GetCancel(), m.GetState() != samyav1.MemberState_MEMBER_STATE_MEMBER:
		return nil, apierr.New(apierr.MemberState, "site %q is %s", site, state)
	case list.GetWaitsFor() != "":
		return nil, apierr.New(apierr.MembersChanging, "a change of members is under way: %s; nothing was done", list.GetWaitsFor())
	case len(members) == 0:
		return nil, apierr.New(apierr.MemberState, "site %q is the only member, and nobody would take over", site)
	default:
		for _, other := range list.GetMembers() {
			if other.GetState() == samyav1.MemberState_MEMBER_STATE_DRAINING {
				return nil, apierr.New(apierr.MembersChanging, "site %q drains, and one site leaves at a time; nothing was done", other.GetName())
			}
		}
		heir, err := heirOf(site, in.GetHeir(), members)
		if err != nil {
			return nil, err
		}
		m.State, m.Heir = samyav1.MemberState_MEMBER_STATE_DRAINING, heir
		out.DryRun = dryrun.Drain(site, heir, list.GetMembers(), s.holds(ctx, site))
	}
	return out, nil
}

// heirOf is the member that takes over: the one named, or the next in the order of names.
func heirOf(site, named string, others []string) (string, error) {
	slices.Sort(others)
	switch {
	case named == "":
		i, _ := slices.BinarySearch(others, site)
		return others[i%len(others)], nil
	case !slices.Contains(others, named):
		return "", apierr.Invalid("heir", "must be another member")
	}
	return named, nil
}

// holds is what a site holds; nil if it does not tell.
func (s *Service) holds(ctx context.Context, site string) *samyav1.SiteSurvey {
	all, err := s.SurveySites(ctx, &samyav1.SurveySitesRequest{})
	if err != nil {
		return nil
	}
	for _, one := range all.GetSites() {
		if one.GetSite() == site && one.GetKnown() {
			return one
		}
	}
	return nil
}
