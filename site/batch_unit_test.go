package site

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/node"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/engine"
)

// idle is a site with an engine that does not run yet: all requests wait.
func idle(t *testing.T) *Site {
	t.Helper()
	s, err := New(Config{
		Config: node.Config{
			Cluster: "test", Name: "us", Region: "us", GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0",
			Gossip: node.Gossip{Bind: "127.0.0.1:0"}, Preset: "local",
		},
		DataDir: t.TempDir(), Members: []string{"us", "eu", "as"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// stop has the engine begin and end.
func (s *Site) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.engine.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// acquires are operations with the ids id0, id1, …
func acquires(n int) []*samyav1.Operation {
	all := make([]*samyav1.Operation, n)
	for i := range all {
		all[i] = &samyav1.Operation{Operation: &samyav1.Operation_Acquire{
			Acquire: &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: fmt.Sprint("id", i)},
		}}
	}
	return all
}

// wantUnknown checks that each operation of a batch is told that it may have been done.
func wantUnknown(t *testing.T, what string, resp *samyav1.BatchResponse) {
	t.Helper()
	for i, r := range resp.GetResults() {
		e := apierr.FromFailure(r.GetFailure())
		if e == nil || e.Reason != apierr.OutcomeUnknown || e.RequestID != fmt.Sprint("id", i) || e.Site != "us" {
			t.Errorf("%s: operation %d is told %+v", what, i, e)
		}
	}
}

// TestBatchOfAnEngineThatStops: operations under way as the engine stops, or that it does
// not take, may have been done.
func TestBatchOfAnEngineThatStops(t *testing.T) {
	b := idle(t).begin(acquires(2), forEver, nil)
	for _, c := range b.calls {
		c.To.Receive(c, answer.Answer{}, engine.ErrStopped)
	}
	<-b.done
	wantUnknown(t, "under way", b.response(time.Now()))
	s := idle(t)
	s.stop(t)
	ended := make(chan *samyav1.BatchResponse, 1)
	go func() {
		resp, err := tokens{Site: s}.Batch(t.Context(), &samyav1.BatchRequest{Operations: acquires(2)})
		if err != nil {
			t.Error(err)
		}
		ended <- resp
	}()
	select {
	case resp := <-ended:
		if len(resp.GetResults()) != 2 {
			t.Errorf("%v", resp)
		}
		wantUnknown(t, "not taken", resp)
	case <-time.After(20 * time.Second):
		t.Fatal("a batch that the engine does not take is not answered")
	}
}

// TestBatchGivenUpByTheEngine: operations that the engine gives up may have been done. The
// engine may still look at them, so their memory is let go.
func TestBatchGivenUpByTheEngine(t *testing.T) {
	s := idle(t)
	go func() {
		for s.engine.Waiting() == 0 {
			runtime.Gosched()
		}
		s.engine.GiveUp()
	}()
	resp, err := tokens{Site: s}.Batch(t.Context(), &samyav1.BatchRequest{Operations: acquires(3)})
	if err != nil || len(resp.GetResults()) != 3 {
		t.Errorf("%v, %v", resp, err)
	}
	wantUnknown(t, "given up", resp)
	b := s.begin(acquires(1), forEver, nil)
	s.engine.GiveUp()
	<-b.done
	if wantUnknown(t, "given up", b.response(time.Now())); !b.cancelled {
		t.Error("a batch that was given up does not say so")
	}
}

// TestBatchGivenUpIsNotUsedAgain: after the caller has gone, the engine may still look at
// the operations of a batch. Their memory is let go.
func TestBatchGivenUpIsNotUsedAgain(t *testing.T) {
	s := idle(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for s.engine.Waiting() == 0 {
			runtime.Gosched()
		}
		cancel()
	}()
	resp, err := tokens{Site: s}.Batch(ctx, &samyav1.BatchRequest{Operations: acquires(3)})
	if err != nil || len(resp.GetResults()) != 3 {
		t.Errorf("%v, %v", resp, err)
	}
	wantUnknown(t, "given up", resp)
	for range 100 {
		if b := batches.Get().(*batch); b.cancelled {
			t.Fatal("it is to be used again")
		}
	}
	b := s.begin(acquires(1), forEver, nil)
	if b.giveUp(context.Canceled); !b.cancelled {
		t.Error("a batch that was given up does not say so")
	}
	wantUnknown(t, "given up", b.response(time.Now()))
}

// TestBatchGivenUpAsItEnds: a caller that goes when all answers are there leaves nothing
// behind for the next batch.
func TestBatchGivenUpAsItEnds(t *testing.T) {
	s := idle(t)
	b := s.begin(acquires(2), forEver, nil)
	s.stop(t)
	if b.giveUp(context.Canceled); b.cancelled || len(b.done) != 0 {
		t.Errorf("cancelled %v, %d left of its end", b.cancelled, len(b.done))
	}
}
