package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/samya-db/samya/appmgr/console"
	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/buildtest"
	"github.com/samya-db/samya/site/sitetest"
)

// TestConsole: samya console opens for one browser, serves the same pages as the app
// manager, and passes the API on. It ends when it is interrupted.
func TestConsole(t *testing.T) {
	dir := t.TempDir()
	bin, err := buildtest.Samya(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := proc.Start(t.Context(), proc.Config{Bin: bin, Dir: dir, Sites: []string{"us", "eu", "as"}, AppManagers: []string{"us"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	addr := "http://" + cluster.AppManager(0).HTTP
	cmd := exec.CommandContext(t.Context(), bin, "console", "--addr", addr, "--json")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var printed struct {
		URL string `json:"url"`
	}
	if err := json.NewDecoder(out).Decode(&printed); err != nil {
		t.Fatal(err)
	}
	base := strings.SplitAfter(printed.URL, "/")
	own := strings.Join(base[:3], "")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	get := func(url string) (int, string) {
		t.Helper()
		resp, err := browser.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	if status, _ := get(own + "v1/sites"); status != http.StatusForbidden {
		t.Errorf("before it is opened: status %d", status)
	}
	status, page := get(printed.URL)
	_, same := get(addr + console.Path)
	if status != http.StatusOK || page != same {
		t.Errorf("opened: status %d, %s, want %s", status, page, same)
	}
	if status, sites := get(own + "v1/sites"); status != http.StatusOK || !strings.Contains(sites, `"name":"us"`) {
		t.Errorf("status %d, %s", status, sites)
	}
	resp, err := browser.Post(own+"v1/entities", "application/json", strings.NewReader(`{"name":"acme/vm","limit":5}`))
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Errorf("create: %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	sitetest.Eventually(t, "a dry run", func() error { // which takes a majority of the sites
		resp, err := browser.Post(own+"v1/entities", "application/json", strings.NewReader(`{"name":"acme/dry","limit":5,"dry_run":true}`))
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		told, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(told), `"effects":["acme/dry is created`) {
			return fmt.Errorf("%s: %s, %w", resp.Status, told, err)
		}
		return nil
	})
	if status, found := get(own + "v1/entities?contains=CME%2f"); status != http.StatusOK || !strings.Contains(found, "acme/vm") || strings.Contains(found, "acme/dry") {
		t.Errorf("status %d, %s", status, found)
	}
	sitetest.Eventually(t, "a healthy cluster", func() error { // an app manager that has just started links to the sites one by one
		if status, report := get(own + "v1/doctor"); status != http.StatusOK || !strings.Contains(report, `"verdict":"healthy"`) {
			return fmt.Errorf("status %d, %s", status, report)
		}
		return nil
	})
	// A site that is killed is seen, and found.
	if err := cluster.Site(1).Kill(); err != nil {
		t.Fatal(err)
	}
	sitetest.Eventually(t, "eu is down", func() error {
		if _, sites := get(own + "v1/sites:survey"); !strings.Contains(sites, `{"site":"eu","known":false`) {
			return errors.New(sites)
		}
		if _, report := get(own + "v1/doctor"); !strings.Contains(report, `"verdict":"critical"`) || !strings.Contains(report, "SamyaSiteDown") {
			return errors.New(report)
		}
		return nil
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
}

// TestConsoleUsage: the console listens on this machine alone.
func TestConsoleUsage(t *testing.T) {
	for _, args := range []string{"console --http 0.0.0.0:0", "console --http :0", "console --http x", "console --addr ftp://x", "console now"} {
		if code, _, stderr := newShell(t).run(args); code != exitUsage {
			t.Errorf("%s: exit status %d, %s", args, code, stderr)
		}
	}
}
