package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/client"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// newClient returns a client that is closed with the test.
func newClient(tb testing.TB, cfg client.Config) *client.Client {
	tb.Helper()
	c, err := client.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			tb.Errorf("closing the client: %v", err)
		}
	})
	return c
}

// sites makes targets of the sites of a cluster, each in the region of its name.
func sites(c *sitetest.Cluster, names ...string) []client.Target {
	var ts []client.Target
	for _, n := range names {
		ts = append(ts, client.Target{Address: c.Site(n).GRPCAddr(), Region: n})
	}
	return ts
}

func TestAgainstSites(t *testing.T) {
	cluster := sitetest.Start(t, []string{"as", "eu", "us"}, nil)
	c := newClient(t, client.Config{Region: "eu", Targets: sites(cluster, "as", "eu", "us")})
	ctx := t.Context()
	if err := c.CreateEntity(ctx, "acme/seats", 300); err != nil {
		t.Fatal(err)
	}
	cluster.Create("acme/vm", 900)

	t.Run("acquire and release", func(t *testing.T) {
		sitetest.Eventually(t, "an acquire in the own region", func() error {
			g, err := c.Acquire(ctx, "acme/vm", 5)
			if err != nil {
				t.Fatal(err)
			}
			if g.Tokens != 5 || g.RequestID == "" {
				t.Fatalf("granted %+v", g)
			}
			r, err := c.Release(ctx, "acme/vm", 5)
			if err != nil || r.Tokens != 5 {
				t.Fatalf("released %+v, %v", r, err)
			}
			if g.Site != "eu" || r.Site != "eu" {
				return errors.New("answered elsewhere")
			}
			return nil
		})
	})

	t.Run("the same id is the same request", func(t *testing.T) {
		for range 3 {
			if g, err := c.Acquire(ctx, "acme/vm", 7, client.RequestID("order-1")); err != nil || g.Tokens != 7 || g.RequestID != "order-1" {
				t.Fatalf("granted %+v, %v", g, err)
			}
		}
		if _, err := c.Acquire(ctx, "acme/vm", 8, client.RequestID("order-1")); !errors.Is(err, client.ErrRequestIDReused) {
			t.Errorf("error %v, want ErrRequestIDReused", err)
		}
		// Gossip from the other sites is late.
		sitetest.Eventually(t, "7 are acquired", func() error {
			e, err := c.Entity(ctx, "acme/vm", client.Local())
			if err == nil && (e.Acquired != 7 || e.Limit != 900) {
				err = fmt.Errorf("read %+v; want 7 acquired", e)
			}
			return err
		})
		if _, err := c.Release(ctx, "acme/vm", 7); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("out of tokens", func(t *testing.T) {
		_, err := c.Acquire(ctx, "acme/vm", 850, client.Wait(0))
		var e *client.Error
		if !errors.Is(err, client.ErrOutOfTokens) || !errors.As(err, &e) || e.Left < 1 || e.RequestID == "" || e.Entity != "acme/vm" {
			t.Fatalf("error %+v, want ErrOutOfTokens with what is left", err)
		}
		g, err := c.Acquire(ctx, "acme/vm", 5000, client.Wait(0), client.AtLeast(1), client.DryRun())
		if err != nil || g.Tokens < 1 || g.Tokens > 900 {
			t.Errorf("granted %+v, %v; want what there is", g, err)
		}
	})

	t.Run("more than the limit", func(t *testing.T) {
		_, err := c.Acquire(ctx, "acme/vm", 901)
		var e *client.Error
		if !errors.Is(err, client.ErrExceedsLimit) || errors.Is(err, client.ErrOutOfTokens) || !errors.As(err, &e) || e.Limit != 900 || e.Left != -1 ||
			e.RetryAfter != 0 || e.Entity != "acme/vm" || e.Lacking != "" {
			t.Fatalf("error %+v, want ErrExceedsLimit with the limit", err)
		}
		if _, err := c.AcquireLease(ctx, "acme/vm", 901, time.Minute); !errors.Is(err, client.ErrExceedsLimit) {
			t.Errorf("a lease: %v, want ErrExceedsLimit", err)
		}
	})

	t.Run("hierarchies", func(t *testing.T) {
		if err := errors.Join(
			c.CreateEntity(ctx, "org", 60), c.CreateEntity(ctx, "org/a", 900, client.Below("org")), c.CreateEntity(ctx, "org/b", 900),
			c.MoveEntity(ctx, "org/b", "org"),
		); err != nil {
			t.Fatal(err)
		}
		for _, n := range []string{"as", "eu", "us"} {
			sitetest.Eventually(t, "the move at "+n, func() error {
				resp, err := cluster.Entities(n).GetEntity(ctx, &samyav1.GetEntityRequest{Name: "org/b"})
				if err == nil && resp.GetEntity().GetParent() != "org" {
					return fmt.Errorf("%v", resp)
				}
				return err
			})
		}
		both := []client.Part{{Entity: "org/a", Tokens: 4}, {Entity: "org/b", Tokens: 5}}
		for range 2 {
			if g, err := c.AcquireAll(ctx, both, client.RequestID("both")); err != nil || g.RequestID != "both" || g.Site == "" {
				t.Fatalf("granted %+v, %v", g, err)
			}
		}
		sitetest.Eventually(t, "what is out of the parent", func() error {
			if u := cluster.Books("org"); u.GetAcquired() != 9 {
				return fmt.Errorf("%d, want 9", u.GetAcquired())
			}
			return nil
		})
		both[1].Tokens = 50
		_, err := c.AcquireAll(ctx, both, client.Wait(0))
		var e *client.Error
		if !errors.Is(err, client.ErrOutOfTokens) || !errors.As(err, &e) || e.Lacking != "org" || e.Left < 0 {
			t.Errorf("error %+v, want ErrOutOfTokens of org", err)
		}
		_, err = c.Acquire(ctx, "org/a", 55, client.Wait(0))
		if !errors.Is(err, client.ErrOutOfTokens) || !errors.As(err, &e) || e.Lacking != "org" || e.Entity != "org/a" {
			t.Errorf("error %+v, want ErrOutOfTokens of org", err)
		}
		both[1].Tokens = 57
		for range 2 {
			if _, err = c.AcquireAll(ctx, both); !errors.Is(err, client.ErrExceedsLimit) || !errors.As(err, &e) || e.Lacking != "org" || e.Limit != 60 {
				t.Errorf("error %+v, want ErrExceedsLimit of org", err)
			}
		}
		for what, do := range map[error]error{
			client.ErrParentNotFound: c.CreateEntity(ctx, "org/c", 1, client.Below("none")),
			client.ErrInvalid:        c.MoveEntity(ctx, "org", "org/a"),
			client.ErrHasChildren:    c.DeleteEntity(ctx, "org"),
		} {
			if !errors.Is(do, what) {
				t.Errorf("%v, want %v", do, what)
			}
		}
		if s, err := c.Entity(ctx, "org/b", client.Local()); err != nil || s.Parent != "org" || s.Children != 0 {
			t.Errorf("read %+v, %v", s, err)
		}
		if err := c.DeleteEntity(ctx, "org", client.Subtree()); err != nil {
			t.Error(err)
		}
	})

	t.Run("a rate quota", func(t *testing.T) {
		if err := c.CreateEntity(ctx, "llm/day", 90, client.Rate{Per: "day", TimeZone: "Asia/Tokyo"}); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		if g, err := c.Acquire(ctx, "llm/day", 5); err != nil || g.Tokens != 5 {
			t.Errorf("granted %+v, %v", g, err)
		}
		e, err := c.Entity(ctx, "llm/day", client.Local())
		if err != nil || e.Rate.Per != "1d" || e.Rate.Kind != "window" || e.Rate.TimeZone != "Asia/Tokyo" || !*e.Rate.Durable || e.WindowEnds.Before(before) || e.WindowEnds.After(before.Add(25*time.Hour)) {
			t.Errorf("read %+v, %v", e, err)
		}
		if _, err := c.Release(ctx, "llm/day", 5); !errors.Is(err, client.ErrInvalid) {
			t.Errorf("%v, want ErrInvalid", err)
		}
		for what, err := range map[string]error{
			"a period of a week": c.CreateEntity(ctx, "llm/odd", 90, client.Rate{Per: "week"}),
			"hours in a zone":    c.CreateEntity(ctx, "llm/odd", 90, client.Rate{Per: "5h", TimeZone: "Asia/Tokyo"}),
			"keys below seats":   c.CreateEntity(ctx, "llm/odd", 90, client.Rate{Per: "1m", Keys: true}, client.Below("acme/vm")),
		} {
			if !errors.Is(err, client.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", what, err)
			}
		}
		if err := c.CreateEntity(ctx, "llm/day/team", 90, client.Rate{Per: "1m"}, client.Below("llm/day")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Acquire(ctx, "llm/day/team", 7); err != nil {
			t.Error(err)
		}
		if e, err := c.Entity(ctx, "llm/day/team", client.Local()); err != nil || e.Parent != "llm/day" || e.Rate.Per != "1m" {
			t.Errorf("read %+v, %v", e, err)
		}
	})

	t.Run("limits", func(t *testing.T) {
		change, err := c.SetLimit(ctx, "acme/seats", 200, client.WaitApplied(), client.ExpectedVersion(1), client.RequestID("lower"))
		if err != nil || change.Limit != 200 || change.Version != 2 || change.MayExceedBy != 0 || len(change.MissingSites) != 0 {
			t.Fatalf("%+v, %v", change, err)
		}
		for _, n := range []string{"as", "eu", "us"} {
			resp, err := cluster.Entities(n).GetEntity(ctx, &samyav1.GetEntityRequest{Name: "acme/seats"})
			if err != nil || resp.GetEntity().GetLimit() != 200 {
				t.Errorf("%s: %v, %v", n, resp, err)
			}
		}
		if again, err := c.SetLimit(ctx, "acme/seats", 200, client.ExpectedVersion(1), client.RequestID("lower")); err != nil || again.Version != 2 {
			t.Errorf("%+v, %v", again, err)
		}
		if _, err := c.SetLimit(ctx, "acme/seats", 100, client.ExpectedVersion(1)); !errors.Is(err, client.ErrVersionMismatch) {
			t.Errorf("%v, want ErrVersionMismatch", err)
		}
	})

	t.Run("refusals", func(t *testing.T) {
		for what, do := range map[string]struct {
			err  error
			call func() error
		}{
			"no such entity": {client.ErrEntityNotFound, func() error { _, err := c.Acquire(ctx, "none", 1); return err }},
			"no tokens":      {client.ErrInvalid, func() error { _, err := c.Acquire(ctx, "acme/vm", 0); return err }},
			"no UTF-8":       {client.ErrInvalid, func() error { _, err := c.Release(ctx, "\xff", 1); return err }},
			"exists":         {client.ErrEntityExists, func() error { return c.CreateEntity(ctx, "acme/vm", 1) }},
			"share alone":    {client.ErrInvalid, func() error { _, err := c.Acquire(ctx, "acme/vm", 1, client.Share()); return err }},
			"no rate quota": {client.ErrInvalid, func() error {
				_, err := c.AcquireLease(ctx, "acme/vm", 1, time.Minute, client.Share())
				return err
			}},
			"holder alone": {client.ErrInvalid, func() error { _, err := c.Acquire(ctx, "acme/vm", 1, client.Holder("me")); return err }},
			"nothing to resume": {client.ErrInvalid, func() error {
				_, err := c.Acquire(ctx, "acme/vm", 1, client.Resume(errors.New("other")))
				return err
			}},
			"no such lease": {client.ErrLeaseNotFound, func() error { _, err := c.LeaseNamed("eu/none", "acme/vm").Renew(ctx, time.Minute); return err }},
		} {
			if err := do.call(); !errors.Is(err, do.err) {
				t.Errorf("%s: error %v, want %v", what, err, do.err)
			}
		}
	})

	t.Run("shares", func(t *testing.T) {
		if err := c.CreateEntity(ctx, "calls", 300, client.Rate{Per: "1s", Kind: "bucket"}); err != nil {
			t.Fatal(err)
		}
		l, err := c.AcquireLease(ctx, "calls", 10, time.Minute, client.Share())
		if err != nil || !l.Share || l.Tokens != 10 {
			t.Fatalf("lease %+v, %v", l, err)
		}
		if l, err = l.Renew(ctx, 2*time.Minute); err != nil || !l.Share {
			t.Errorf("renewed %+v, %v", l, err)
		}
		if kept, returned, err := l.Commit(ctx, 3); err != nil || kept != 3 || returned != 0 {
			t.Errorf("committed %d, returned %d, %v", kept, returned, err)
		}
	})

	t.Run("leases", func(t *testing.T) {
		l, err := c.AcquireLease(ctx, "acme/vm", 10, time.Minute, client.Holder("job-7"))
		if err != nil || l.Tokens != 10 || l.Entity != "acme/vm" || time.Until(l.Expires) > time.Minute || time.Until(l.Expires) < 30*time.Second {
			t.Fatalf("lease %+v, %v", l, err)
		}
		renewed, err := l.Renew(ctx, 10*time.Minute)
		if err != nil || renewed.Tokens != 10 || time.Until(renewed.Expires) < 5*time.Minute {
			t.Fatalf("renewed %+v, %v", renewed, err)
		}
		if r, err := renewed.Return(ctx, 3); err != nil || r.Tokens != 3 {
			t.Errorf("returned %+v, %v; want 3", r, err)
		}
		kept, back, err := renewed.Commit(ctx, 5)
		if err != nil || kept != 5 || back != 2 {
			t.Errorf("kept %d, returned %d, %v; want 5 and 2", kept, back, err)
		}
		if _, err := l.Renew(ctx, time.Minute); !errors.Is(err, client.ErrLeaseNotFound) {
			t.Errorf("renewing a lease that was committed: %v, want ErrLeaseNotFound", err)
		}
		if _, err := c.Release(ctx, "acme/vm", 5); err != nil {
			t.Error(err)
		}
		whole, err := c.AcquireLease(ctx, "acme/vm", 4, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := c.LeaseNamed(whole.Name, whole.Entity).Return(ctx, 0); err != nil || r.Tokens != 4 {
			t.Errorf("returned %+v, %v; want 4", r, err)
		}
	})

	t.Run("a batch", func(t *testing.T) {
		rs, err := c.Batch(ctx,
			client.AcquireOp("acme/vm", 3), client.AcquireOp("none", 1), client.AcquireOp("acme/vm", 2, client.RequestID("b-2")),
			client.ReleaseOp("acme/vm", 5), client.AcquireOp("acme/vm", 890, client.Wait(0)), client.AcquireOp("acme/vm", 1, client.Holder("x")),
			client.AcquireOp("acme/vm", 5000))
		if err != nil || len(rs) != 7 {
			t.Fatalf("%v, %v", rs, err)
		}
		if rs[0].Tokens != 3 || rs[0].Err != nil || rs[2].RequestID != "b-2" || rs[2].Err != nil || rs[3].Tokens != 5 || rs[3].Err != nil {
			t.Errorf("results %+v", rs)
		}
		for i, want := range map[int]error{1: client.ErrEntityNotFound, 4: client.ErrOutOfTokens, 5: client.ErrInvalid, 6: client.ErrExceedsLimit} {
			if !errors.Is(rs[i].Err, want) {
				t.Errorf("result %d: %v, want %v", i, rs[i].Err, want)
			}
		}
		for _, ops := range [][]client.Op{nil, make([]client.Op, client.MaxBatch+1), {{}}} {
			if _, err := c.Batch(ctx, ops...); !errors.Is(err, client.ErrInvalid) {
				t.Errorf("a batch of %d: %v, want ErrInvalid", len(ops), err)
			}
		}
	})

	t.Run("many callers", func(t *testing.T) {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 20 {
					if _, err := c.Acquire(ctx, "acme/vm", 1); err != nil {
						t.Error(err)
						return
					}
					if _, err := c.Release(ctx, "acme/vm", 1); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	})

	sitetest.Eventually(t, "the books", func() error {
		if u := cluster.Books("acme/vm"); u.GetAcquired() != 0 || u.GetAvailable()+u.GetInTransit() != 900 {
			return errors.New(u.String())
		}
		return nil
	})
}
