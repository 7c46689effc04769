package site_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// caller is shorthand for requests at site us.
type caller struct {
	*sitetest.Cluster
	ctx context.Context
	// way is how acquires and releases are made; nil: by calls of their own.
	way way
}

func (c caller) acquire(r *samyav1.AcquireRequest) error {
	if c.way != nil {
		return c.way(c, &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: r}})
	}
	_, err := c.Tokens("us").Acquire(c.ctx, r)
	return err
}

func (c caller) release(r *samyav1.ReleaseRequest) error {
	if c.way != nil {
		return c.way(c, &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: r}})
	}
	_, err := c.Tokens("us").Release(c.ctx, r)
	return err
}

func (c caller) create(r *samyav1.CreateEntityRequest) error {
	_, err := c.Entities("us").CreateEntity(c.ctx, r)
	return err
}

func (c caller) update(r *samyav1.UpdateEntityRequest) error {
	_, err := c.Entities("us").UpdateEntity(c.ctx, r)
	return err
}

func (c caller) remove(r *samyav1.DeleteEntityRequest) error {
	_, err := c.Entities("us").DeleteEntity(c.ctx, r)
	return err
}

func (c caller) list(r *samyav1.ListEntitiesRequest) error {
	_, err := c.Entities("us").ListEntities(c.ctx, r)
	return err
}

func (c caller) get(entity string) error {
	_, err := c.Entities("us").GetEntity(c.ctx, &samyav1.GetEntityRequest{Name: entity})
	return err
}

// The problems of fields.
const (
	tooFewTokens  = ", at least 1"
	badName       = "empty segment: begins or ends with '/', or has '//'"
	emptyName     = "empty, at least 1 character"
	badIDCharater = "' ' at position 2, allowed are printable ASCII without space"
	longID        = "129 bytes, at most 128"
	noToken       = "is none that a list returned"
)

func invalid(pairs ...string) *apierr.Error {
	e := &apierr.Error{Reason: apierr.InvalidField}
	for pair := range slices.Chunk(pairs, 2) {
		e.Violations = append(e.Violations, apierr.Violation{Field: pair[0], Problem: pair[1]})
	}
	return e
}

type answerCase struct {
	title string
	call  func(caller) error
	code  codes.Code
	want  *apierr.Error
}

func acquireCase(title string, r *samyav1.AcquireRequest, want *apierr.Error) answerCase {
	return answerCase{title, func(c caller) error { return c.acquire(r) }, codes.InvalidArgument, want}
}

