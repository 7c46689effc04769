package ratelimit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestReload: changed files are taken up, and files with a fault are not. A changed limit
// changes the entity, which keeps what was used.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, twoLimits, nil)
		done := make(chan struct{})
		go func() {
			r.Run(t.Context())
			close(done)
		}()
		turn := func(want string, outcomes float64, failed float64) {
			t.Helper()
			time.Sleep(pollInterval) //nolint:forbidigo // simulated time
			synctest.Wait()
			if got := r.ask(request("d", "a=x")); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if n := testutil.ToFloat64(r.metrics.reloads.WithLabelValues("done")); n != outcomes {
				t.Errorf("%v reloads", n)
			}
			if n := testutil.ToFloat64(r.metrics.reloads.WithLabelValues("failed")); n != failed {
				t.Errorf("%v failed reloads", n)
			}
		}
		turn("ok: ok/4", 0, 0)
		r.write("rules.yaml", "domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 10}}]")
		turn("ok: ok/8", 1, 0)
		r.write("rules.yaml", "domain: d\ndescriptors: [{key: a, ratelimit: {}}]")
		turn("ok: ok/7", 1, 1)
		turn("ok: ok/6", 1, 1) // the same fault is told once
		r.write("more.yml", "domain: d\ndescriptors: [{key: b}]")
		r.write("rules.yaml", "domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 2}}]")
		turn("over: over/0", 2, 1)
		if err := os.RemoveAll(r.dir); err != nil {
			t.Fatal(err)
		}
		turn("over: over/0", 2, 2)
	})
}

// TestFilesOfADirectory: which files of a directory hold rules.
func TestFilesOfADirectory(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"a.yaml": "domain: a", "b.yml": "domain: b", "c.txt": "domain: c", ".d.yaml": "domain: d", "..data/a.yaml": "domain: e", "e": "f",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// As a ConfigMap of Kubernetes is mounted.
	if err := os.Symlink("..data/a.yaml", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	c, err := ReadRules(dir)
	if err != nil || strings.Join(c.Domains(), " ") != "a b e" {
		t.Errorf("%v, %v", c.Domains(), err)
	}
	if c, err := ReadRules(filepath.Join(dir, "b.yml")); err != nil || strings.Join(c.Domains(), " ") != "b" {
		t.Errorf("%v, %v", c.Domains(), err)
	}
	if _, err := ReadRules(filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that does not exist is read")
	}
}

// TestBadRules: no service begins with rules that are at fault.
func TestBadRules(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("domain: ''"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Settings: Settings{Dir: dir}, Registry: prometheus.NewRegistry()}); err == nil || !strings.Contains(err.Error(), "a.yaml:1: domain: missing") {
		t.Error(err)
	}
}

// TestSettings: the bounds of the settings.
func TestSettings(t *testing.T) {
	for field, s := range map[string]Settings{
		"":                   {Headers: "x-ratelimit", Wait: 10 * time.Second, MaxEntities: 1_000_000},
		"ratelimit-headers":  {Headers: "all"},
		"ratelimit-wait":     {Wait: 10*time.Second + 1},
		"ratelimit-entities": {MaxEntities: -1},
	} {
		err := s.Validate()
		if field == "" && err != nil || field != "" && (err == nil || !strings.HasPrefix(err.Error(), field+": ")) {
			t.Errorf("%q: %v", field, err)
		}
	}
}
