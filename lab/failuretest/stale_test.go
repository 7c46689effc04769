package failuretest

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/site/sitetest"
)

// TestStaleDataIsRefused starts a site on an old copy of its data, taken before further
// load. It also starts the site on data with half of the log cut off, and on an empty
// directory. Each start ends by itself with an error that names the fault. On the right
// data the site starts again, and the books match the callers' holdings.
func TestStaleDataIsRefused(t *testing.T) {
	beside(t)
	const limit = 300
	cluster := start(t, proc.Config{Sites: []string{"us", "eu", "as"}})
	clients := dialAll(t, cluster)
	create(t, limit, clients...)
	m := &movers{clients: clients, prefix: "stale"}
	for range pick(1, 4) {
		site := cluster.Site(0)
		ctx, stop := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for range 4 {
			load.Go(func() {
				for ctx.Err() == nil {
					m.move(ctx)
				}
			})
		}
		pause(t, time.Second)
		// A stopped process leaves the same data as kill -9.
		old, right := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "right")
		sendSignal(t, site, syscall.SIGSTOP)
		if err := os.CopyFS(old, os.DirFS(site.Data)); err != nil {
			t.Fatal(err)
		}
		sendSignal(t, site, syscall.SIGCONT)
		// Others are told about once a second.
		pause(t, 3*time.Second)
		kill(t, site)
		stop()
		load.Wait()

		rename(t, site.Data, right)
		rename(t, old, site.Data)
		refused(t, cluster, site, "is refused: it is an older copy: site")
		if err := os.RemoveAll(site.Data); err != nil {
			t.Fatal(err)
		}
		cutLog(t, right, site.Data)
		refused(t, cluster, site, "is refused: it is an older copy: site")
		if err := os.RemoveAll(site.Data); err != nil {
			t.Fatal(err)
		}
		refused(t, cluster, site, "is refused: it is not the data that this site had: site")
		if err := os.RemoveAll(site.Data); err != nil {
			t.Fatal(err)
		}
		rename(t, right, site.Data)
		restart(t, site)
		unknown := m.settle(t)
		t.Logf("%d answers repeated, %d outcomes were unknown", m.check(t, limit), unknown)
	}
}

// cutLog copies data with half of its log. Nothing in it tells that there was
// more: the other sites do.
func cutLog(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	path := segmentOf(t, to)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	frames := framesOf(b)
	overwrite(t, path, b[:frames[len(frames)/2]])
}

// refused starts a site that is expected to end by itself and say why.
func refused(t *testing.T, cluster *proc.Cluster, site *proc.Process, want string) {
	t.Helper()
	if err := site.Start(); err != nil {
		t.Fatal(err)
	}
	if status := exitStatus(expectDeath(t, cluster, site)); status != 1 {
		t.Errorf("status %d, want 1", status)
	}
	said := site.Tail(10)
	if !strings.Contains(said, want) || !strings.Contains(said, "put the latest data of this site") || strings.Contains(said, "goroutine ") {
		t.Errorf("the site does not say %q and what to do:\n%s", want, said)
	}
}

// TestDataWithoutAWitnessWaits starts a site while no other runs. The site says that it
// is not ready and grants nothing, until another site vouches for its data or the
// operator does.
func TestDataWithoutAWitnessWaits(t *testing.T) {
	beside(t)
	cluster := start(t, proc.Config{Sites: []string{"us", "eu", "as"}})
	clients := dialAll(t, cluster)
	create(t, 30, clients...)
	us, site := clients[0], cluster.Site(0)
	for _, p := range cluster.Sites() {
		kill(t, p)
	}
	if err := site.Start(); err != nil {
		t.Fatal(err)
	}
	const waiting = "waiting for 1 of 2 members to vouch for this site's data"
	sitetest.Eventually(t, "the site says what it waits for", func() error { return readyzSays(t, site, waiting) })
	if _, err := us.acquire(t.Context(), "early", 1, 0); err == nil || !strings.Contains(err.Error(), waiting) {
		t.Errorf("an acquire is answered %v, want one that says %q", err, waiting)
	}
	kill(t, site)

	args := site.Args
	site.Args = append(slices.Clip(args), "--unvouched")
	restart(t, site)
	if _, err := us.acquire(t.Context(), "stated", 1, 0); err != nil {
		t.Error(err)
	}
	kill(t, site)

	site.Args = args
	restart(t, site, cluster.Site(1))
	if _, err := us.acquire(t.Context(), "vouched", 2, 0); err != nil {
		t.Error(err)
	}
	if s := us.share(t); s.GetNet() != 3 {
		t.Errorf("%v", s)
	}
}

// readyzSays asks a site that is not ready.
func readyzSays(t *testing.T, site *proc.Process, want string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+site.HTTP+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), want)) {
		t.Errorf("readyz answers %d: %s", resp.StatusCode, body)
	}
	return err
}

func sendSignal(t *testing.T, p *proc.Process, sig os.Signal) {
	t.Helper()
	if err := p.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
