package access_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestTenants: a client of a prefix touches nothing of another prefix, whatever it asks
// for and wherever. The books of the other prefix stay as they were.
func TestTenants(t *testing.T) {
	c := start(t, access.Limits{})
	ctx := t.Context()
	admin := samyav1.NewEntityServiceClient(c.dial(c.manager.GRPCAddr(), c.caller("admin")))
	owner := samyav1.NewTokenServiceClient(c.dial(c.manager.GRPCAddr(), c.caller("client")))
	held, err := owner.Acquire(ctx, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 100, Lease: &samyav1.LeaseTerms{Ttl: durationpb.New(time.Hour), Holder: "h"}})
	if err != nil {
		t.Fatal(err)
	}
	lease := held.GetLease().GetName()
	books := func() string {
		var all []string
		for _, e := range []string{"acme/vm", "acme/gpu", "zeta/vm"} {
			resp, err := admin.GetEntity(ctx, &samyav1.GetEntityRequest{Name: e})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%s %d %d %d", e, resp.GetEntity().GetLimit(), resp.GetUsage().GetAvailable(), resp.GetUsage().GetAcquired()))
		}
		return strings.Join(all, ", ")
	}
	before := books()
	denied := func(what string, err error, want apierr.Reason) {
		t.Helper()
		if got := apierr.ReasonOf(apierr.FromGRPC(err)); err == nil || got != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	for name, addr := range map[string]string{"site": c.site.GRPCAddr(), "app manager": c.manager.GRPCAddr()} {
		conn := c.dial(addr, c.caller("other"))
		tokens, entities := samyav1.NewTokenServiceClient(conn), samyav1.NewEntityServiceClient(conn)
		acquire := &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1}}}
		own := &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: "zeta/vm", Tokens: 1}}}
		for what, call := range map[string]func() error{
			"acquire": func() error { _, err := tokens.Acquire(ctx, acquire.GetAcquire()); return err },
			"release": func() error {
				_, err := tokens.Release(ctx, &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 1})
				return err
			},
			"release of a lease": func() error {
				_, err := tokens.Release(ctx, &samyav1.ReleaseRequest{Entity: "acme/vm", Lease: lease})
				return err
			},
			"a batch": func() error {
				_, err := tokens.Batch(ctx, &samyav1.BatchRequest{Operations: []*samyav1.Operation{own, acquire}})
				return err
			},
			"an atomic batch": func() error {
				_, err := tokens.Batch(ctx, &samyav1.BatchRequest{Atomic: true, Operations: []*samyav1.Operation{own, acquire}})
				return err
			},
			"a list of leases": func() error {
				_, err := tokens.ListLeases(ctx, &samyav1.ListLeasesRequest{Entity: "acme/vm"})
				return err
			},
			"read": func() error {
				_, err := entities.GetEntity(ctx, &samyav1.GetEntityRequest{Name: "acme/vm"})
				return err
			},
			"read of nothing": func() error {
				_, err := entities.GetEntity(ctx, &samyav1.GetEntityRequest{Name: "acme/none"})
				return err
			},
			"list": func() error {
				_, err := entities.ListEntities(ctx, &samyav1.ListEntitiesRequest{Prefix: "acme/"})
				return err
			},
			"list of all": func() error { _, err := entities.ListEntities(ctx, &samyav1.ListEntitiesRequest{}); return err },
			"list of names alike": func() error {
				_, err := entities.ListEntities(ctx, &samyav1.ListEntitiesRequest{Prefix: "zeta"})
				return err
			},
			"watch": func() error {
				w, err := entities.WatchEntity(ctx, &samyav1.WatchEntityRequest{Name: "acme/vm"})
				if err != nil {
					return err
				}
				_, err = w.Recv()
				return err
			},
		} {
			denied(name+": "+what, call(), apierr.PermissionDenied)
		}
		// A lease's name does not tell its owner: for others the lease does not exist.
		_, err := tokens.RenewLease(ctx, &samyav1.RenewLeaseRequest{Lease: lease})
		denied(name+": renew", err, apierr.LeaseNotFound)
		_, err = tokens.CommitLease(ctx, &samyav1.CommitLeaseRequest{Lease: lease})
		denied(name+": commit", err, apierr.LeaseNotFound)
		_, err = tokens.Release(ctx, &samyav1.ReleaseRequest{Entity: "zeta/vm", Lease: lease})
		denied(name+": release of the lease as of its own", err, apierr.LeaseNotFound)
		if list, err := tokens.ListLeases(ctx, &samyav1.ListLeasesRequest{Holder: "h"}); err != nil || len(list.GetLeases()) != 0 {
			t.Errorf("%s: leases %v, %v", name, list, err)
		}
		if list, err := entities.ListEntities(ctx, &samyav1.ListEntitiesRequest{Prefix: "zeta/"}); err != nil || len(list.GetEntities()) != 1 {
			t.Errorf("%s: entities %v, %v", name, list, err)
		}
		// A tenant's operator rules over its names alone.
		tenant := samyav1.NewEntityServiceClient(c.dial(addr, c.caller("tenant")))
		for what, call := range map[string]func() error{
			"create": func() error {
				_, err := tenant.CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: "acme2", Limit: 1})
				return err
			},
			"create below another's": func() error {
				_, err := tenant.CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: "acme/x", Limit: 1, Parent: "zeta/vm"})
				return err
			},
			"change": func() error {
				_, err := tenant.UpdateEntity(ctx, &samyav1.UpdateEntityRequest{Name: "zeta/vm", Limit: 1})
				return err
			},
			"delete": func() error {
				_, err := tenant.DeleteEntity(ctx, &samyav1.DeleteEntityRequest{Name: "zeta/vm"})
				return err
			},
			"subtree": func() error {
				_, err := tenant.DeleteEntity(ctx, &samyav1.DeleteEntityRequest{Name: "acme/none", Subtree: true})
				return err
			},
			"move": func() error {
				_, err := tenant.MoveEntity(ctx, &samyav1.MoveEntityRequest{Name: "acme/vm"})
				return err
			},
		} {
			denied(name+": a tenant's "+what, call(), apierr.PermissionDenied)
		}
		sdk := c.sdk(addr, "other")
		if _, err := sdk.Acquire(ctx, "acme/vm", 1); !errors.Is(err, client.ErrPermissionDenied) {
			t.Errorf("%s: by the stream: %v", name, err)
		}
		if _, err := sdk.Release(ctx, "acme/vm", 1); !errors.Is(err, client.ErrPermissionDenied) {
			t.Errorf("%s: by the stream: %v", name, err)
		}
		if g, err := sdk.Acquire(ctx, "zeta/vm", 1); err != nil || g.Tokens != 1 {
			t.Errorf("%s: its own by the stream: %v, %v", name, g, err)
		}
		if _, err := sdk.Release(ctx, "zeta/vm", 1); err != nil {
			t.Errorf("%s: its own by the stream: %v", name, err)
		}
		stranger := c.sdk(addr, "nobody")
		short, cancel := context.WithTimeout(ctx, 20*time.Second)
		if _, err := stranger.Acquire(short, "zeta/vm", 1); !errors.Is(err, client.ErrUnauthenticated) {
			t.Errorf("%s: a stranger by the stream: %v", name, err)
		}
		cancel()
	}
	shows := c.caller("other")
	web := c.web(shows)
	for _, r := range []struct{ method, path, body, want string }{
		{"POST", "/v1/entities/acme/vm:acquire", `{"tokens":1}`, "PERMISSION_DENIED"},
		{"POST", "/v1/entities/acme%2Fvm%3Aacquire", `{"tokens":1}`, "PERMISSION_DENIED"},
		{"POST", "/v1/entities/acme/vm:release", `{"tokens":1}`, "PERMISSION_DENIED"},
		{"POST", "/v1/batch", `{"operations":[{"acquire":{"entity":"zeta/vm","tokens":1}},{"acquire":{"entity":"acme/vm","tokens":1}}]}`, "PERMISSION_DENIED"},
		{"POST", "/v1/batch", `{"atomic":true,"operations":[{"acquire":{"entity":"zeta/vm","tokens":1}},{"acquire":{"entity":"acme/vm","tokens":1}}]}`, "PERMISSION_DENIED"},
		{"POST", "/v1/leases:renew", `{"lease":"` + lease + `"}`, "LEASE_NOT_FOUND"},
		{"POST", "/v1/leases:commit", `{"lease":"` + lease + `"}`, "LEASE_NOT_FOUND"},
		{"POST", "/v1/leases:void", `{"lease":"` + lease + `","entity":"acme/vm"}`, "PERMISSION_DENIED"},
		{"POST", "/v1/leases:void", `{"lease":"` + lease + `","entity":"zeta/vm"}`, "LEASE_NOT_FOUND"},
		{"GET", "/v1/leases?entity=acme/vm", "", "PERMISSION_DENIED"},
		{"GET", "/v1/leases?holder=h", "", `{"leases":[]`},
		{"GET", "/v1/entities/acme/vm", "", "PERMISSION_DENIED"},
		{"GET", "/v1/entities/acme/vm:watch", "", "PERMISSION_DENIED"},
		{"GET", "/v1/entities?prefix=acme/", "", "PERMISSION_DENIED"},
		{"GET", "/v1/entities", "", "PERMISSION_DENIED"},
		{"GET", "/v1/entities?prefix=zeta/", "", "zeta/vm"},
		{"GET", "/metrics", "", "PERMISSION_DENIED"},
	} {
		if _, answer, err := c.request(web, shows, c.manager.HTTPAddr(), r.method, r.path, r.body); err != nil || !strings.Contains(answer, r.want) {
			t.Errorf("%s %s: %v: %s, want %s", r.method, r.path, err, answer, r.want)
		}
	}
	if after := books(); after != before {
		t.Errorf("the books were %s, and are %s", before, after)
	}
	// The lease is its owner's as it was, also by way of the app manager.
	if _, err := owner.RenewLease(ctx, &samyav1.RenewLeaseRequest{Lease: lease}); err != nil {
		t.Errorf("its owner renews: %v", err)
	}
	if r, err := owner.CommitLease(ctx, &samyav1.CommitLeaseRequest{Lease: lease}); err != nil || r.GetTokens() != 100 {
		t.Errorf("its owner commits: %v, %v", r, err)
	}
}
