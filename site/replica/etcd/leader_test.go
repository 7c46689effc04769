package etcd

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/site/replica"
)

// member is a member of an etcd that answers what the tests ask.
type member struct {
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedKVServer
	id     uint64
	leader *atomic.Uint64
	fails  atomic.Bool
	txns   atomic.Int64
}

// Status implements pb.MaintenanceServer.
func (m *member) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: m.id}, Leader: m.leader.Load()}, nil
}

// Txn implements pb.KVServer.
func (m *member) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	if m.fails.Load() {
		return nil, status.Error(codes.Unavailable, "it is about to stop")
	}
	m.txns.Add(1)
	return &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: 1}, Succeeded: true}, nil
}

// TestLeader: transactions go to the member that leads, also once another member leads. If the
// leader does not answer, the next transaction goes to another member.
func TestLeader(t *testing.T) {
	var leads atomic.Uint64
	var members []*member
	var endpoints []string
	for i := range 3 {
		m := &member{id: uint64(i + 1), leader: &leads}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := grpc.NewServer()
		pb.RegisterMaintenanceServer(srv, m)
		pb.RegisterKVServer(srv, m)
		go func() { _ = srv.Serve(l) }()
		defer srv.Stop()
		members, endpoints = append(members, m), append(endpoints, l.Addr().String())
	}
	leads.Store(2)
	c, err := Open(Config{Endpoints: endpoints})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	txn := &replica.Txn{Then: []replica.Change{{Key: "k", Value: []byte("v")}}}
	// settles makes transactions until a row of them goes to a member alone.
	settles := func(want *member) {
		t.Helper()
		const row = 50
		deadline := time.Now().Add(30 * time.Second)
		for n := 0; n < row; {
			before := want.txns.Load()
			_, err := c.Do(txn)
			switch {
			case time.Now().After(deadline):
				t.Fatalf("transactions go to other members than %d: %v", want.id, err)
			case err == nil && want.txns.Load() > before:
				n++
			default:
				n = 0
			}
		}
	}
	settles(members[1])
	// It still tells that it leads.
	members[1].fails.Store(true)
	for attempt := 1; ; attempt++ {
		if _, err := c.Do(txn); err == nil {
			break
		} else if attempt == 20 {
			t.Fatalf("no other member is asked: %v", err)
		}
	}
	leads.Store(3)
	settles(members[2])
	if _, err := c.Do(txn); err != nil {
		t.Error(err)
	}
}
