package site_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// requests are the calls of a site by kind; changes carry the request id.
func requests(s *site.Site) (changes, reads map[string]func(context.Context) error) {
	tokens, entities, admin := s.TokenService(), s.EntityService(), s.ClusterService()
	one := func(id string) []*samyav1.Operation {
		return []*samyav1.Operation{acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: id})}
	}
	changes = map[string]func(context.Context) error{
		"acquire": func(ctx context.Context) error {
			_, err := tokens.Acquire(ctx, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: "id"})
			return err
		},
		"release": func(ctx context.Context) error {
			_, err := tokens.Release(ctx, &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 1, RequestId: "id"})
			return err
		},
		"batch": func(ctx context.Context) error {
			resp, err := tokens.Batch(ctx, &samyav1.BatchRequest{Operations: one("id")})
			if err != nil {
				return err
			}
			return apierr.FromFailure(resp.GetResults()[0].GetFailure())
		},
		"atomic batch": func(ctx context.Context) error {
			_, err := tokens.Batch(ctx, &samyav1.BatchRequest{Atomic: true, RequestId: "id", Operations: one("")})
			return err
		},
		"renewal": func(ctx context.Context) error {
			_, err := tokens.RenewLease(ctx, &samyav1.RenewLeaseRequest{Lease: "us/id", Ttl: durationpb.New(time.Minute)})
			return err
		},
		"commit": func(ctx context.Context) error {
			_, err := tokens.CommitLease(ctx, &samyav1.CommitLeaseRequest{Lease: "us/x", RequestId: "id"})
			return err
		},
		"creation": func(ctx context.Context) error {
			_, err := entities.CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: "acme/vm", RequestId: "id"})
			return err
		},
		"deletion": func(ctx context.Context) error {
			_, err := entities.DeleteEntity(ctx, &samyav1.DeleteEntityRequest{Name: "acme/vm", RequestId: "id"})
			return err
		},
		"mode": func(ctx context.Context) error {
			_, err := admin.SetMode(ctx, &samyav1.SetModeRequest{Protocol: "star", RequestId: "id"})
			return err
		},
	}
	reads = map[string]func(context.Context) error{
		"mode read": func(ctx context.Context) error {
			_, err := admin.GetMode(ctx, &samyav1.GetModeRequest{})
			return err
		},
		"forecast read": func(ctx context.Context) error {
			_, err := admin.GetForecast(ctx, &samyav1.GetForecastRequest{})
			return err
		},
		"forecast": func(ctx context.Context) error {
			_, err := admin.SetForecast(ctx, &samyav1.SetForecastRequest{Model: "none"})
			return err
		},
	}
	return changes, reads
}

// TestGivenUpMayHaveBeenDone: a caller that gives up a request under way is told the id
// and the site with which to find out.
func TestGivenUpMayHaveBeenDone(t *testing.T) {
	s, err := site.New(goodConfig(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	changes, reads := requests(s)
	giveUp := func(what string, call func(context.Context) error) *apierr.Error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		before, failed := s.Waiting(), make(chan error, 1)
		go func() { failed <- call(ctx) }()
		sitetest.Eventually(t, what, func() error {
			if s.Waiting() == before {
				return errors.New("it was not begun")
			}
			return nil
		})
		cancel()
		return apierr.From(<-failed)
	}
	for what, call := range changes {
		if e := giveUp(what, call); e == nil || e.Reason != apierr.OutcomeUnknown || e.RequestID != "id" || e.Site != "us" {
			t.Errorf("%s: %+v", what, e)
		}
	}
	for what, call := range reads {
		if e := giveUp(what, call); e == nil || e.Reason != apierr.Canceled {
			t.Errorf("%s: %+v", what, e)
		}
	}
}

// TestTooLateIsNotBegun: a request past its deadline does not reach the engine.
func TestTooLateIsNotBegun(t *testing.T) {
	s, err := site.New(goodConfig(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	changes, reads := requests(s)
	for _, calls := range []map[string]func(context.Context) error{changes, reads} {
		for what, call := range calls {
			if err := call(late); !errors.Is(err, apierr.DeadlineExceeded) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if n := s.Waiting(); n != 0 {
		t.Errorf("%d were begun", n)
	}
}