// badFields are requests that no site takes, whatever its state.
func badFields() []answerCase {
	const vm = "acme/vm"
	long := strings.Repeat("x", 129)
	list := func(title string, r *samyav1.ListEntitiesRequest, want *apierr.Error) answerCase {
		return answerCase{title, func(c caller) error { return c.list(r) }, codes.InvalidArgument, want}
	}
	return []answerCase{
		acquireCase("acquire, no entity", &samyav1.AcquireRequest{Tokens: 1}, invalid("entity", emptyName)),
		acquireCase("acquire, bad entity", &samyav1.AcquireRequest{Entity: "acme//vm", Tokens: 1}, invalid("entity", badName)),
		acquireCase("acquire, long entity", &samyav1.AcquireRequest{Entity: strings.Repeat("x", 257), Tokens: 1},
			invalid("entity", "257 bytes, at most 256")),
		acquireCase("acquire, entity of other letters", &samyav1.AcquireRequest{Entity: "acme/é", Tokens: 1},
			invalid("entity", "byte 0xc3 at position 6, allowed are letters, digits, '.', '_', '-' and '/'")),
		acquireCase("acquire 0", &samyav1.AcquireRequest{Entity: vm}, invalid("tokens", "0"+tooFewTokens)),
		acquireCase("acquire -1", &samyav1.AcquireRequest{Entity: vm, Tokens: -1}, invalid("tokens", "-1"+tooFewTokens)),
		acquireCase("acquire 2^53", &samyav1.AcquireRequest{Entity: vm, Tokens: 1 << 53},
			invalid("tokens", "9007199254740992, at most 9007199254740991")),
		acquireCase("acquire the most that fits the field", &samyav1.AcquireRequest{Entity: vm, Tokens: math.MaxInt64},
			invalid("tokens", "9223372036854775807, at most 9007199254740991")),
		acquireCase("acquire, space in id", &samyav1.AcquireRequest{Entity: vm, Tokens: 1, RequestId: "a b"},
			invalid("request_id", badIDCharater)),
		acquireCase("acquire, long id", &samyav1.AcquireRequest{Entity: vm, Tokens: 1, RequestId: long},
			invalid("request_id", longID)),
		acquireCase("acquire, negative wait", &samyav1.AcquireRequest{Entity: vm, Tokens: 1, Wait: durationpb.New(-time.Second)},
			invalid("wait", "-1s, at least 0s")),
		acquireCase("acquire, long wait", &samyav1.AcquireRequest{Entity: vm, Tokens: 1, Wait: durationpb.New(61 * time.Second)},
			invalid("wait", "1m1s, at most 60s")),
		acquireCase("acquire, wait of two signs", &samyav1.AcquireRequest{Entity: vm, Tokens: 1, Wait: &durationpb.Duration{Seconds: 1, Nanos: -1}},
			invalid("wait", "not a valid duration, at least 0s and at most 60s")),
		acquireCase("acquire, wait beyond all", &samyav1.AcquireRequest{Entity: vm, Tokens: 1, Wait: &durationpb.Duration{Seconds: math.MaxInt64}},
			invalid("wait", "not a valid duration, at least 0s and at most 60s")),
		acquireCase("acquire at another site", &samyav1.AcquireRequest{Entity: vm, Tokens: 1, Site: "eu"},
			invalid("site", "this is site us")),
		acquireCase("acquire, everything wrong",
			&samyav1.AcquireRequest{Entity: "/", Tokens: -5, RequestId: "a b", Site: "mars", Wait: durationpb.New(-1)},
			invalid("entity", badName, "tokens", "-5"+tooFewTokens, "request_id", badIDCharater,
				"wait", "-1ns, at least 0s", "site", "this is site us")),
		{"release, everything wrong", func(c caller) error {
			return c.release(&samyav1.ReleaseRequest{Entity: "a/", RequestId: long, Site: "eu"})
		}, codes.InvalidArgument, invalid("entity", badName, "tokens", "0"+tooFewTokens, "request_id", longID, "site", "this is site us")},
		{"create, everything wrong", func(c caller) error {
			return c.create(&samyav1.CreateEntityRequest{Name: "..", Limit: -1, RequestId: "a b"})
		}, codes.InvalidArgument, invalid("name", `segment ".." is not allowed`, "limit", "-1, at least 0", "request_id", badIDCharater)},
		{"create, limit too large", func(c caller) error {
			return c.create(&samyav1.CreateEntityRequest{Name: "a", Limit: 1 << 53})
		}, codes.InvalidArgument, invalid("limit", "9007199254740992, at most 9007199254740991")},
		{"update, everything wrong", func(c caller) error {
			return c.update(&samyav1.UpdateEntityRequest{Limit: -1, RequestId: long})
		}, codes.InvalidArgument, invalid("name", emptyName, "limit", "-1, at least 0", "request_id", longID)},
		{"delete, everything wrong", func(c caller) error {
			return c.remove(&samyav1.DeleteEntityRequest{Name: "a//b", RequestId: "a b"})
		}, codes.InvalidArgument, invalid("name", badName, "request_id", badIDCharater)},
		{"get, no name", func(c caller) error { return c.get("") }, codes.InvalidArgument, invalid("name", emptyName)},
		list("list, negative page", &samyav1.ListEntitiesRequest{PageSize: -1}, invalid("page_size", "-1, at least 0")),
		list("list, large page", &samyav1.ListEntitiesRequest{PageSize: 1001}, invalid("page_size", "1001, at most 1000")),
		list("list, token of no letters", &samyav1.ListEntitiesRequest{PageToken: "!!"}, invalid("page_token", noToken)),
		list("list, token of no name", &samyav1.ListEntitiesRequest{PageToken: "AAAA"}, invalid("page_token", noToken)),
		list("list, long token", &samyav1.ListEntitiesRequest{PageToken: strings.Repeat("YWFh", 1000)}, invalid("page_token", noToken)),
		list("list, everything wrong", &samyav1.ListEntitiesRequest{Prefix: "//", PageSize: math.MinInt32, PageToken: "="},
			invalid("prefix", badName, "page_size", "-2147483648, at least 0", "page_token", noToken)),
	}
}

