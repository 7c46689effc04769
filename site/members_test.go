package site_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/wan"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/sitetest"
)

// members reads the members at a site.
func members(t *testing.T, c *sitetest.Cluster, at string) (*samyav1.ListMembersResponse, error) {
	t.Helper()
	return c.Admin(at).ListMembers(t.Context(), &samyav1.ListMembersRequest{})
}

// addMember gives a site a seat, and repeats while the outcome is not known.
func addMember(t *testing.T, c *sitetest.Cluster, at, name string) {
	t.Helper()
	sitetest.Eventually(t, "a seat for "+name, func() error {
		_, err := c.Admin(at).AddMember(t.Context(), &samyav1.AddMemberRequest{Name: name, RequestId: "add-" + name})
		return err
	})
}

// settled waits until a site tells that n sites are members, and that nothing waits.
func settled(t *testing.T, c *sitetest.Cluster, at string, n int) {
	t.Helper()
	sitetest.Eventually(t, fmt.Sprintf("%d members as %s knows", n, at), func() error {
		resp, err := members(t, c, at)
		if err != nil {
			return err
		}
		for _, m := range resp.GetMembers() {
			if m.GetState() != samyav1.MemberState_MEMBER_STATE_MEMBER || m.GetWaitsFor() != "" || !m.GetKnows() {
				return fmt.Errorf("%v", m)
			}
		}
		if len(resp.GetMembers()) != n || resp.GetBehind() != 0 || resp.GetWaitsFor() != "" {
			return fmt.Errorf("%v", resp)
		}
		return nil
	})
}

