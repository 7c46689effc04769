package grpcapi

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestSiteWithoutStreams: unary calls reach a site that has no streams yet.
func TestSiteWithoutStreams(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		r.sites["us"].UnaryOnly = true
		for range 2 {
			if resp, err := r.service.Acquire(r.t.Context(), fake.Take); err != nil || resp.GetSite() != "us" {
				r.t.Errorf("%v, %v", resp, err)
			}
		}
		back := &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 3}
		if resp, err := r.service.Release(r.t.Context(), back); err != nil || resp.GetSite() != "us" || resp.GetRequestId() == "" {
			r.t.Errorf("%v, %v", resp, err)
		}
	})
}

// TestDelayedSite: calls to a far site do not wait for each other.
func TestDelayedSite(t *testing.T) {
	inBubble(t, []string{"eu"}, nil, func(r *rig) {
		began := time.Now()
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				if _, err := r.service.Acquire(r.t.Context(), &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1}); err != nil {
					r.t.Error(err)
				}
			})
		}
		calls.Wait()
		if took := time.Since(began); took != 2*fake.OneWay["eu"] {
			r.t.Errorf("50 calls at once took %v, a round trip is %v", took, 2*fake.OneWay["eu"])
		}
	})
}

// TestForeignOperation: a request that cannot be sent is the caller's fault, and says
// nothing about the site.
func TestForeignOperation(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		large := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1}
		large.ProtoReflect().SetUnknown(append([]byte{0xfa, 0x3f, 0xa0, 0x9c, 0x01}, make([]byte, 20_000)...))
		_, err := r.service.Acquire(r.t.Context(), large)
		if apierr.ReasonOf(err) != apierr.BodyTooLarge {
			r.t.Errorf("a request that holds too much: %v", err)
		}
		if got := r.health("us").Reach; got != health.Up {
			r.t.Errorf("the site counts as %d", got)
		}
	})
}

// TestForeignAnswer: the outcome of a request is unknown if its answer does not belong to
// it.
func TestForeignAnswer(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		r.sites["us"].OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) { return nil, nil }
		_, err := r.service.Acquire(r.t.Context(), fake.Take)
		if apierr.ReasonOf(err) != apierr.OutcomeUnknown {
			r.t.Errorf("%v", err)
		}
	})
}