// refusals are well-formed requests that the state of the cluster refuses: acme/vm has 9
// tokens, 3 at each of three sites, its version is 1, and the request id "used" acquired
// 1 token of acme/used.
func refusals(generation uint64) []answerCase {
	const nowhere = "acme/nowhere"
	unknown := &apierr.Error{Reason: apierr.EntityNotFound, Entity: nowhere}
	reused := &apierr.Error{Reason: apierr.RequestIDReused, RequestID: "used", Site: "us"}
	mismatch := &apierr.Error{Reason: apierr.VersionMismatch, Entity: "acme/vm"}
	return []answerCase{
		{"acquire of an unknown entity", func(c caller) error {
			return c.acquire(&samyav1.AcquireRequest{Entity: nowhere, Tokens: 1})
		}, codes.NotFound, unknown},
		{"release of an unknown entity", func(c caller) error {
			return c.release(&samyav1.ReleaseRequest{Entity: nowhere, Tokens: 1})
		}, codes.NotFound, unknown},
		{"get of an unknown entity", func(c caller) error { return c.get(nowhere) }, codes.NotFound, unknown},
		{"update of an unknown entity", func(c caller) error {
			return c.update(&samyav1.UpdateEntityRequest{Name: nowhere, Limit: 1})
		}, codes.NotFound, unknown},
		{"delete of an unknown entity", func(c caller) error {
			return c.remove(&samyav1.DeleteEntityRequest{Name: nowhere})
		}, codes.NotFound, unknown},
		{"create of an entity that exists", func(c caller) error {
			return c.create(&samyav1.CreateEntityRequest{Name: "acme/vm", Limit: 9})
		}, codes.AlreadyExists, &apierr.Error{Reason: apierr.EntityExists, Entity: "acme/vm"}},
		{"id used with other tokens", func(c caller) error {
			return c.acquire(&samyav1.AcquireRequest{Entity: "acme/used", Tokens: 2, RequestId: "used"})
		}, codes.AlreadyExists, reused},
		{"id used with another entity", func(c caller) error {
			return c.acquire(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: "used"})
		}, codes.AlreadyExists, reused},
		{"id used with an acquire", func(c caller) error {
			return c.release(&samyav1.ReleaseRequest{Entity: "acme/used", Tokens: 1, RequestId: "used"})
		}, codes.AlreadyExists, reused},
		{"id of a creation used with another limit", func(c caller) error {
			return c.create(&samyav1.CreateEntityRequest{Name: "acme/vm", Limit: 10, RequestId: "create-acme/vm"})
		}, codes.AlreadyExists, &apierr.Error{Reason: apierr.RequestIDReused, RequestID: "create-acme/vm", Site: "us"}},
		{"more than there is here, at once", func(c caller) error {
			return c.acquire(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 4, RequestId: "at-once", Wait: durationpb.New(0)})
		}, codes.ResourceExhausted, &apierr.Error{
			Reason: apierr.OutOfTokens, Entity: "acme/vm", RequestID: "at-once", Site: "us", Left: new(int64(3)), RetryAfter: someTime,
		}},
		{"more than there is anywhere", func(c caller) error {
			return c.acquire(&samyav1.AcquireRequest{Entity: "acme/used", Tokens: 3, RequestId: "anywhere"})
		}, codes.ResourceExhausted, &apierr.Error{
			Reason: apierr.OutOfTokens, Entity: "acme/used", RequestID: "anywhere", Site: "us", Left: new(int64(2)), RetryAfter: someTime,
		}},
		{"more than the limit", func(c caller) error {
			return c.acquire(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 10, RequestId: "limit"})
		}, codes.FailedPrecondition, &apierr.Error{
			Reason: apierr.ExceedsLimit, Entity: "acme/vm", RequestID: "limit", Site: "us", Limit: new(int64(9)),
		}},
		{"more than the limit, again, as it waits", func(c caller) error {
			return c.acquire(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 10, RequestId: "limit", Wait: durationpb.New(time.Minute)})
		}, codes.FailedPrecondition, &apierr.Error{
			Reason: apierr.ExceedsLimit, Entity: "acme/vm", RequestID: "limit", Site: "us", Limit: new(int64(9)),
		}},
		{"more than the limit at the least, as a lease", func(c caller) error {
			return c.acquire(&samyav1.AcquireRequest{
				Entity: "acme/vm", Tokens: 1000, MinTokens: 10, RequestId: "lease", Lease: &samyav1.LeaseTerms{Ttl: durationpb.New(time.Minute)},
			})
		}, codes.FailedPrecondition, &apierr.Error{
			Reason: apierr.ExceedsLimit, Entity: "acme/vm", RequestID: "lease", Site: "us", Limit: new(int64(9)),
		}},
		{"update of another version", func(c caller) error {
			return c.update(&samyav1.UpdateEntityRequest{Name: "acme/vm", Limit: 1, ExpectedVersion: 7})
		}, codes.FailedPrecondition, mismatch},
		{"delete of another generation", func(c caller) error {
			return c.remove(&samyav1.DeleteEntityRequest{Name: "acme/vm", ExpectedGeneration: generation + 1})
		}, codes.FailedPrecondition, mismatch},
		{"more than can be counted", func(c caller) error {
			for range 9 {
				if err := c.release(&samyav1.ReleaseRequest{Entity: "acme/much", Tokens: 1<<53 - 1}); err != nil {
					return err
				}
			}
			return nil
		}, codes.OutOfRange, &apierr.Error{Reason: apierr.OutOfRange, Entity: "acme/much"}},
		{"message too large", func(c caller) error {
			return c.get(strings.Repeat("x", site.MaxRequestBytes))
		}, codes.ResourceExhausted, &apierr.Error{Reason: apierr.BodyTooLarge}},
		{"unknown method", func(c caller) error {
			return c.Conn("us").Invoke(c.ctx, "/samya.v1.TokenService/Steal", &samyav1.AcquireRequest{}, &samyav1.AcquireResponse{})
		}, codes.Unimplemented, &apierr.Error{Reason: apierr.RouteNotFound}},
	}
}

