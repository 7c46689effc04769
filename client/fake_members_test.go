package client

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/seats"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	seatMember   = samyav1.MemberState_MEMBER_STATE_MEMBER
	seatDraining = samyav1.MemberState_MEMBER_STATE_DRAINING
	seatGone     = samyav1.MemberState_MEMBER_STATE_GONE
	seatLost     = samyav1.MemberState_MEMBER_STATE_LOST
)

// seat is the seat of a site at the address and in the region of its name.
func seat(site string, state samyav1.MemberState, heir string) *samyav1.Member {
	return &samyav1.Member{Name: site, State: state, Heir: heir, Address: site, Region: site}
}

// seat has the server tell these seats from now on, in the order of names.
func (s *server) seat(version uint64, members ...*samyav1.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = &samyav1.ListMembersResponse{Version: version, Members: members}
	if s.retold != nil {
		close(s.retold)
		s.retold = nil
	}
}

// seat has all servers tell these seats from now on.
func (w *world) seat(version uint64, members ...*samyav1.Member) {
	for _, s := range w.servers {
		s.seat(version, members...)
	}
}

// list returns the seats that the server tells, and a channel that is closed at the next
// change.
func (s *server) list() (*samyav1.ListMembersResponse, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retold == nil {
		s.retold = make(chan struct{})
	}
	return s.told, s.retold
}

// lease answers a request about a lease.
func (s *server) lease(name string, found func(name string)) error {
	s.mu.Lock()
	s.arrivals++
	refusal := s.leases
	s.mu.Unlock()
	if refusal != nil {
		if err := refusal(name); err != nil {
			return err
		}
	}
	found(name)
	return nil
}

// holds has the server answer requests about leases.
func (s *server) holds(answer func(name string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases = answer
}

// counts returns how many calls arrived, health checks were answered and connections
// closed.
func (s *server) counts() (arrivals, probes, closed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrivals, s.probes, s.closed
}

// watch is a watch of the members at the server.
func (c *fakeConn) watch(ctx context.Context) (grpc.ClientStream, error) {
	if list, _ := c.s.list(); list == nil || c.s.unwatched {
		return nil, status.Error(codes.Unimplemented, "no watch here")
	}
	return &memberStream{ctx: ctx, c: c}, nil
}

// memberStream is a watch of the members. It breaks with the connection.
type memberStream struct {
	grpc.ClientStream
	ctx  context.Context
	c    *fakeConn
	last *samyav1.ListMembersResponse
}

func (*memberStream) SendMsg(any) error { return nil }
func (*memberStream) CloseSend() error  { return nil }

func (m *memberStream) RecvMsg(into any) error {
	alive := time.NewTimer(seats.Alive)
	defer alive.Stop()
	for {
		m.c.s.mu.Lock()
		state, changed := m.c.s.state, m.c.s.changed
		m.c.s.mu.Unlock()
		if state != connectivity.Ready {
			return status.Error(codes.Unavailable, "cut by the test")
		}
		list, retold := m.c.s.list()
		if list != m.last && !m.c.s.isSilent() {
			m.last = list
			proto.Merge(into.(*samyav1.WatchMembersResponse), &samyav1.WatchMembersResponse{List: list})
			return nil
		}
		if m.c.s.mute {
			<-m.ctx.Done()
		}
		select {
		case <-m.ctx.Done():
			return status.FromContextError(m.ctx.Err()).Err()
		case <-changed:
		case <-retold:
		case <-alive.C:
			if !m.c.s.isSilent() {
				return nil
			}
		}
	}
}
