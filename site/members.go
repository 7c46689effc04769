package site

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/seats"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/wire"
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
func (s cluster) ListMembers(ctx context.Context, r *samyav1.ListMembersRequest) (*samyav1.ListMembersResponse, error) {
	if named := r.GetSite(); named != "" && named != s.cfg.Name {
		return nil, apierr.Invalid("site", "a site tells its own knowledge, and this is "+s.cfg.Name+": an app manager asks any")
	}
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
		Version: m.Version, Behind: uint64(m.Behind), WaitsFor: changeWaitsFor(m), AnsweredBy: s.cfg.answersAs(),
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
	m, version, err := s.changeMember(ctx, &input.Change{Kind: input.AddSite, Name: r.GetName(), RequestID: r.GetRequestId()})
	if err != nil {
		return nil, err
	}
	return &samyav1.AddMemberResponse{Member: m, Version: version}, nil
}

// DrainMember implements samyav1.ClusterServiceServer.
func (s cluster) DrainMember(ctx context.Context, r *samyav1.DrainMemberRequest) (*samyav1.DrainMemberResponse, error) {
	if err := errors.Join(checks.Drain(r), noDryRun(r.GetDryRun())); err != nil {
		return nil, apierr.FromName(err)
	}
	ch := &input.Change{Kind: input.DrainSite, Name: r.GetName(), Heir: core.SiteID(r.GetHeir()), RequestID: r.GetRequestId()}
	if r.GetCancel() {
		ch.Kind = input.KeepSite
	}
	m, version, err := s.changeMember(ctx, ch)
	if err != nil {
		return nil, err
	}
	return &samyav1.DrainMemberResponse{Member: m, Version: version}, nil
}

// RemoveMember implements samyav1.ClusterServiceServer.
func (s cluster) RemoveMember(ctx context.Context, r *samyav1.RemoveMemberRequest) (*samyav1.RemoveMemberResponse, error) {
	if err := errors.Join(name.Site("name", r.GetName()), checks.RequestID("request_id", r.GetRequestId())); err != nil {
		return nil, apierr.FromName(err)
	}
	ch := &input.Change{Kind: input.RemoveSite, Name: r.GetName(), RequestID: r.GetRequestId()}
	if r.GetLost() {
		ch.Kind = input.LoseSite
	}
	m, version, err := s.changeMember(ctx, ch)
	if err != nil {
		return nil, err
	}
	return &samyav1.RemoveMemberResponse{Member: m, Version: version}, nil
}

// changeMember has the sites decide a change of a site, and returns the site and the
// version of the members after it.
func (s *Site) changeMember(ctx context.Context, ch *input.Change) (*samyav1.Member, uint64, error) {
	if _, err := s.decide(ctx, ch); err != nil {
		return nil, 0, err
	}
	// The change is decided. Its outcome is the caller's even if this site stops now.
	m, err := s.roster(ctx)
	if err != nil {
		return nil, 0, s.broken(err, asked{requestID: ch.RequestID})
	}
	for i := range m.Sites {
		if string(m.Sites[i].Site) == ch.Name {
			return memberOf(m, &m.Sites[i], s.look()), m.Version, nil
		}
	}
	return nil, m.Version, nil
}

// roster asks the core for the sites of the cluster.
func (s *Site) roster(ctx context.Context) (*answer.Members, error) {
	if err := expired(ctx); err != nil {
		return nil, err
	}
	a, err := asked{}.ask(ctx, s, func(c input.Call) input.Input { return &input.ReadMembers{Call: c} })
	if err != nil {
		return nil, err
	}
	return a.Members(), nil
}

// memberOf is a site with a seat in the terms of the API. Only a member, and a site that
// drains, have a health: the other sites serve nobody.
func memberOf(all *answer.Members, m *answer.Member, look func(core.SiteID) *samyav1.Site) *samyav1.Member {
	site := look(m.Site)
	linked := site.GetHealth() == samyav1.SiteHealth_SITE_HEALTH_SERVING
	out := &samyav1.Member{
		Name: string(m.Site), State: memberStates[m.State], Knows: m.Knows, Region: site.GetRegion(), Address: site.GetAddress(),
		WaitsFor: memberWaitsFor(all, m, linked, site.GetRefusal()), Heir: string(m.Heir), Drain: drainOf(m.Drain),
		Rescued: m.Rescued, Remembered: rememberedOf(m.Remembered), Node: site.GetNode(), Term: site.GetTerm(), Standbys: site.GetStandbys(),
	}
	switch out.GetState() {
	case samyav1.MemberState_MEMBER_STATE_MEMBER, samyav1.MemberState_MEMBER_STATE_DRAINING:
		out.Health = site.GetHealth()
	}
	return out
}

