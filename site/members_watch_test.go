package site_test

import (
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// watchUntil reads a watch of the members until a list pleases.
func watchUntil(t *testing.T, w grpc.ServerStreamingClient[samyav1.WatchMembersResponse], pleases func(*samyav1.ListMembersResponse) bool) {
	t.Helper()
	for {
		told, err := w.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if told.GetList() != nil && pleases(told.GetList()) {
			return
		}
	}
}

// TestMembersWatched: a watch tells the members at once, and each step of a site that
// joins. It ends with the site that it is at.
func TestMembersWatched(t *testing.T) {
	c := sitetest.Start(t, []string{"as", "eu", "us"}, nil)
	c.Create("vm", 90)
	// A connection of its own outlives the site.
	conn, err := grpc.NewClient(c.Site("eu").GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w, err := samyav1.NewClusterServiceClient(conn).WatchMembers(t.Context(), &samyav1.WatchMembersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := w.Recv()
	if err != nil || len(first.GetList().GetMembers()) != 3 || first.GetList().GetVersion() != 1 || first.GetList().GetAnsweredBy() != "site/eu" {
		t.Fatalf("at once: %v, %v", first, err)
	}
	west := func(state samyav1.MemberState) func(*samyav1.ListMembersResponse) bool {
		return func(list *samyav1.ListMembersResponse) bool {
			m := list.GetMembers()[len(list.GetMembers())-1]
			return m.GetName() == "west" && m.GetState() == state
		}
	}
	addMember(t, c, "us", "west")
	watchUntil(t, w, west(samyav1.MemberState_MEMBER_STATE_JOINING))
	c.Join("west")
	watchUntil(t, w, west(samyav1.MemberState_MEMBER_STATE_MEMBER))
	go c.Stop("eu")
	for err == nil {
		_, err = w.Recv()
	}
	if !errors.Is(apierr.FromGRPC(err), apierr.ShuttingDown) {
		t.Errorf("a watch at a site that stops ends with %v", err)
	}
}
