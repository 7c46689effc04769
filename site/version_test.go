package site_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/cutid"
	"github.com/samya-db/samya/internal/parts"
	"github.com/samya-db/samya/internal/versions"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
	"google.golang.org/protobuf/types/known/durationpb"
)

// builds are the versions of the sites' builds; a site takes up its own as it boots.
type builds struct {
	mu sync.Mutex
	of map[string]versions.Version
}

func (b *builds) set(version versions.Version, sites ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range sites {
		b.of[s] = version
	}
}

func (b *builds) tweak(cfg *site.Config) {
	b.mu.Lock()
	defer b.mu.Unlock()
	cfg.Versions = versions.Of(b.of[cfg.Name])
}

// knows waits until a site knows a version of the cluster.
func knows(t *testing.T, c *sitetest.Cluster, at string, version uint32) {
	t.Helper()
	sitetest.Eventually(t, fmt.Sprintf("version %d at %s", version, at), func() error {
		v, err := c.Admin(at).GetVersion(t.Context(), &samyav1.GetVersionRequest{})
		if err == nil && v.GetVersion() != version {
			err = fmt.Errorf("it knows %v", v)
		}
		return err
	})
}

// TestVersionsRoll exchanges the builds of a cluster one by one, back and forth, while
// clients acquire and release at each site that runs. Until all builds speak the next
// version it is not raised, and the refusal names the sites. Then it is, and all know.
func TestVersionsRoll(t *testing.T) {
	t.Parallel()
	names := []string{"as", "eu", "us"}
	b := &builds{of: make(map[string]versions.Version)}
	b.set(1, names...)
	c := sitetest.Start(t, names, b.tweak)
	c.Create("acme/vm", 300)
	var held int64
	serve := func() {
		t.Helper()
		for _, at := range names {
			// More than a share: tokens have to move between the builds.
			_, err := c.Tokens(at).Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 130, Wait: durationpb.New(10 * time.Second)})
			if err != nil {
				t.Fatalf("acquire at %s: %v", at, err)
			}
			if _, err := c.Tokens(at).Release(t.Context(), &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 129}); err != nil {
				t.Fatalf("release at %s: %v", at, err)
			}
			held++
		}
	}
	exchange := func(at string, to versions.Version) {
		t.Helper()
		c.Stop(at)
		b.set(to, at)
		c.Boot(at)
		c.AwaitLinks()
		sitetest.Eventually(t, at+" serves", func() error {
			_, err := c.Admin(at).GetMode(t.Context(), &samyav1.GetModeRequest{})
			return err
		})
		serve()
	}
	raise := func(at string, to uint32) error {
		_, err := c.Admin(at).RaiseVersion(t.Context(), &samyav1.RaiseVersionRequest{Version: to})
		return err
	}
	serve()
	exchange("as", 2)
	err := raise("as", 2)
	if !errors.Is(apierr.FromGRPC(err), apierr.VersionMismatch) ||
		!strings.Contains(err.Error(), "site eu has a build that speaks version 1 alone; site us has a build that speaks version 1 alone") {
		t.Errorf("raised with two old builds: %v", err)
	}
	exchange("eu", 2)
	exchange("as", 1)
	exchange("as", 2)
	exchange("us", 2)
	for _, at := range names {
		knows(t, c, at, 1)
	}
	c.Stop("us")
	sitetest.Eventually(t, "us is away", func() error {
		if err := raise("eu", 2); err == nil || !strings.Contains(err.Error(), "site us is not connected") {
			return fmt.Errorf("raised: %w", err)
		}
		return nil
	})
	c.Boot("us")
	c.AwaitLinks()
	sitetest.Eventually(t, "the raise", func() error { return raise("eu", 2) })
	for _, at := range names {
		knows(t, c, at, 2)
	}
	if err := raise("us", 2); err != nil {
		t.Errorf("raised to what it is: %v", err)
	}
	if err := raise("us", 4); !errors.Is(apierr.FromGRPC(err), apierr.VersionMismatch) {
		t.Errorf("raised by two: %v", err)
	}
	if err := raise("us", 0); !errors.Is(apierr.FromGRPC(err), apierr.InvalidField) {
		t.Errorf("raised to none: %v", err)
	}
	exchange("us", 3)
	_, _, page := fetch(t, "GET", "http://"+c.Site("us").HTTPAddr()+"/metrics")
	for _, want := range []string{"samya_site_cluster_version 2", "samya_site_build_version 3", "samya_site_peers_refused 0"} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("/metrics has no %s", want)
		}
	}
	if u := c.Books("acme/vm"); u.GetAcquired() != held {
		t.Errorf("held %d, books %v", held, u)
	}
}

