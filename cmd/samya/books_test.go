package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/appmgr"
	"github.com/samya-db/samya/internal/bookcopy"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// TestBooksCommands: books are exported to a file and to standard output, and imported.
func TestBooksCommands(t *testing.T) {
	s := newShell(t)
	s.run("acquire acme/vm 30")
	file := filepath.Join(t.TempDir(), "books.jsonl")
	code, stdout, stderr := s.run("books export --to " + file)
	if code != exitOK || stdout != "" || stderr != "exported 1 entities\nleases of these sites are missing: eu\n" {
		t.Errorf("exit status %d: %s%s", code, stdout, stderr)
	}
	code, stdout, _ = s.run("books export --to -")
	if b, err := bookcopy.Read(strings.NewReader(stdout)); err != nil || code != exitOK || len(b.Entries) != 1 || b.Entries[0].Acquired != 30 {
		t.Errorf("exit status %d, %v: %s", code, err, stdout)
	}
	into := newShell(t)
	into.manager.Intercept = nil
	s.expect("books import "+file, exitOK, "imported 1 entities of cluster demo: 0 were made, tokens of 0 acquired, limits of 0 set\ntokens in use: 30\n")
	// The shell's own entity has no tokens in use.
	code, stdout, _ = into.run("books import --json " + file)
	var done bookcopy.Done
	if err := json.Unmarshal([]byte(stdout), &done); err != nil || code != exitOK || done.Acquired != 1 || into.manager.Acquired("acme/vm") != 30 {
		t.Errorf("exit status %d: %+v", code, done)
	}
}

// TestBooksErrors: an export with an entity that was not read consistently fails and
// leaves the file, which is not imported. A failed export leaves no file.
func TestBooksErrors(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "books.jsonl")
	s.expect("books export", exitUsage, "samya: to: missing; a file, or - for standard output\n  see samya books export --help\n")
	s.expect("books import "+file, exitFailed, "samya: import the books: open "+file+": no such file or directory\n")
	s.manager.Torn = []string{"acme/vm"}
	code, _, stderr := s.run("books export --to " + file)
	if code != exitFailed || !strings.Contains(stderr, "1 of 1 entities were not read as a consistent cut") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	if code, _, stderr := s.run("books import " + file); code != exitFailed || !strings.Contains(stderr, "no consistent read") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	if err := os.WriteFile(file, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := s.run("books import " + file); code != exitFailed || !strings.Contains(stderr, "damaged or not complete") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	s.env["SAMYA_ADDR"] = sitetest.FreePort(t)
	if code, _, _ := s.run("books export --to " + filepath.Join(dir, "none")); code != exitUnreachable {
		t.Errorf("exit status %d", code)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v: %v", entries, err)
	}
}

// managed is a cluster of three sites with an app manager, and a shell that talks to it.
func managed(t *testing.T) (*sitetest.Cluster, *shell) {
	t.Helper()
	var join atomic.Pointer[[]string]
	c := sitetest.Start(t, []string{"us", "eu", "as"}, func(cfg *site.Config) { join.Store(&cfg.Gossip.Join) })
	m, err := appmgr.New(appmgr.Config{
		Config: node.Config{
			Name: "am", Region: "us", Cluster: "test", GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0",
			Gossip: node.Gossip{Bind: "127.0.0.1:0", Join: *join.Load()}, Preset: "local",
		},
		StopTimeout: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-m.Listening()
	s := newShell(t)
	s.env["SAMYA_ADDR"] = m.HTTPAddr()
	sitetest.Eventually(t, "the app manager", func() error {
		if code, _, stderr := s.run("entity list"); code != exitOK {
			return errors.New(stderr)
		}
		code, stdout, stderr := s.run("sites --json")
		var sites httpapi.Sites
		if err := json.Unmarshal([]byte(stdout), &sites); err != nil || code != exitOK {
			return errors.Join(err, errors.New(stderr))
		}
		for _, known := range sites.Sites {
			if known.Health != "serving" {
				return errors.New(stdout)
			}
		}
		return nil
	})
	return c, s
}

// TestBooksOfAClusterAreImported: the books of a cluster with tokens in use at all sites
// and levels are the same in a new cluster. A site is backed up by its name.
func TestBooksOfAClusterAreImported(t *testing.T) {
	_, s := managed(t)
	for _, line := range []string{
		"entity create acme --limit 100", "entity create acme/web --limit 80 --parent acme", "entity create acme/vm --limit 80 --parent acme",
		"entity create free --limit 9", "entity create full --limit 30", "acquire acme/web 20 --site us", "acquire acme/web 7 --site eu",
		"acquire acme/vm 30 --site as", "acquire acme 4 --site eu", "acquire full 30", "entity set-limit full 10", "acquire acme/vm 2 --ttl 1h",
	} {
		sitetest.Eventually(t, line, func() error {
			if code, _, stderr := s.run(line + " --request-id " + strings.ReplaceAll(strings.ReplaceAll(line, " ", "-"), "/", "-")); code != exitOK {
				return errors.New(stderr)
			}
			return nil
		})
	}
	dir := t.TempDir()
	read := func(s *shell, file string) *bookcopy.Books {
		t.Helper()
		if code, _, stderr := s.run("books export --to " + file); code != exitOK {
			t.Fatal(stderr)
		}
		b, err := readBooks(file)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	file := filepath.Join(dir, "books.jsonl")
	before := read(s, file)
	if e := before.Entries; len(e) != 5 || e[0].Acquired != 63 || e[1].Leases != 1 || e[1].Leased != 2 || e[4].Debt != 20 {
		t.Errorf("%+v", e)
	}
	if code, _, stderr := s.run("site backup --site us --to " + filepath.Join(dir, "us.backup")); code != exitOK {
		t.Errorf("a backup by name: %s", stderr)
	}

	_, into := managed(t)
	if code, _, stderr := into.run("books import " + file); code != exitOK {
		t.Fatal(stderr)
	}
	after := read(into, filepath.Join(dir, "again.jsonl"))
	if len(after.Entries) != len(before.Entries) {
		t.Fatalf("%+v", after.Entries)
	}
	for i, e := range after.Entries {
		if b := before.Entries[i]; e.Name != b.Name || e.Parent != b.Parent || e.Limit != b.Limit || e.Acquired != b.Acquired {
			t.Errorf("%s has limit %d and %d tokens out, want %d and %d", e.Name, e.Limit, e.Acquired, b.Limit, b.Acquired)
		}
	}
}
