package site

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/seats"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"google.golang.org/grpc"
)

// memberStates are the states of the API, by the states of the core.
var memberStates = map[string]samyav1.MemberState{
	"joining":  samyav1.MemberState_MEMBER_STATE_JOINING,
	"member":   samyav1.MemberState_MEMBER_STATE_MEMBER,
	"draining": samyav1.MemberState_MEMBER_STATE_DRAINING,
	"gone":     samyav1.MemberState_MEMBER_STATE_GONE,
	"lost":     samyav1.MemberState_MEMBER_STATE_LOST,
}

// ListMembers implements samyav1.ClusterServiceServer: the sites with a seat, as this site
// knows them.
func (s cluster) ListMembers(ctx context.Context, _ *samyav1.ListMembersRequest) (*samyav1.ListMembersResponse, error) {
	return s.listMembers(ctx)
}

// WatchMembers implements samyav1.ClusterServiceServer. Whatever gossip tells of may change
// the list, as may every change of a seat.
func (s cluster) WatchMembers(_ *samyav1.WatchMembersRequest, stream grpc.ServerStreamingServer[samyav1.WatchMembersResponse]) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	go func() {
		select {
		case <-s.closing:
			cancel(s.failure(answer.Answer{Code: answer.Stopping}, asked{}))
		case <-ctx.Done():
		}
	}()
	err := seats.Tell(ctx, func(ctx context.Context) (*samyav1.ListMembersResponse, [2]<-chan struct{}, error) {
		changed := [2]<-chan struct{}{s.sites.Load().changed, s.membership.Changed()}
		list, err := s.listMembers(ctx)
		return list, changed, err
	}, stream.Send)
	if stopping, ok := errors.AsType[*apierr.Error](context.Cause(ctx)); ok {
		return stopping
	}
	return err
}

// listMembers returns the sites with a seat.
func (s *Site) listMembers(ctx context.Context) (*samyav1.ListMembersResponse, error) {
	m, err := s.roster(ctx)
	if err != nil {
		return nil, err
	}
	resp := &samyav1.ListMembersResponse{
		Version: m.Version, Behind: uint64(m.Behind), WaitsFor: changeWaitsFor(m), AnsweredBy: "site/" + s.cfg.Name,
	}
	look := s.look()
	for i := range m.Sites {
		resp.Members = append(resp.Members, memberOf(m, &m.Sites[i], look))
	}
	return resp, nil
}

// AddMember implements samyav1.ClusterServiceServer.
func (s cluster) AddMember(ctx context.Context, r *samyav1.AddMemberRequest) (*samyav1.AddMemberResponse, error) {
	if err := errors.Join(name.Site("name", r.GetName()), checks.RequestID("request_id", r.GetRequestId())); err != nil {
		return nil, apierr.FromName(err)
	}
	ch := &input.Change{Kind: input.AddSite, Name: r.GetName(), RequestID: r.GetRequestId()}
	if _, err := s.decide(ctx, ch); err != nil {
		return nil, err
	}
	// The change is decided. Its outcome is the caller's even if this site stops now.
	m, err := s.roster(ctx)
	if err != nil {
		return nil, s.broken(err, asked{requestID: ch.RequestID})
	}
	resp, look := &samyav1.AddMemberResponse{Version: m.Version}, s.look()
	for i := range m.Sites {
		if string(m.Sites[i].Site) == r.GetName() {
			resp.Member = memberOf(m, &m.Sites[i], look)
		}
	}
	return resp, nil
}

// roster asks the core for the sites of the cluster.
func (s *Site) roster(ctx context.Context) (*answer.Members, error) {
	if err := expired(ctx); err != nil {
		return nil, err
	}
	in := &input.ReadMembers{}
	a, err := s.engine.Do(ctx, func(c input.Call) input.Input { in.Call = c; return in })
	if err != nil {
		return nil, s.broken(err, asked{})
	}
	if err := s.failure(a, asked{}); err != nil {
		return nil, err
	}
	return a.Members(), nil
}

// memberRefusal is refusal for a change of the members.
func (s *Site) memberRefusal(a answer.Answer, ch *input.Change) error {
	if a.Code == answer.Overloaded && a.RetryAfter == 0 {
		return apierr.New(apierr.OutOfRange, "the cluster has had %d sites, at most %d; site %q is not added", avantan.MaxMembers, avantan.MaxMembers, ch.Name)
	}
	return s.failure(a, asked{requestID: ch.RequestID})
}

// memberOf is a site with a seat in the terms of the API. Only a member, and a site that
// drains, have a health: the other sites serve nobody.
func memberOf(all *answer.Members, m *answer.Member, look func(core.SiteID) *samyav1.Site) *samyav1.Member {
	site := look(m.Site)
	linked := site.GetHealth() == samyav1.SiteHealth_SITE_HEALTH_SERVING
	out := &samyav1.Member{
		Name: string(m.Site), State: memberStates[m.State], Knows: m.Knows, Region: site.GetRegion(), Address: site.GetAddress(),
		WaitsFor: memberWaitsFor(all, m, linked), Heir: string(m.Heir),
	}
	switch out.GetState() {
	case samyav1.MemberState_MEMBER_STATE_MEMBER, samyav1.MemberState_MEMBER_STATE_DRAINING:
		out.Health = site.GetHealth()
	}
	return out
}

// memberWaitsFor tells what a site waits for; linked tells whether this site has a link
// to it. It is empty if the site is as its state says.
func memberWaitsFor(all *answer.Members, m *answer.Member, linked bool) string {
	switch memberStates[m.State] {
	case samyav1.MemberState_MEMBER_STATE_JOINING:
		switch {
		case !m.Knows && !linked:
			return "the site to start, with an address to join"
		case !m.Knows:
			return "the site to learn the catalogue"
		case all.Behind > 0:
			return changeWaitsFor(all)
		}
		return "the members to admit it"
	case samyav1.MemberState_MEMBER_STATE_MEMBER:
		switch {
		case !m.Knows:
			return "the site to hear that it is a member"
		case len(m.Unheard) > 0:
			return listed(m.Unheard) + " to hear of it"
		}
	}
	return ""
}

// changeWaitsFor tells what the next change of the voters waits for; empty for nothing.
func changeWaitsFor(m *answer.Members) string {
	switch m.Behind {
	case 0:
		return ""
	case 1:
		return "1 entity to adopt the new voters"
	}
	return fmt.Sprintf("%d entities to adopt the new voters", m.Behind)
}

// listed lists sites in words.
func listed(sites []core.SiteID) string {
	var words strings.Builder
	for i, site := range sites {
		switch {
		case i > 0 && i == len(sites)-1:
			words.WriteString(" and ")
		case i > 0:
			words.WriteString(", ")
		}
		words.WriteString(string(site))
	}
	return words.String()
}
