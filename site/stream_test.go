package site_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// onStream is the way of a stream.
func onStream(c caller, op *samyav1.Operation) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	rpc, err := c.Tokens("us").Stream(ctx)
	if err != nil {
		return err
	}
	s := &callerStream{rpc: rpc}
	if err := rpc.Send(&samyav1.StreamRequest{Calls: []*samyav1.Call{{Tag: 7, Operation: op}}}); err != nil {
		return err
	}
	reply, err := s.reply()
	switch {
	case err != nil:
		return err
	case reply.GetTag() != 7:
		return fmt.Errorf("the answer is that of %d", reply.GetTag())
	case reply.GetResult().GetFailure() == nil:
		return nil
	}
	return apierr.FromFailure(reply.GetResult().GetFailure()).Unwrap()
}

// callerStream is a stream to site us.
type callerStream struct {
	t       *testing.T
	rpc     grpc.BidiStreamingClient[samyav1.StreamRequest, samyav1.StreamResponse]
	window  uint32
	replies []*samyav1.Reply
}

// open opens a stream, which ends with the test.
func open(ctx context.Context, t *testing.T, c *sitetest.Cluster) *callerStream {
	t.Helper()
	rpc, err := c.Tokens("us").Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &callerStream{t: t, rpc: rpc}
}

func (s *callerStream) send(r *samyav1.StreamRequest) {
	s.t.Helper()
	if err := s.rpc.Send(r); err != nil {
		s.t.Fatal(err)
	}
}

func (s *callerStream) call(tag uint64, op *samyav1.Operation) {
	s.t.Helper()
	s.send(&samyav1.StreamRequest{Calls: []*samyav1.Call{{Tag: tag, Operation: op}}})
}

// reply returns the next answer.
func (s *callerStream) reply() (*samyav1.Reply, error) {
	for len(s.replies) == 0 {
		resp, err := s.rpc.Recv()
		if err != nil {
			return nil, err
		}
		if resp.GetWindow() != 0 {
			s.window = resp.GetWindow()
		}
		s.replies = resp.GetReplies()
	}
	r := s.replies[0]
	s.replies = s.replies[1:]
	return r, nil
}

// wants checks the next answer.
func (s *callerStream) wants(tag uint64, result string) {
	s.t.Helper()
	r, err := s.reply()
	if err != nil {
		s.t.Fatalf("call %d: %v", tag, err)
	}
	if r.GetTag() != tag || ofResult(r.GetResult()) != result {
		s.t.Errorf("answer %d: %s; want %d: %s", r.GetTag(), ofResult(r.GetResult()), tag, result)
	}
}

// TestAnswersShareNothing: answers use the memory of earlier answers, and have nothing of
// these: a lease, a failure, or that a release is parked.
func TestAnswersShareNothing(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	c.Create("acme/vm", 9)
	s := open(t.Context(), t, c)
	leased := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, Lease: &samyav1.LeaseTerms{Ttl: durationpb.New(time.Minute)}}
	plain := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 2}
	for tag := uint64(1); tag <= 6; tag++ {
		op, failure := acquireOf(plain), false
		switch tag {
		case 1, 4:
			op = acquireOf(leased)
		case 2, 5:
			op, failure = acquireOf(&samyav1.AcquireRequest{Entity: "none", Tokens: 1}), true
		}
		s.call(tag, op)
		r, err := s.reply()
		if err != nil {
			t.Fatal(err)
		}
		a := r.GetResult().GetAcquire()
		if r.GetTag() != tag || (r.GetResult().GetFailure() != nil) != failure || (a.GetLease() != nil) != (op.GetAcquire().GetLease() != nil) ||
			!failure && a.GetTokens() != op.GetAcquire().GetTokens() {
			t.Errorf("call %d: %v", tag, r)
		}
	}
}

// waiter is an acquire that waits as long as the site is cut off.
func waiter(id string) *samyav1.Operation {
	return acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 9, RequestId: id, Wait: durationpb.New(time.Minute)})
}

// cutOff is a cluster with site us cut off from the others. us has 3 of the 9 tokens of
// acme/vm.
func cutOff(t *testing.T) *sitetest.Cluster {
	t.Helper()
	c := sitetest.Start(t, []string{"as", "eu", "us"}, nil)
	c.Create("acme/vm", 9)
	c.Partition([]string{"us"}, []string{"as", "eu"})
	return c
}

// wantWaiting waits until so many acquires wait at site us.
func wantWaiting(t *testing.T, c *sitetest.Cluster, want int64) {
	t.Helper()
	sitetest.Eventually(t, fmt.Sprintf("%d waiting", want), func() error {
		resp, err := c.Entities("us").GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: "acme/vm"})
		if err != nil {
			return err
		}
		for _, s := range resp.GetUsage().GetShares() {
			if s.GetSite() == "us" && s.GetWaiting() == want {
				return nil
			}
		}
		return errors.New(resp.String())
	})
}