// someTime stands for any advice on when to try again.
const someTime = time.Nanosecond

// TestAnswers holds every refusal of a site with its code, reason and details, for
// operations of calls, batches and streams.
func TestAnswers(t *testing.T) {
	for title, way := range map[string]way{"calls": nil, "batches": inBatch, "streams": onStream} {
		t.Run(title, func(t *testing.T) { testAnswers(t, way) })
	}
}

func testAnswers(t *testing.T, way way) {
	t.Helper()
	c := sitetest.Start(t, []string{"as", "eu", "us"}, nil)
	us := caller{c, t.Context(), way}
	c.Create("acme/vm", 9)
	c.Create("acme/used", 3)
	c.Create("acme/much", 0)
	got, err := c.Entities("us").GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: "acme/vm"})
	if err != nil {
		t.Fatal(err)
	}
	if err := us.acquire(&samyav1.AcquireRequest{Entity: "acme/used", Tokens: 1, RequestId: "used"}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range slices.Concat(badFields(), refusals(got.GetEntity().GetGeneration())) {
		t.Run(tc.title, func(t *testing.T) {
			err := tc.call(us)
			if status.Code(err) != tc.code {
				t.Errorf("code %s, want %s", status.Code(err), tc.code)
			}
			e := apierr.FromGRPC(err)
			if e == nil {
				t.Fatal("done")
			}
			if e.RetryAfter > 0 && tc.want.RetryAfter > 0 {
				e.RetryAfter = someTime
			}
			if d := cmp.Diff(tc.want, e, cmpopts.IgnoreFields(apierr.Error{}, "Err", "Message")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if e.Message == "" || len(e.Message) > 1024 {
				t.Errorf("message %q", e.Message)
			}
		})
	}
	sitetest.Eventually(t, "books", func() error {
		u := c.Books("acme/vm")
		if u.GetAvailable() != 9 || u.GetAcquired() != 0 {
			return errors.New(u.String())
		}
		return nil
	})
}

// TestExpiredDeadline: a request past its deadline is refused before it is begun, so its
// id is free for another body.
func TestExpiredDeadline(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	c.Create("acme/vm", 9)
	tokens, entities := c.Site("us").TokenService(), c.Site("us").EntityService()
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	_, acquireErr := tokens.Acquire(expired, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: "a"})
	_, releaseErr := tokens.Release(expired, &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 1, RequestId: "r"})
	_, createErr := entities.CreateEntity(expired, &samyav1.CreateEntityRequest{Name: "acme/seats", Limit: 1, RequestId: "c"})
	_, updateErr := entities.UpdateEntity(expired, &samyav1.UpdateEntityRequest{Name: "acme/vm", Limit: 1, RequestId: "u"})
	_, deleteErr := entities.DeleteEntity(expired, &samyav1.DeleteEntityRequest{Name: "acme/vm", RequestId: "d"})
	for method, err := range map[string]error{
		"acquire": acquireErr, "release": releaseErr, "create": createErr, "update": updateErr, "delete": deleteErr,
	} {
		if !errors.Is(err, apierr.DeadlineExceeded) || status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("%s: %v", method, err)
		}
	}
	us := caller{Cluster: c, ctx: t.Context()}
	if err := us.acquire(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 2, RequestId: "a"}); err != nil {
		t.Errorf("the id of a request that was not begun: %v", err)
	}
	if err := us.create(&samyav1.CreateEntityRequest{Name: "acme/seats", Limit: 2, RequestId: "c"}); err != nil {
		t.Errorf("the id of a creation that was not begun: %v", err)
	}
	if u := c.Books("acme/vm"); u.GetAcquired() != 2 || u.GetAvailable() != 7 {
		t.Errorf("books: %v", u)
	}
}

