package fake

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/seats"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// ListMembers implements samyav1.ClusterServiceServer: a site joins besides the members.
// A test that has set other seats gets those.
func (f *Site) ListMembers(context.Context, *samyav1.ListMembersRequest) (*samyav1.ListMembersResponse, error) {
	list, _ := f.seats()
	if list != nil {
		return list, nil
	}
	resp := &samyav1.ListMembersResponse{Version: 2, Behind: 12, WaitsFor: "12 entities to adopt the new voters", AnsweredBy: "site/" + f.Name}
	members, _ := f.told()
	for _, m := range members {
		resp.Members = append(resp.Members, &samyav1.Member{
			Name: m, State: samyav1.MemberState_MEMBER_STATE_MEMBER, Knows: true, Region: m, Address: m,
			Health: samyav1.SiteHealth_SITE_HEALTH_SERVING,
		})
	}
	resp.Members = append(resp.Members, joiner("west"))
	return resp, nil
}

// joiner is a site that joins.
func joiner(name string) *samyav1.Member {
	return &samyav1.Member{
		Name: name, State: samyav1.MemberState_MEMBER_STATE_JOINING, Region: "us", Address: "us:7", WaitsFor: "the site to learn the catalogue",
	}
}

// WatchMembers implements samyav1.ClusterServiceServer.
func (f *Site) WatchMembers(_ *samyav1.WatchMembersRequest, stream samyav1.ClusterService_WatchMembersServer) error {
	if f.Listing {
		return status.Error(codes.Unimplemented, "unknown method WatchMembers")
	}
	if f.Mute {
		list, err := f.ListMembers(stream.Context(), nil)
		if err == nil {
			err = stream.Send(&samyav1.WatchMembersResponse{List: list})
		}
		<-stream.Context().Done()
		return err
	}
	return seats.Tell(stream.Context(), func(ctx context.Context) (*samyav1.ListMembersResponse, [2]<-chan struct{}, error) {
		_, changed := f.seats()
		list, err := f.ListMembers(ctx, nil)
		return list, [2]<-chan struct{}{changed}, err
	}, stream.Send)
}

// Seat has the site tell these seats from now on. Each seat is of a site, in the order of
// their names.
func (f *Site) Seat(version uint64, members ...*samyav1.Member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = &samyav1.ListMembersResponse{Version: version, AnsweredBy: "site/" + f.Name}
	for _, m := range members {
		f.list.Members = append(f.list.Members, proto.CloneOf(m))
	}
	if f.listed != nil {
		close(f.listed)
		f.listed = nil
	}
}

// seats are the seats that a test has set, and a channel that is closed when it sets others.
func (f *Site) seats() (*samyav1.ListMembersResponse, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listed == nil {
		f.listed = make(chan struct{})
	}
	return f.list, f.listed
}

// SeatAll has all sites tell these seats from now on.
func SeatAll(sites map[string]*Site, version uint64, members ...*samyav1.Member) {
	for _, f := range sites {
		f.Seat(version, members...)
	}
}

// SeatOf is the seat of a site, at the address and in the region of its name.
func SeatOf(site string, state samyav1.MemberState, heir string) *samyav1.Member {
	return &samyav1.Member{Name: site, State: state, Heir: heir, Region: site, Address: site, Knows: true}
}
