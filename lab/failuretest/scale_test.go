package failuretest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// The bounds for 100,000 entities of a site. The short form has fewer entities and the
// same bounds. So small a heap is not collected before it is worth a collection: the bytes
// of an entity and of a result have bounds of their own, in site/core. Times are processor time: waiting for a processor does not count.
const (
	listBound   = time.Second
	startBound  = 5 * time.Second
	memoryBound = 150 << 10 // kB
)

// TestManyEntities has a site keep the books of many entities, each with a token moved,
// and bounds the cost. The cost is processor time to list all entities, memory, and
// processor time from a start after a kill until the site serves.
func TestManyEntities(t *testing.T) {
	entities := pick(20_000, 100_000)
	cluster := start(t, proc.Config{
		Sites: []string{"us"}, AppManagers: []string{"us"},
		// The value for a machine with two processors; with several partitions an entity
		// takes 150 bytes more.
		SiteArgs: []string{"--partitions", "1"},
	})
	site, c := cluster.Site(0), dial(t, cluster.Site(0))
	// Each call once, so that the cost of first requests does not count.
	moveBooks(t, c, 1, "warm/")
	empty := footprints(t, site, time.Second)

	made := spent(t, func() { moveBooks(t, c, entities, "acme/") }, site)
	full := footprints(t, site, time.Second)
	grown := full.rss - empty.rss

	overGRPC := spent(t, func() { listAll(t, entities, c.page) }, site)
	overHTTP := spent(t, func() { listAll(t, entities, pagesOf(t, cluster.AppManager(0))) }, site, cluster.AppManager(0))

	kill(t, site)
	restart(t, site)
	started := processors(t, site)
	listAll(t, entities, c.page)
	for _, n := range []int{0, entities / 2, entities - 1} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		got, err := c.GetEntity(ctx, &samyav1.GetEntityRequest{Name: nth("acme/", n)})
		cancel()
		if err != nil || got.GetUsage().GetAcquired() != 1 {
			t.Errorf("after the restart %s has %v acquired, want 1: %v", nth("acme/", n), got.GetUsage(), err)
		}
	}
	again := footprints(t, site, time.Second)

	for _, bound := range []struct {
		what     string
		got, max int64
	}{
		{"ms of the processors to list all over gRPC", overGRPC.Milliseconds(), listBound.Milliseconds()},
		{"ms of the processors to list all over HTTP", overHTTP.Milliseconds(), listBound.Milliseconds()},
		{"ms of the processors from a start after a kill until it serves", started.Milliseconds(), startBound.Milliseconds()},
		{"kB of memory for the books", grown, memoryBound},
		{"kB of memory for the books, after the restart", again.rss - empty.rss, memoryBound},
	} {
		if bound.got >= bound.max {
			t.Errorf("%s: %d, must be below %d", bound.what, bound.got, bound.max)
		}
	}
	report(t, figures{
		{"entities", entities},
		{"created and moved in ms", made.Milliseconds()},
		{"ms to list over gRPC", overGRPC.Milliseconds()},
		{"ms to list over HTTP", overHTTP.Milliseconds()},
		{"kB of memory empty", empty.rss},
		{"more with all", grown},
		{"of that its own", full.own - empty.own},
		{"more after the restart", again.rss - empty.rss},
		{"of that then its own", again.own - empty.own},
		{"kB of disk", full.disk},
		{"ms to start", started.Milliseconds()},
	})
}

// nth is the name of an entity; names sort by number.
func nth(prefix string, n int) string { return fmt.Sprintf("%sentity-%06d", prefix, n) }

// moveBooks creates entities and acquires a token of each, many at a time.
func moveBooks(t *testing.T, c *client, entities int, prefix string) {
	t.Helper()
	const callers = 256
	group, ctx := errgroup.WithContext(t.Context())
	for first := range callers {
		group.Go(func() error {
			for n := first; n < entities; n += callers {
				id := nth(prefix, n)
				_, err := c.CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: id, Limit: 1000, RequestId: id})
				if err != nil {
					return fmt.Errorf("create %s: %w", id, err)
				}
				_, err = c.Acquire(ctx, &samyav1.AcquireRequest{Entity: id, Tokens: 1, RequestId: id})
				if err != nil {
					return fmt.Errorf("acquire of %s: %w", id, err)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// spent returns the processors' time that processes spend while run runs.
func spent(t *testing.T, run func(), processes ...*proc.Process) time.Duration {
	t.Helper()
	var before, after time.Duration
	for _, p := range processes {
		before += processors(t, p)
	}
	run()
	for _, p := range processes {
		after += processors(t, p)
	}
	return after - before
}

// tick is the unit of times in /proc (proc_pid_stat(5)): USER_HZ is 100 on all that Go runs on.
const tick = 10 * time.Millisecond

// processors returns the processors' time that a process has spent, its own and the
// kernel's for it.
func processors(t *testing.T, p *proc.Process) time.Duration {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID()), "stat"))
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	// The name of the program may have spaces; fields are counted behind it, from the third.
	_, fields, _ := strings.Cut(string(b), ") ")
	at := strings.Fields(fields)
	var sum time.Duration
	for _, field := range []int{14, 15} { // utime, stime
		n, err := strconv.ParseInt(at[field-3], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(n) * tick
	}
	return sum
}

// pager returns the names of a page, and the token of the next page.
type pager func(ctx context.Context, prefix, token string) ([]string, string, error)

// page asks the site itself.
func (c *client) page(ctx context.Context, prefix, token string) ([]string, string, error) {
	resp, err := c.ListEntities(ctx, &samyav1.ListEntitiesRequest{Prefix: prefix, PageSize: name.MaxPageSize, PageToken: token})
	var names []string
	for _, e := range resp.GetEntities() {
		names = append(names, e.GetName())
	}
	return names, resp.GetNextPageToken(), err
}

// pagesOf asks an app manager, over HTTP.
func pagesOf(t *testing.T, p *proc.Process) pager {
	t.Helper()
	api, err := httpapi.New(p.HTTP, nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, prefix, token string) ([]string, string, error) {
		page, err := api.ListEntities(ctx, prefix, name.MaxPageSize, token)
		var names []string
		for _, e := range page.Entities {
			names = append(names, e.Name)
		}
		return names, page.NextPageToken, err
	}
}

// listAll reads all pages and checks that they hold all entities, in order.
func listAll(t *testing.T, entities int, page pager) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	token, seen := "", 0
	for {
		names, next, err := page(ctx, "acme/", token)
		if err != nil {
			t.Fatalf("after %d entities: %v", seen, err)
		}
		for _, n := range names {
			if want := nth("acme/", seen); n != want {
				t.Fatalf("%s is listed where %s belongs", n, want)
			}
			seen++
		}
		if token = next; token == "" {
			break
		}
	}
	if seen != entities {
		t.Fatalf("%d entities are listed, want %d", seen, entities)
	}
}