// TestRepeatedChanges: a change repeated with its id gets the first answer, at another
// site too, whatever has become of the entity since. Only the list of sites known to have
// applied the change differs.
func TestRepeatedChanges(t *testing.T) {
	c := sitetest.Start(t, []string{"as", "eu", "us"}, nil)
	// A site that does not serve yet refuses for that reason.
	c.Create("acme/first", 1)
	ctx := t.Context()
	create := &samyav1.CreateEntityRequest{Name: "acme/vm", Limit: 9, RequestId: "c"}
	first, err := c.Entities("us").CreateEntity(ctx, create)
	if err != nil {
		t.Fatal(err)
	}
	c.Create("acme/later", 1) // every site has decided up to here
	for _, at := range []string{"us", "eu", "as"} {
		again, err := c.Entities(at).CreateEntity(ctx, create)
		if err != nil || again.String() != first.String() {
			t.Errorf("create again at %s: %v, %v; first %v", at, again, err, first)
		}
	}
	update := &samyav1.UpdateEntityRequest{Name: "acme/vm", Limit: 12, ExpectedVersion: 1, RequestId: "u"}
	changed, err := c.Entities("eu").UpdateEntity(ctx, update)
	if err != nil || changed.GetEntity().GetVersion() != 2 || changed.GetEntity().GetLimit() != 12 {
		t.Fatalf("update: %v, %v", changed, err)
	}
	for _, at := range []string{"us", "eu", "as"} {
		again, err := c.Entities(at).UpdateEntity(ctx, update)
		if err != nil || again.GetEntity().String() != changed.GetEntity().String() {
			t.Errorf("update again at %s: %v, %v; first %v", at, again, err, changed)
		}
	}
	remove := &samyav1.DeleteEntityRequest{Name: "acme/vm", RequestId: "d"}
	for _, at := range []string{"as", "us"} {
		if _, err := c.Entities(at).DeleteEntity(ctx, remove); err != nil {
			t.Errorf("delete at %s: %v", at, err)
		}
	}
	if again, err := c.Entities("us").CreateEntity(ctx, create); err != nil || again.String() != first.String() {
		t.Errorf("create again after the deletion: %v, %v", again, err)
	}
	if err := (caller{Cluster: c, ctx: ctx}).get("acme/vm"); !errors.Is(apierr.FromGRPC(err), apierr.EntityNotFound) {
		t.Errorf("a repeated creation brought a deleted entity back: %v", err)
	}
}