// TestStream: answers come as soon as they are there, and a waiting acquire holds up no
// other. A tag can be used again once it has its answer. After the caller's last call the
// stream ends well.
func TestStream(t *testing.T) {
	c := cutOff(t)
	s := open(t.Context(), t, c)
	s.call(1, waiter("w"))
	wantWaiting(t, c, 1)
	s.call(2, releaseOf(&samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 1, RequestId: "r"}))
	s.wants(2, "released 1 as r, 4 left")
	if s.window != site.StreamWindow {
		t.Errorf("window %d", s.window)
	}
	s.send(&samyav1.StreamRequest{Calls: []*samyav1.Call{
		{Tag: 2, Operation: acquireOf(&samyav1.AcquireRequest{Entity: "acme/none", Tokens: 1})}, {Tag: 3},
	}})
	// The call of no kind fails at once.
	s.wants(3, "INVALID_FIELD")
	s.wants(2, "ENTITY_NOT_FOUND")
	s.send(&samyav1.StreamRequest{Cancels: []uint64{9, 1}})
	s.wants(1, "OUTCOME_UNKNOWN")
	wantWaiting(t, c, 0)
	s.call(1, acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 4, RequestId: "a"}))
	if err := s.rpc.CloseSend(); err != nil {
		t.Fatal(err)
	}
	s.wants(1, "acquired 4 as a, 0 left")
	if r, err := s.reply(); !errors.Is(err, io.EOF) {
		t.Errorf("%v, %v", r, err)
	}
}

// TestStreamTimeout: each call has a time-out of its own.
func TestStreamTimeout(t *testing.T) {
	c := cutOff(t)
	s := open(t.Context(), t, c)
	s.call(1, waiter("w"))
	s.send(&samyav1.StreamRequest{Calls: []*samyav1.Call{{Tag: 2, Operation: waiter("x"), TimeoutMs: 100}}})
	r, err := s.reply()
	if err != nil || r.GetTag() != 2 || r.GetResult().GetFailure() == nil {
		t.Errorf("%v, %v", r, err)
	}
	wantWaiting(t, c, 1)
}

// TestStreamTags: a tag that has no answer yet cannot be given to another call.
func TestStreamTags(t *testing.T) {
	c := cutOff(t)
	for title, calls := range map[string][][]*samyav1.Call{
		"in one message": {{{Tag: 1, Operation: waiter("w")}, {Tag: 1, Operation: waiter("x")}}},
		"one by one":     {{{Tag: 1, Operation: waiter("y")}}, {{Tag: 2, Operation: waiter("z")}, {Tag: 1, Operation: waiter("z")}}},
	} {
		s := open(t.Context(), t, c)
		for _, of := range calls {
			s.send(&samyav1.StreamRequest{Calls: of})
		}
		_, err := s.reply()
		e := apierr.FromGRPC(err)
		if status.Code(err) != codes.InvalidArgument || e.Reason != apierr.InvalidField || len(e.Violations) != 1 ||
			e.Violations[0] != (apierr.Violation{Field: "calls[1].tag", Problem: "1 is that of a call without an answer"}) {
			t.Errorf("%s: %v", title, err)
		}
	}
	wantWaiting(t, c, 0)
}

// TestStreamBreaks: when its caller goes, waiting acquires stop waiting.
func TestStreamBreaks(t *testing.T) {
	c := cutOff(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := open(ctx, t, c)
	for i := range uint64(20) {
		s.call(i, waiter(fmt.Sprint("w", i)))
	}
	wantWaiting(t, c, 20)
	cancel()
	wantWaiting(t, c, 0)
}

// TestStreamAtStop: a site that stops answers the calls that it has begun and then ends
// its streams, so that it stops at once.
func TestStreamAtStop(t *testing.T) {
	c := cutOff(t)
	// The cluster closes its own connection before it stops the site.
	conn := dial(t, c.Site("us").GRPCAddr())
	rpc, err := samyav1.NewTokenServiceClient(conn).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &callerStream{t: t, rpc: rpc}
	s.call(1, waiter("w"))
	wantWaiting(t, c, 1)
	stopped := make(chan struct{})
	go func() { c.Stop("us"); close(stopped) }()
	s.wants(1, "SHUTTING_DOWN")
	if _, err := s.reply(); !errors.Is(apierr.FromGRPC(err), apierr.ShuttingDown) {
		t.Error(err)
	}
	<-stopped
}
