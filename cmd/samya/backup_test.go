package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
	"github.com/samya-db/samya/site/store"
)

// TestBackupCommands: a running site is backed up to a file and to standard output. The
// file is verified, restored to a directory, and refused once a bit of it is wrong.
func TestBackupCommands(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	c.Create("acme/vm", 10)
	addr := c.Site("us").GRPCAddr()
	s := newShell(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "us.backup")
	code, stdout, stderr := s.run("site backup --site " + addr + " --to " + file)
	if code != exitOK || stdout != "" || !strings.HasPrefix(stderr, "backed up site us of cluster test as of commit ") || !strings.Contains(stderr, "1 entities") {
		t.Fatalf("exit status %d: %s%s", code, stdout, stderr)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v: %v", entries, err)
	}
	code, stdout, stderr = s.run("backup verify --json " + file)
	var told facts
	if err := json.Unmarshal([]byte(stdout), &told); err != nil || code != exitOK || told.Site != "us" || told.Entities != 1 || len(told.Members) != 1 || told.Bytes == 0 {
		t.Errorf("exit status %d, %v: %s%s", code, err, stdout, stderr)
	}
	if code, stdout, _ := s.run("backup verify " + file); code != exitOK || !strings.Contains(stdout, "cluster   test\nsite      us\n") {
		t.Errorf("exit status %d: %s", code, stdout)
	}
	// Another backup takes the name.
	if code, stdout, _ := s.run("site backup --json --site " + addr + " --to " + file); code != exitOK || json.Unmarshal([]byte(stdout), &told) != nil {
		t.Errorf("exit status %d: %s", code, stdout)
	}
	code, stdout, stderr = s.run("site backup --site " + addr + " --to -")
	if v, err := store.Verify(strings.NewReader(stdout)); err != nil || code != exitOK || v.Site != "us" {
		t.Errorf("exit status %d, %v: %s", code, err, stderr)
	}

	data := filepath.Join(dir, "data")
	code, stdout, stderr = s.run("site restore " + file + " --data " + data)
	if code != exitOK || !strings.HasPrefix(stdout, "restored site us of cluster test") || !strings.Contains(stdout, "samya site --name us --cluster test --data "+data) {
		t.Errorf("exit status %d: %s%s", code, stdout, stderr)
	}
	if code, _, stderr := s.run("site restore " + file + " --data " + data); code != exitFailed || !strings.Contains(stderr, "not empty") {
		t.Errorf("a second restore: exit status %d: %s", code, stderr)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	bad := filepath.Join(dir, "bad.backup")
	if err := os.WriteFile(bad, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"backup verify " + bad, "site restore " + bad + " --data " + filepath.Join(dir, "new")} {
		if code, stdout, stderr := s.run(line); code != exitFailed || stdout != "" || !strings.Contains(stderr, "damaged") {
			t.Errorf("%s: exit status %d: %s", line, code, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a bad backup has left a directory: %v", err)
	}
}

// TestBackupErrors: what is wrong is named, and a file keeps its content.
func TestBackupErrors(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "us.backup")
	if err := os.WriteFile(file, []byte("the backup of yesterday"), 0o600); err != nil {
		t.Fatal(err)
	}
	free := sitetest.FreePort(t)
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"site backup --site " + free + " --to " + file, exitUnreachable, "no site answers at " + free},
		{"site backup --to " + file, exitUsage, "site: empty"},
		{"site backup --site mars --to " + file, exitFailed, "the address of site mars is not known"},
		{"site backup --site us", exitUsage, "to: missing"},
		{"site backup --site " + strings.TrimPrefix(s.addr, "http://") + " --to " + file, exitUnreachable, "no site answers"},
		{"site restore " + file, exitUsage, "data: missing"},
		{"site restore " + file + " --data " + dir, exitFailed, "not empty"},
		{"site restore " + filepath.Join(dir, "none") + " --data " + dir, exitFailed, "no such file"},
		{"backup verify " + file, exitFailed, "no backup that this version can read"},
		{"backup verify", exitUsage, "want FILE"},
	} {
		if code, stdout, stderr := s.run(c.line); code != c.code || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("samya %s: exit status %d: %s", c.line, code, stderr)
		}
	}
	if raw, err := os.ReadFile(file); err != nil || !bytes.Equal(raw, []byte("the backup of yesterday")) {
		t.Errorf("the file has %q: %v", raw, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v: %v", entries, err)
	}
}

// TestRestoreOverARunningSite: the directory of a site that runs is refused.
func TestRestoreOverARunningSite(t *testing.T) {
	var data string
	c := sitetest.Start(t, []string{"us"}, func(cfg *site.Config) { data = cfg.DataDir })
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "us.backup")
	if code, _, stderr := s.run("site backup --site " + c.Site("us").GRPCAddr() + " --to " + file); code != exitOK {
		t.Fatal(stderr)
	}
	if code, _, stderr := s.run("site restore " + file + " --data " + data); code != exitFailed || !strings.Contains(stderr, "not empty") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}
