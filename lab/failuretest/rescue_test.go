package failuretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/httpapi"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// rescued is an entity of TestRescue: one of ten below the first, or by itself.
type rescued struct {
	name, parent string
	limit        int64
	// held are the tokens that callers have of the entity itself.
	held int64
}

// TestRescue kills a site that has granted tokens and leases, while others ask it for
// tokens, and writes it off. An older copy of its directory is refused. Then the site's own
// directory is rescued, by a command that is killed and repeated. All that the site held is
// back: the books are the callers'.
func TestRescue(t *testing.T) {
	beside(t)
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	bin := samya(t)
	cluster := start(t, proc.Config{
		Bin: bin, Sites: []string{"us", "eu", "as", "au"}, AppManagers: []string{"us"},
		SiteArgs: []string{"--clock-skew", "500ms", "--request-retention", "12s", "--protocol", []string{"majority", "star", "auto"}[seed%3]},
	})
	clients := dialAll(t, cluster)
	asked, err := httpapi.New("http://"+cluster.AppManager(0).HTTP, nil)
	if err != nil {
		t.Fatal(err)
	}
	entities := []*rescued{{name: "all", limit: 8000}}
	for i := range pick(11, 60) {
		e := &rescued{name: fmt.Sprintf("all/e%d", i), parent: "all", limit: 400}
		if i >= 10 {
			e.name, e.parent = fmt.Sprintf("e%d", i), ""
		}
		entities = append(entities, e)
	}
	for _, e := range entities {
		sitetest.Eventually(t, "creating "+e.name, func() error {
			_, err := asked.Create(t.Context(), httpapi.Creation{Name: e.name, Limit: e.limit, Parent: e.parent, RequestID: "create-" + e.name})
			return err
		})
	}
	lost, rest := cluster.Site(3), clients[:3]
	old := deal(t, rng, clients, entities, lost)
	stop := stir(t, rest, entities[len(entities)-1])
	pause(t, between(rng, 500*time.Millisecond, 2*time.Second))
	kill(t, lost)
	stop()

	run := func(ctx context.Context, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, bin, append(args, "--addr", "http://"+cluster.AppManager(0).HTTP)...)
		out, err := cmd.CombinedOutput()
		t.Logf("%s samya %s\n%s", time.Now().UTC().Format("15:04:05"), strings.Join(args, " "), out)
		return string(out), err
	}
	wantError := func(why string, args ...string) {
		t.Helper()
		if out, err := run(t.Context(), args...); err == nil || !strings.Contains(out, why) {
			t.Errorf("%v, and not %q", err, why)
		}
	}
	wantError("was not written off", "site", "rescue", lost.Data, "--yes")
	sitetest.Eventually(t, "writing au off", func() error {
		_, err := run(t.Context(), "member", "remove", "au", "--lost", "--yes")
		return err
	})
	wantError("it is an older copy", "site", "rescue", old, "--yes")
	for i := range pick(3, 10) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(50+50*i)*time.Millisecond)
		_, _ = run(ctx, "site", "rescue", lost.Data, "--yes") // killed or done: a repeat goes on
		cancel()
	}
	for range 2 {
		if _, err := run(t.Context(), "site", "rescue", lost.Data, "--yes"); err != nil {
			t.Fatal(err)
		}
	}
	sitetest.Eventually(t, "the books", func() error {
		for _, e := range entities {
			held := e.held
			for _, child := range entities {
				if child.parent == e.name {
					held += child.held
				}
			}
			s, err := asked.ReadEntity(t.Context(), e.name, "exact", 0)
			if err != nil {
				return err
			}
			if s.Acquired != held || s.Available+s.Acquired != e.limit || s.WrittenOff != 0 || s.Surplus != 0 {
				return fmt.Errorf("%s: callers have %d of %d: %+v", e.name, held, e.limit, s)
			}
		}
		return nil
	})
	members, err := asked.ListMembers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members.Members {
		if m.Rescued != (m.Name == "au") {
			t.Errorf("%+v", m)
		}
	}
	if err := lost.Start(); err != nil {
		t.Fatal(err)
	}
	if status := exitStatus(expectDeath(t, cluster, lost)); status != 1 || !strings.Contains(lost.Tail(10), "was given back to the cluster") {
		t.Errorf("status %d:\n%s", status, lost.Tail(10))
	}
}

// deal has callers acquire at the site that is lost and at others, and release at both. It
// returns a copy of the site's data that was made in between.
func deal(t *testing.T, rng *rand.Rand, clients []*client, entities []*rescued, lost *proc.Process) (old string) {
	t.Helper()
	at := clients[len(clients)-1]
	for half := range 2 {
		for i, e := range entities {
			if i == 0 {
				continue // it has tokens out through those below it
			}
			acquire := func(c *client, tokens int64, lease *samyav1.LeaseTerms) {
				t.Helper()
				r, err := c.Acquire(t.Context(), &samyav1.AcquireRequest{
					Entity: e.name, Tokens: tokens, RequestId: fmt.Sprintf("%s-%s-%d-%t", c.site.Name, e.name, half, lease != nil), Lease: lease,
				})
				if err != nil {
					t.Fatal(err)
				}
				if lease == nil {
					e.held += r.GetTokens()
				}
			}
			release := func(c *client, tokens int64) {
				t.Helper()
				_, err := c.Release(t.Context(), &samyav1.ReleaseRequest{Entity: e.name, Tokens: tokens, RequestId: fmt.Sprintf("back-%s-%d", e.name, half)})
				if err != nil {
					t.Fatal(err)
				}
				e.held -= tokens
			}
			acquire(at, rng.Int64N(20)+10, nil)
			acquire(clients[0], rng.Int64N(20)+10, nil)
			acquire(at, 5, &samyav1.LeaseTerms{Ttl: durationpb.New(time.Duration(1+rng.IntN(8)) * time.Second), Holder: "h"})
			switch i % 3 {
			case 0:
				release(clients[1], 10)
			case 1:
				release(at, e.held)
			}
		}
		if half == 0 {
			// A stopped process leaves the same data as kill -9.
			old = filepath.Join(t.TempDir(), "old")
			sendSignal(t, lost, syscall.SIGSTOP)
			if err := os.CopyFS(old, os.DirFS(lost.Data)); err != nil {
				t.Fatal(err)
			}
			sendSignal(t, lost, syscall.SIGCONT)
		}
	}
	// Others are told about once a second.
	pause(t, 3*time.Second)
	return old
}

// stir has callers at some sites ask for more of an entity than the sites have, and give
// all back, until it is ended.
func stir(t *testing.T, clients []*client, e *rescued) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var mu sync.Mutex
	for i, c := range clients {
		load.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				r, err := c.Acquire(t.Context(), &samyav1.AcquireRequest{
					Entity: e.name, Tokens: 90, MinTokens: 1, RequestId: fmt.Sprintf("stir-%d-%d", i, n), Wait: durationpb.New(time.Second),
				})
				if err != nil {
					continue
				}
				mu.Lock()
				e.held += r.GetTokens()
				mu.Unlock()
				back := clients[(i+n)%len(clients)]
				if _, err := back.Release(t.Context(), &samyav1.ReleaseRequest{Entity: e.name, Tokens: r.GetTokens(), RequestId: fmt.Sprintf("stirred-%d-%d", i, n)}); err == nil {
					mu.Lock()
					e.held -= r.GetTokens()
					mu.Unlock()
				}
			}
		})
	}
	return func() {
		cancel()
		load.Wait()
	}
}