// TestFullTableRefuses: a site with a full table of requests takes no further request,
// and still answers repeats.
func TestFullTableRefuses(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, func(cfg *site.Config) { cfg.MaxRequests = 2 })
	c.Create("acme/vm", 9)
	us := caller{Cluster: c, ctx: t.Context()}
	for _, id := range []string{"1", "2", "1"} {
		if err := us.acquire(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: id}); err != nil {
			t.Errorf("id %s: %v", id, err)
		}
	}
	err := us.acquire(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: "3"})
	e := apierr.FromGRPC(err)
	if status.Code(err) != codes.Unavailable || !errors.Is(e, apierr.Overloaded) || e.RetryAfter <= 0 || e.Site != "us" {
		t.Errorf("got %v, retry after %v", err, e.RetryAfter)
	}
	if u := c.Books("acme/vm"); u.GetAcquired() != 2 {
		t.Errorf("books: %v", u)
	}
}

// TestNoQuorum: a site cut off from both others tells in time that nothing was changed,
// and goes on granting its tokens. The answer of a busy machine may come too late.
func TestNoQuorum(t *testing.T) {
	c := sitetest.Start(t, []string{"as", "eu", "us"}, nil)
	c.Create("acme/vm", 9)
	c.Partition([]string{"us"}, []string{"as", "eu"})
	var err error
	var id string
	for try := range 5 {
		id = fmt.Sprintf("c%d", try)
		if err = createWithin(t, c, id, 2*time.Second); status.Code(err) != codes.DeadlineExceeded {
			break
		}
	}
	e := apierr.FromGRPC(err)
	if status.Code(err) != codes.Unavailable || !errors.Is(e, apierr.NoQuorum) || e.RequestID != id || e.Site != "us" {
		t.Errorf("got %v", err)
	}
	us := caller{Cluster: c, ctx: t.Context()}
	if err := us.acquire(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3}); err != nil {
		t.Errorf("acquire of what the site holds: %v", err)
	}
}

// createWithin creates an entity at the site us, and waits for so long.
func createWithin(t *testing.T, c *sitetest.Cluster, id string, wait time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	us := caller{Cluster: c, ctx: ctx}
	return us.create(&samyav1.CreateEntityRequest{Name: "acme/seats", Limit: 1, RequestId: id})
}