// TestTooEarly: what a cluster's version does not know yet is refused, with the version
// that is needed and the way there.
func TestTooEarly(t *testing.T) {
	t.Parallel()
	c := sitetest.Start(t, []string{"us"}, func(cfg *site.Config) { cfg.Versions = versions.Of(1) })
	c.Create("acme/vm", 300)
	cut, err := c.Entities("us").CutEntity(t.Context(), &samyav1.CutEntityRequest{Name: "acme/vm"})
	if err != nil {
		t.Fatal(err)
	}
	word := cutid.Cut{Entity: "acme/vm", Generation: cut.GetEntity().GetGeneration(), Version: cut.GetEntity().GetVersion()}
	_, reconcileErr := c.Entities("us").ReconcileEntity(t.Context(), &samyav1.ReconcileEntityRequest{Name: "acme/vm", Cut: word.String()})
	_, addErr := c.Admin("us").AddMember(t.Context(), &samyav1.AddMemberRequest{Name: "west"})
	const says = "that needs a cluster of version 2, and the cluster is of version 1; nothing was done. " +
		"Once all sites have a build that speaks version 2, raise the cluster's: samya cluster version --raise"
	for _, err := range []error{reconcileErr, addErr} {
		if got := apierr.FromGRPC(err); got.Reason != apierr.ClusterVersionTooLow || got.Message != says {
			t.Errorf("%v", err)
		}
	}
}

// TestVersionTooFar: a site whose build is two versions ahead is refused in words that
// the others tell, and it does not serve. With the next build it does.
func TestVersionTooFar(t *testing.T) {
	t.Parallel()
	names := []string{"as", "eu", "us"}
	b := &builds{of: make(map[string]versions.Version)}
	b.set(2, names...)
	empty := ""
	c := sitetest.Start(t, names, func(cfg *site.Config) {
		if b.tweak(cfg); cfg.Name == "us" && empty != "" {
			cfg.DataDir = empty
		}
	})
	c.Stop("us")
	b.set(4, "us")
	empty = t.TempDir()
	c.Boot("us")
	const says = "site us has a build that speaks versions 3 to 4, site eu a build that speaks versions 1 to 2: the build of site us is too new; " +
		"start there a build of version 2 or 3, upgrade all sites by one version at a time, and raise the version of the cluster after each"
	sitetest.Eventually(t, "eu refuses us", func() error {
		resp, err := c.Admin("eu").ListSites(t.Context(), &samyav1.ListSitesRequest{})
		if err != nil {
			return err
		}
		us := resp.GetSites()[2]
		if us.GetRefusal() != says || us.GetOldestVersion() != 3 || us.GetNewestVersion() != 4 {
			return fmt.Errorf("%v", us)
		}
		return nil
	})
	_, _, page := fetch(t, "GET", "http://"+c.Site("eu").HTTPAddr()+"/metrics")
	if want := "samya_site_peers_refused 1\n"; !strings.Contains(page, want) {
		t.Errorf("/metrics has no %s", want)
	}
	if _, err := c.Admin("us").GetMode(t.Context(), &samyav1.GetModeRequest{}); !errors.Is(apierr.FromGRPC(err), apierr.SiteUnavailable) {
		t.Errorf("a refused site serves: %v", err)
	}
	c.Stop("us")
	b.set(2, "us")
	empty = t.TempDir()
	c.Boot("us")
	c.AwaitLinks()
	sitetest.Eventually(t, "us is no longer refused", func() error {
		resp, err := c.Admin("eu").ListSites(t.Context(), &samyav1.ListSitesRequest{})
		if err == nil && resp.GetSites()[2].GetRefusal() != "" {
			err = fmt.Errorf("%v", resp.GetSites()[2])
		}
		return err
	})
}

// TestSessionsNeedTheVersion: a site tells clients that all sites know sessions, in streams and in
// answers to batches, once the cluster is of the version of builds that do.
func TestSessionsNeedTheVersion(t *testing.T) {
	t.Parallel()
	for of, want := range map[versions.Version]bool{versions.First: false, versions.Members: true} {
		c := sitetest.Start(t, []string{"us"}, func(cfg *site.Config) { cfg.Versions = versions.Of(of) })
		c.Create("acme/vm", 300)
		stream, err := c.Tokens("us").Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		acquire := &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1}}}
		batch, err := c.Tokens("us").Batch(t.Context(), &samyav1.BatchRequest{Operations: []*samyav1.Operation{acquire}})
		if err != nil {
			t.Fatal(err)
		}
		atomic, err := c.Tokens("us").Batch(t.Context(), &samyav1.BatchRequest{Atomic: true, Operations: []*samyav1.Operation{parts.Of("acme/vm", 1)}})
		if err != nil {
			t.Fatal(err)
		}
		if first.GetSessions() != want || batch.GetSessions() != want || atomic.GetSessions() != want {
			t.Errorf("in a cluster of version %d: %t, %t, %t", of, first.GetSessions(), batch.GetSessions(), atomic.GetSessions())
		}
	}
}