// TestMembersTell: a site says what a joining site waits for, from its seat on until it is
// a member, and keeps saying so to whoever repeats the change.
func TestMembersTell(t *testing.T) {
	c := sitetest.Start(t, []string{"as", "eu", "us"}, nil)
	c.Create("vm", 90)
	resp, err := members(t, c, "eu")
	if err != nil || resp.GetVersion() != 1 || resp.GetAnsweredBy() != "site/eu" || len(resp.GetMembers()) != 3 || resp.GetWaitsFor() != "" {
		t.Fatalf("%v, %v", resp, err)
	}
	for _, bad := range []*samyav1.AddMemberRequest{{Name: "US"}, {}, {Name: "west", RequestId: strings.Repeat("x", 200)}} {
		if _, err := c.Admin("us").AddMember(t.Context(), bad); err == nil || !errors.Is(apierr.FromGRPC(err), apierr.InvalidField) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	added, err := c.Admin("us").AddMember(t.Context(), &samyav1.AddMemberRequest{Name: "west"})
	if m := added.GetMember(); err != nil || m.GetState() != samyav1.MemberState_MEMBER_STATE_JOINING || m.GetKnows() ||
		m.GetWaitsFor() != "the site to start, with an address to join" || m.GetHealth() != samyav1.SiteHealth_SITE_HEALTH_UNSPECIFIED {
		t.Fatalf("%v, %v", added, err)
	}
	c.Join("west")
	c.Serves("west")
	for _, at := range []string{"as", "eu", "us", "west"} {
		settled(t, c, at, 4)
	}
	again, err := c.Admin("eu").AddMember(t.Context(), &samyav1.AddMemberRequest{Name: "west"})
	if m := again.GetMember(); err != nil || m.GetState() != samyav1.MemberState_MEMBER_STATE_MEMBER || m.GetAddress() != c.Site("west").GRPCAddr() || again.GetVersion() != 2 {
		t.Errorf("%v, %v", again, err)
	}
	_, _, page := fetch(t, "GET", "http://"+c.Site("west").HTTPAddr()+"/metrics")
	for _, want := range []string{"samya_site_members 4\n", "samya_site_entities_behind 0\n", `samya_site_seats{state="member"} 4`, `samya_site_seats{state="draining"} 0`} {
		if !strings.Contains(page, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
}

// TestUsedNames: a site that has lost its data, and a second site of a name, are refused
// in words. A joining site says what it waits for, and refuses callers.
func TestUsedNames(t *testing.T) {
	c := sitetest.Start(t, []string{"as", "eu", "us"}, nil)
	c.Create("vm", 90)
	c.Join("west")
	sitetest.Eventually(t, "a site without a seat says so", func() error {
		if _, _, page := fetch(t, "GET", "http://"+c.Site("west").HTTPAddr()+"/readyz"); !strings.Contains(page, "joining the cluster") {
			return errors.New(page)
		}
		return nil
	})
	if resp, err := healthv1.NewHealthClient(c.Conn("west")).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil || resp.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health: %v, %v", resp, err)
	}
	for what, ask := range map[string]func() error{
		"sites": func() error {
			_, err := c.Admin("west").ListSites(t.Context(), &samyav1.ListSitesRequest{})
			return err
		},
		"members": func() error {
			_, err := members(t, c, "west")
			return err
		},
		"acquire": func() error {
			_, err := c.Tokens("west").Acquire(t.Context(), &samyav1.AcquireRequest{
				Entity: "vm", Tokens: 1, RequestId: "id", Attempt: 2, Tried: []string{"eu"}, NotAfter: timestamppb.New(time.Now().Add(time.Minute)),
			})
			return err
		},
		"release": func() error {
			_, err := c.Tokens("west").Release(t.Context(), &samyav1.ReleaseRequest{Entity: "vm", Lease: "eu/x"})
			return err
		},
	} {
		if err := ask(); err == nil || !errors.Is(apierr.FromGRPC(err), apierr.SiteUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	addMember(t, c, "us", "west")
	settled(t, c, "us", 4)
	c.Serves("west")
	c.Forget("west")
	err := c.Fails("west")
	// The members remember its data, or the catalogue its name: whichever tells first.
	_, used := errors.AsType[*core.UsedNameError](err)
	if _, stale := errors.AsType[*core.StaleError](err); !used && !stale {
		t.Errorf("%v", err)
	}
}

// TestSitesAreListedByName: sites are listed in the order of their names, not of their
// seats.
func TestSitesAreListedByName(t *testing.T) {
	t.Parallel()
	c := sitetest.Start(t, []string{"eu", "us"}, nil)
	c.Join("as")
	addMember(t, c, "us", "as")
	settled(t, c, "us", 3)
	resp, err := c.Admin("us").ListSites(t.Context(), &samyav1.ListSitesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range resp.GetSites() {
		names = append(names, s.GetName())
	}
	if want := []string{"as", "eu", "us"}; !slices.Equal(names, want) {
		t.Errorf("listed as %v, want %v", names, want)
	}
}

// TestSitesJoinUnderLoad: two sites join three, one after the other, while callers acquire
// and release everywhere; a member and the first joiner are started again meanwhile. The
// limit is never exceeded. The new sites get tokens, of entities created before and after.
// An app manager finds the new sites, and its exact reads count them.
func TestSitesJoinUnderLoad(t *testing.T) {
	t.Parallel()
	const limit = 600
	names := []string{"as", "eu", "us"}
	c := sitetest.Start(t, names, nil)
	c.Create("acme/before", limit)
	sites := &growing{changed: make(chan struct{})}
	for _, n := range names {
		sites.add(c, n)
	}
	entities := frontOf(t, "us", sites)
	l := newJoining(t, c, limit)
	for _, n := range names {
		l.at(n, "acme/before")
	}
	grow := func(name string, n int, meanwhile func()) {
		t.Helper()
		c.Join(name)
		sites.add(c, name)
		l.at(name, "acme/before")
		addMember(t, c, "us", name)
		meanwhile()
		c.Serves(name)
		settled(t, c, "us", n)
		l.grantsAt(name)
	}
	grow("west", 4, func() {
		c.Stop("west")
		c.Boot("west")
		sites.add(c, "west")
		c.Stop("eu")
		c.Boot("eu")
		sites.add(c, "eu")
	})
	c.Create("acme/after", limit)
	for _, n := range []string{"as", "west"} {
		l.at(n, "acme/after")
	}
	exact := func(entity string, n int) {
		t.Helper()
		sitetest.Eventually(t, "an exact read of "+entity, func() error {
			resp, err := entities.GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: entity, Consistency: samyav1.Consistency_CONSISTENCY_EXACT})
			if err != nil {
				return err
			}
			u := resp.GetUsage()
			if !u.GetComplete() || !u.GetConsistent() {
				return fmt.Errorf("%v", u)
			}
			if len(u.GetShares()) != n || u.GetAvailable()+u.GetAcquired()+u.GetInTransit() != limit {
				t.Errorf("a read that is called consistent, want %d shares of %d: %v", n, limit, u)
			}
			return nil
		})
	}
	exact("acme/before", 4)
	grow("zulu", 5, func() {
		c.Stop("as")
		c.Boot("as")
		sites.add(c, "as")
	})
	l.at("zulu", "acme/after")
	l.grantsAt("zulu")
	exact("acme/before", 5)
	exact("acme/after", 5)
	l.stop()
	for _, entity := range []string{"acme/before", "acme/after"} {
		sitetest.Eventually(t, "the books of "+entity, func() error {
			if b := c.Books(entity); b.GetAvailable() != limit || b.GetAcquired() != 0 || b.GetInTransit() != 0 {
				return fmt.Errorf("%v", b)
			}
			return nil
		})
	}
	for _, at := range []string{"as", "eu", "us", "west", "zulu"} {
		settled(t, c, at, 5)
	}
}

// joiningLoad are callers that acquire and release at sites of a cluster. They keep an
// account of their own for each entity. An acquire is counted once it was answered, and no
// longer counted once its release begins. So the account never exceeds what is out.
type joiningLoad struct {
	t       *testing.T
	c       *sitetest.Cluster
	limit   int64
	ended   atomic.Bool
	callers sync.WaitGroup

	mu      sync.Mutex
	out     map[string]int64
	granted map[string]int
}

func newJoining(t *testing.T, c *sitetest.Cluster, limit int64) *joiningLoad {
	t.Helper()
	l := &joiningLoad{t: t, c: c, limit: limit, out: make(map[string]int64), granted: make(map[string]int)}
	t.Cleanup(l.stop)
	return l
}

// stop ends the load, with all tokens given back.
func (l *joiningLoad) stop() {
	l.ended.Store(true)
	l.callers.Wait()
}

// grantsAt waits for more grants at a site.
func (l *joiningLoad) grantsAt(site string) {
	l.t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.granted[site]
	}
	want := count() + 5
	sitetest.Eventually(l.t, "grants at "+site, func() error {
		if got := count(); got < want {
			return fmt.Errorf("%d, want %d", got, want)
		}
		return nil
	})
}

// count adds tokens to an account.
func (l *joiningLoad) count(entity, site string, tokens int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out[entity] += tokens
	if tokens > 0 {
		l.granted[site]++
	}
	if l.out[entity] > l.limit {
		l.t.Errorf("%s: %d tokens are out, the limit is %d", entity, l.out[entity], l.limit)
	}
}

// at adds callers at a site, which go on until the load ends.
func (l *joiningLoad) at(site, entity string) {
	for caller := range 3 {
		l.callers.Go(func() {
			for n := int64(0); !l.ended.Load(); n++ {
				// Callers ask for about a site's share, so that tokens have to move.
				tokens, id := 30+17*(n%6), fmt.Sprintf("%s-%s-%d-%d", site, entity, caller, n)
				if !l.done(site, func(ctx context.Context) error {
					_, err := l.c.Tokens(site).Acquire(ctx, &samyav1.AcquireRequest{
						Entity: entity, Tokens: tokens, RequestId: id, Wait: durationpb.New(200 * time.Millisecond),
					})
					return err
				}) {
					continue
				}
				l.count(entity, site, tokens)
				l.count(entity, site, -tokens)
				for back := false; !back && !l.t.Failed(); {
					back = l.done(site, func(ctx context.Context) error {
						_, err := l.c.Tokens(site).Release(ctx, &samyav1.ReleaseRequest{Entity: entity, Tokens: tokens, RequestId: id + "-back"})
						return err
					})
				}
			}
		})
	}
}

// done makes a call, and repeats it while its outcome is unknown. It reports whether the
// call was done.
func (l *joiningLoad) done(site string, call func(context.Context) error) bool {
	unknown := false
	for l.t.Context().Err() == nil && !l.t.Failed() {
		ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Second)
		err := call(ctx)
		cancel()
		if err == nil {
			return true
		}
		switch reason := apierr.FromGRPC(err).Reason; reason {
		case apierr.OutOfTokens:
			return false
		case apierr.SiteUnavailable, apierr.ShuttingDown, apierr.Overloaded:
			_ = wan.Wait(l.t.Context(), 20*time.Millisecond)
			if !unknown {
				return false
			}
		case apierr.OutcomeUnknown, apierr.DeadlineExceeded, apierr.Canceled:
			unknown = true
			_ = wan.Wait(l.t.Context(), 20*time.Millisecond)
		default:
			l.t.Errorf("at %s: %s: %v", site, reason, err)
		}
	}
	return false
}