// memberWaitsFor tells what a site waits for; linked tells whether this site has a link
// to it, refusal why the two refuse to work together. It is empty if the site is as its
// state says.
func memberWaitsFor(all *answer.Members, m *answer.Member, linked bool, refusal string) string {
	switch memberStates[m.State] {
	case samyav1.MemberState_MEMBER_STATE_JOINING:
		switch {
		case !linked && refusal != "":
			return "another build or cluster, as " + string(m.Site) + " is refused: " + refusal
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
		case m.Unsettled:
			return string(m.Heir) + " to confirm what was handed over"
		}
	case samyav1.MemberState_MEMBER_STATE_DRAINING:
		switch {
		case !m.Knows:
			return "the site to hear that it drains"
		case all.Behind > 0:
			return changeWaitsFor(all)
		case m.Drain != nil:
			return drainWaitsFor(m)
		}
		return "the site to hand over what it holds"
	}
	return ""
}

// drainWaitsFor tells what a site that drains waits for, as the site itself knows.
func drainWaitsFor(m *answer.Member) string {
	d := m.Drain
	if d.Emptied {
		return "the members to retire it"
	}
	var parts []string
	for _, p := range []struct {
		n         int
		one, many string
	}{
		{d.Entities, "1 entity to be handed over to " + string(m.Heir), "%d entities to be handed over to " + string(m.Heir)},
		{d.Leases, "1 lease", "%d leases"},
		{d.Claims, "1 claim to be answered", "%d claims to be answered"},
	} {
		switch {
		case p.n == 1:
			parts = append(parts, p.one)
		case p.n > 1:
			parts = append(parts, fmt.Sprintf(p.many, p.n))
		}
	}
	if d.Records > 0 {
		parts = append(parts, fmt.Sprintf("requests of the last %v to be forgotten", drainTime(d.Records)))
	}
	switch {
	case len(parts) > 0:
		// The site asks the others once it has nothing else to wait for.
		return strings.Join(parts, ", ")
	case len(d.Unclear) == 1:
		return listed(d.Unclear) + " to settle its transfers"
	case len(d.Unclear) > 1:
		return listed(d.Unclear) + " to settle their transfers"
	}
	return "the site to note that it holds nothing"
}

// drainTime is a time in whole seconds, rounded up.
func drainTime(t avantan.Tick) time.Duration {
	return (time.Duration(t)*time.Millisecond + time.Second - time.Millisecond).Truncate(time.Second)
}

// drainOf is what a site that drains still holds, in the terms of the API.
func drainOf(d *answer.Drain) *samyav1.Drain {
	if d == nil {
		return nil
	}
	out := &samyav1.Drain{
		Entities: int64(d.Entities), Leases: int64(d.Leases), Claims: int64(d.Claims), Tokens: int64(d.Tokens), Emptied: d.Emptied,
		Unclear: wire.Names(d.Unclear),
	}
	if d.Records > 0 {
		out.Records = durationpb.New(time.Duration(d.Records) * time.Millisecond)
	}
	return out
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

// underWay tells of a change of the members under way, from its sites that hand over tokens.
func underWay(m *answer.Members) string {
	switch {
	case len(m.Sites) == 0 && m.Behind == 0:
		return "it has ended meanwhile"
	case len(m.Sites) == 0:
		return "it waits for " + changeWaitsFor(m)
	}
	leaving := make([]core.SiteID, len(m.Sites))
	for i := range m.Sites {
		leaving[i] = m.Sites[i].Site
	}
	if len(leaving) == 1 {
		return "site " + listed(leaving) + " hands over its tokens"
	}
	return "sites " + listed(leaving) + " hand over their tokens"
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
