package appmgr

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/cutid"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestNothingOfARequestIsLost: whatever a caller says over HTTP comes to the site, field
// by field.
func TestNothingOfARequestIsLost(t *testing.T) {
	at := time.Date(2100, 1, 2, 15, 4, 5, 678_000_000, time.UTC)
	const again = `"attempt":2,"tried":["eu","au"],"not_after":"2100-01-02T15:04:05.678Z"`
	until, tried := timestamppb.New(at), []string{"eu", "au"}
	cut := cutid.Cut{Entity: "a/b", Generation: 1, Version: 4, Counted: 9}
	part := func(entity string, tokens int64) *samyav1.Operation {
		// The other fields of an operation are for sites that know no atomic batches.
		return fake.AcquireOf(&samyav1.AcquireRequest{Entity: entity, Tokens: tokens})
	}
	for _, c := range []struct {
		method, target, body string
		want                 proto.Message
	}{
		{
			"POST", "/v1/entities", `{"name":"a/b","limit":7,"parent":"a","request_id":"r","per":"1d","kind":"window","time_zone":"Asia/Tokyo","durable":false}`,
			&samyav1.CreateEntityRequest{
				Name: "a/b", Limit: 7, Parent: "a", RequestId: "r", Per: "1d", Kind: "window", TimeZone: "Asia/Tokyo", Durable: new(bool),
			},
		},
		{
			"POST", "/v1/entities", `{"name":"a/b","limit":7,"parent":"a","request_id":"r","per":"1m","kind":"bucket","durable":false,"keys":true}`,
			&samyav1.CreateEntityRequest{
				Name: "a/b", Limit: 7, Parent: "a", RequestId: "r", Per: "1m", Kind: "bucket", Durable: new(bool), Keys: true,
			},
		},
		{
			"PATCH", "/v1/entities/a/b", `{"limit":7,"expected_version":3,"request_id":"r","wait_applied":true}`,
			&samyav1.UpdateEntityRequest{Name: "a/b", Limit: 7, ExpectedVersion: 3, RequestId: "r", WaitApplied: true},
		},
		{
			"POST", "/v1/entities/a/b:move", `{"parent":"c","expected_generation":4,"request_id":"r"}`,
			&samyav1.MoveEntityRequest{Name: "a/b", Parent: "c", ExpectedGeneration: 4, RequestId: "r"},
		},
		{"POST", "/v1/entities/a/b:reset", "{}", &samyav1.ResetEntityRequest{Name: "a/b"}},
		{"GET", "/v1/entities/a/b:cut", "", &samyav1.CutEntityRequest{Name: "a/b"}},
		{
			"POST", "/v1/entities/a/b:reconcile", `{"in_use":7,"cut":"` + cut.String() + `","request_id":"r"}`,
			&samyav1.ReconcileEntityRequest{Name: "a/b", InUse: 7, Cut: cut.String(), RequestId: "r"},
		},
		{
			"DELETE", "/v1/entities/a/b?expected_generation=4&request_id=r&subtree=true", "",
			&samyav1.DeleteEntityRequest{Name: "a/b", ExpectedGeneration: 4, RequestId: "r", Subtree: true},
		},
		{
			"GET", "/v1/entities?prefix=a&page_size=5&page_token=t&contains=B&parent=p", "",
			&samyav1.ListEntitiesRequest{Prefix: "a", PageSize: 5, PageToken: "t", Contains: "B", Parent: "p"},
		},
		{
			"GET", "/v1/entities?prefix=a&page_size=5&page_token=t&contains=B&top=true", "",
			&samyav1.ListEntitiesRequest{Prefix: "a", PageSize: 5, PageToken: "t", Contains: "B", Top: true},
		},
		{
			"PUT", "/v1/mode", `{"protocol":"star","expected_version":3,"request_id":"r"}`,
			&samyav1.SetModeRequest{Protocol: "star", ExpectedVersion: 3, RequestId: "r"},
		},
		{"POST", "/v1/members", `{"name":"west","request_id":"r"}`, &samyav1.AddMemberRequest{Name: "west", RequestId: "r"}},
		{
			"POST", "/v1/members/eu:drain", `{"heir":"us","request_id":"r"}`,
			&samyav1.DrainMemberRequest{Name: "eu", Heir: "us", RequestId: "r"},
		},
		{
			"POST", "/v1/members/eu:drain", `{"cancel":true,"request_id":"r"}`,
			&samyav1.DrainMemberRequest{Name: "eu", Cancel: true, RequestId: "r"},
		},
		{
			"DELETE", "/v1/members/eu?lost=true&request_id=r", "",
			&samyav1.RemoveMemberRequest{Name: "eu", Lost: true, RequestId: "r"},
		},
		{
			"POST", "/v1/members:recover", `{"survivors":["us"],"lost":["as","eu"],"machines_destroyed":true,"check":true}`,
			&samyav1.RecoverClusterRequest{Survivors: []string{"us"}, Lost: []string{"as", "eu"}, MachinesDestroyed: true, Check: true},
		},
		{"POST", "/v1/members/eu:rescue", `{"request_id":"r"}`, &samyav1.RescueMemberRequest{Name: "eu", RequestId: "r"}},
		{
			"POST", "/v1/entities/a/b:rescue",
			`{"site":"eu","generation":4,"net":-3,"held":7,"leases":[{"tokens":2,"until_ms":5},{"tokens":1,"until_ms":9}],"request_id":"r"}`,
			&samyav1.RescueEntityRequest{
				Name: "a/b", Site: "eu", Generation: 4, Net: -3, Held: 7, RequestId: "r",
				Leases: []*samyav1.HeldLeases{{Tokens: 2, UntilMs: 5}, {Tokens: 1, UntilMs: 9}},
			},
		},
		{"GET", "/v1/members?site=us", "", &samyav1.ListMembersRequest{Site: "us"}},
		{"PUT", "/v1/version", `{"version":3,"request_id":"r"}`, &samyav1.RaiseVersionRequest{Version: 3, RequestId: "r"}},
		{"PUT", "/v1/forecast", `{"model":"none"}`, &samyav1.SetForecastRequest{Model: "none"}},
		{
			"GET", "/v1/leases?holder=h&entity=a/b&page_size=5&page_token=us:2", "",
			&samyav1.ListLeasesRequest{Holder: "h", Entity: "a/b", PageSize: 5, PageToken: "2"},
		},
		{
			"POST", "/v1/leases:renew", `{"lease":"us/x","ttl":"30s"}`,
			&samyav1.RenewLeaseRequest{Lease: "us/x", Ttl: durationpb.New(30 * time.Second)},
		},
		{
			"POST", "/v1/leases:commit", `{"lease":"us/x","tokens":2,"request_id":"r"}`,
			&samyav1.CommitLeaseRequest{Lease: "us/x", Tokens: 2, RequestId: "r"},
		},
		{
			"POST", "/v1/leases:void", `{"lease":"us/x","entity":"a/b","request_id":"r","site":"us",` + again + `}`,
			&samyav1.ReleaseRequest{Entity: "a/b", Lease: "us/x", RequestId: "r", Site: "us", Attempt: 2, Tried: tried, NotAfter: until},
		},
		{
			"POST", "/v1/entities/a/b:release", `{"tokens":3,"lease":"us/x","request_id":"r","site":"us",` + again + `}`,
			&samyav1.ReleaseRequest{Entity: "a/b", Tokens: 3, Lease: "us/x", RequestId: "r", Site: "us", Attempt: 2, Tried: tried, NotAfter: until},
		},
		{
			"POST", "/v1/entities/a/b:acquire",
			`{"tokens":3,"min_tokens":2,"once":true,"wait":"4s","request_id":"r","site":"us","lease":{"ttl":"30s","holder":"h","share":true},` + again + `}`,
			&samyav1.AcquireRequest{
				Entity: "a/b", Tokens: 3, MinTokens: 2, Once: true, Wait: durationpb.New(4 * time.Second), RequestId: "r", Site: "us",
				Lease: &samyav1.LeaseTerms{Ttl: durationpb.New(30 * time.Second), Holder: "h", Share: true}, Attempt: 2, Tried: tried, NotAfter: until,
			},
		},
		{
			"POST", "/v1/batch", `{"operations":[{"acquire":{"entity":"a","tokens":1}},{"acquire":{"entity":"b","tokens":2}}],` +
				`"atomic":true,"once":true,"request_id":"r","wait":"4s","site":"us",` + again + `}`,
			&samyav1.BatchRequest{
				Operations: []*samyav1.Operation{part("a", 1), part("b", 2)}, Atomic: true, Once: true, RequestId: "r",
				Wait: durationpb.New(4 * time.Second), Site: "us", Attempt: 2, Tried: tried, NotAfter: until,
			},
		},
	} {
		t.Run(fmt.Sprintf("%T", c.want), func(t *testing.T) {
			inBubble(t, []string{"us"}, nil, func(r *rig) {
				us := r.sites["us"]
				us.Kill()
				var got []proto.Message
				kind := c.want.ProtoReflect().Descriptor()
				us.Arrived = func(req any) {
					if m, ok := req.(proto.Message); ok && m.ProtoReflect().Descriptor() == kind {
						got = append(got, m)
					}
				}
				us.OnAcquire = func(_ context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
					us.Arrived(in)
					return &samyav1.AcquireResponse{Tokens: in.GetTokens(), Site: "us"}, nil
				}
				us.OnRelease = func(_ context.Context, in *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
					us.Arrived(in)
					return &samyav1.ReleaseResponse{Tokens: in.GetTokens(), Site: "us"}, nil
				}
				us.Up()
				fake.Pass(10 * time.Second)
				if rec := r.ask(r.t, c.method, c.target, c.body); rec.Code/100 != 2 {
					r.t.Fatalf("%d %s", rec.Code, rec.Body)
				}
				if len(got) != 1 {
					r.t.Fatalf("%d requests came to the site: %v", len(got), got)
				}
				if batch, ok := got[0].(*samyav1.BatchRequest); ok {
					for i, op := range batch.GetOperations() {
						batch.Operations[i] = part(op.GetAcquire().GetEntity(), op.GetAcquire().GetTokens())
					}
				}
				if d := cmp.Diff(c.want, got[0], protocmp.Transform()); d != "" {
					r.t.Errorf("(-want +got):\n%s", d)
				}
				// The request of the test sets every field, except for the void of a
				// whole lease. The end of a drain has no heir, a template no time zone, and a list
				// of entities at the top no parent.
				list, _ := c.want.(*samyav1.ListEntitiesRequest)
				drain, _ := c.want.(*samyav1.DrainMemberRequest)
				create, _ := c.want.(*samyav1.CreateEntityRequest)
				fields := kind.Fields()
				for i := range fields.Len() {
					f := fields.Get(i)
					if fromCallers(f) && !c.want.ProtoReflect().Has(f) && c.target != "/v1/leases:void" &&
						(f.Name() != "keys" || create.GetTimeZone() == "") && (f.Name() != "time_zone" || !create.GetKeys()) &&
						(f.Name() != "top" || list.GetParent() == "") && (f.Name() != "parent" || !list.GetTop()) &&
						(f.Name() != "heir" || !drain.GetCancel()) && (f.Name() != "cancel" || drain.GetHeir() == "") {
						r.t.Errorf("the test gives no %s", f.FullName())
					}
				}
			})
		})
	}
}

// fromCallers reports whether callers set a field: only an app manager numbers its tries,
// only clients of sites have sessions, and a dry run changes nothing.
func fromCallers(f protoreflect.FieldDescriptor) bool {
	return f.Name() != "relay" && f.Name() != "acknowledged" && f.Name() != "dry_run"
}
