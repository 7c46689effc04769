package reads

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/seats"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// ListMembers implements samyav1.ClusterServiceServer: it returns the sites with a seat as
// the named site, or any, told them, with the health of the members that this app manager
// sees.
func (s *Reads) ListMembers(ctx context.Context, in *samyav1.ListMembersRequest) (*samyav1.ListMembersResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	resp := &samyav1.ListMembersResponse{}
	call := route.Call{Method: samyav1.ClusterService_ListMembers_FullMethodName, Req: in, Resp: resp, Read: true}
	var err error
	switch named := in.GetSite(); {
	case named == "":
		err = s.router.Do(ctx, call)
	case name.Site("site", named) != nil:
		err = apierr.FromName(name.Site("site", named))
	default:
		err = s.router.At(ctx, named, call)
	}
	if err != nil {
		return nil, err
	}
	s.askDraining(ctx, resp)
	s.sight(resp)
	return resp, nil
}

// askDraining asks the sites that drain for what they still hold: they alone know. A site
// without an answer stays as another site told of it.
func (s *Reads) askDraining(ctx context.Context, all *samyav1.ListMembersResponse) {
	ctx, cancel := context.WithTimeout(ctx, within(ctx, readTime))
	defer cancel()
	var asking sync.WaitGroup
	for _, m := range all.GetMembers() {
		if m.GetState() != samyav1.MemberState_MEMBER_STATE_DRAINING || m.GetDrain() != nil {
			continue
		}
		asking.Go(func() {
			own := &samyav1.ListMembersResponse{}
			err := s.router.At(ctx, m.GetName(), route.Call{
				Method: samyav1.ClusterService_ListMembers_FullMethodName, Req: &samyav1.ListMembersRequest{}, Resp: own, Read: true,
			})
			if err != nil {
				return
			}
			for _, o := range own.GetMembers() {
				if o.GetName() == m.GetName() && o.GetState() == m.GetState() && o.GetDrain() != nil {
					m.Drain, m.WaitsFor, m.Knows = o.GetDrain(), o.GetWaitsFor(), true
				}
			}
		})
	}
	asking.Wait()
}

// WatchMembers implements samyav1.ClusterServiceServer.
func (s *Reads) WatchMembers(_ *samyav1.WatchMembersRequest, stream grpc.ServerStreamingServer[samyav1.WatchMembersResponse]) error {
	return s.TellMembers(stream.Context(), stream.Send)
}

// TellMembers sends the members as all sites tell them, at once and after each change. It
// returns why the watch ends: an *apierr.Error, or the error of send.
func (s *Reads) TellMembers(ctx context.Context, send func(*samyav1.WatchMembersResponse) error) error {
	return s.watch(ctx, func(ctx context.Context) error { return seats.Tell(ctx, s.lookAtMembers, send) })
}

// lookAtMembers is the seats.Look of an app manager. Before any site has told the members
// it asks for them.
func (s *Reads) lookAtMembers(ctx context.Context) (*samyav1.ListMembersResponse, [2]<-chan struct{}, error) {
	known, reseated := s.router.Seats()
	changed := [2]<-chan struct{}{reseated}
	if known.List() == nil {
		list, err := s.ListMembers(ctx, &samyav1.ListMembersRequest{})
		return list, changed, err
	}
	list := proto.CloneOf(known.List())
	// The list has come from several sites.
	list.AnsweredBy = s.name
	s.sight(list)
	return list, changed, nil
}

// sight writes into a list where this app manager finds the sites, and their health.
func (s *Reads) sight(list *samyav1.ListMembersResponse) {
	now := time.Now()
	for _, m := range list.GetMembers() {
		info, h, ok := s.router.State(m.GetName())
		if !ok {
			continue
		}
		if m.GetTerm() != info.Term {
			m.Standbys = 0 // of another take-over
		}
		m.Region, m.Address, m.Node, m.Term = info.Region, info.Address, info.Node, info.Term
		switch m.GetState() {
		case samyav1.MemberState_MEMBER_STATE_MEMBER, samyav1.MemberState_MEMBER_STATE_DRAINING:
			m.Health = publicHealth(h, now)
		}
	}
}
