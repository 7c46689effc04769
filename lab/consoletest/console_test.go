package consoletest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/httpapi"
)

// shotsEnv names the folder for screenshots; without it the tests are left out.
const shotsEnv = "SAMYA_CONSOLE_SHOTS"

// The bounds of the first page and of a search among manyEntities.
const (
	interactiveBound = time.Second
	firstPageBound   = 200 << 10 // bytes, compressed
	searchBound      = 300 * time.Millisecond
	manyEntities     = 100_000
)

// shotsDir returns the folder for screenshots.
func shotsDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(shotsEnv)
	if dir == "" {
		t.Skip("drives a browser: make console-test")
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	return dir
}

// browse starts a browser that ends with the test.
func browse(t *testing.T) context.Context {
	t.Helper()
	bin, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("the tests drive Debian's package chromium: %v", err)
	}
	options := append([]chromedp.ExecAllocatorOption{
		chromedp.ExecPath(bin), chromedp.UserDataDir(filepath.Join(t.TempDir(), "profile")), chromedp.WindowSize(wide, 900),
		chromedp.Env("TZ=UTC", "LANG=C.UTF-8"),
	}, chromedp.DefaultExecAllocatorOptions[:]...)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf))
	t.Cleanup(cancel)
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return ctx
}

// TestConsole drives each page against five sites under load: a limit changed, a site killed
// and seen, a viewer who may not change anything.
func TestConsole(t *testing.T) {
	shots := shotsDir(t)
	cluster := start(t, proc.Config{
		Bin: program(t), Cluster: "console", Sites: regions, AppManagers: regions, Latency: "samya",
		AppManagerArgs: []string{"--access-file", accessFile(t)},
	})
	us, eu := cluster.AppManager(4), cluster.AppManager(2)
	admin := clientOf(t, us.HTTP, adminToken)
	create(t, admin)
	begin(t, cluster)
	holdLeases(t, clientOf(t, us.HTTP, clientToken))

	browser := browse(t)
	kim := openTab(t, browser, us.HTTP, shots)
	kim.looks2(t)
	vera := openTab(t, browser, eu.HTTP, shots)

	// Each sees the entity; the viewer keeps it open.
	vera.signIn(viewerToken)
	vera.open("entity?name=acme/vm")
	kim.signIn(adminToken)

	t.Run("first page", func(t *testing.T) { firstPage(t, kim) })
	t.Run("keys", func(t *testing.T) { keyboard(t, kim) })
	t.Run("cluster", func(t *testing.T) { clusterPage(kim) })
	t.Run("entity", func(t *testing.T) { entityPage(kim) })
	t.Run("limit", func(t *testing.T) { changeLimit(t, kim, vera, admin) })
	t.Run("create", func(t *testing.T) { createEntity(kim) })
	t.Run("viewer", func(t *testing.T) { viewer(t, vera, eu.HTTP) })
	t.Run("site killed", func(t *testing.T) { killSite(t, kim, cluster.Site(3)) })
	t.Run("app manager killed", func(t *testing.T) { killManager(t, vera, eu) })
	t.Run("drain", func(t *testing.T) { drain(kim) })

	kim.end("/v1/caller", "limit", "status of 400")
	vera.end("/v1/caller")
}
