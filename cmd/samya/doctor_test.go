package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/doctor"
	"github.com/samya-db/samya/internal/buildtest"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/sitetest"
	"github.com/samya-db/samya/site/store"
)

// TestDoctorOfCluster: a healthy cluster is healthy. Of a stopped site the doctor finds
// that it is down and that others do not reach it, and of two the majority that is gone.
// The data of a stopped site is well, and that of a running site is refused.
func TestDoctorOfCluster(t *testing.T) {
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
	s := newShell(t)
	s.env["SAMYA_ADDR"] = "http://" + cluster.AppManager(0).HTTP
	finds := func(title string, code int, want ...string) {
		t.Helper()
		sitetest.Eventually(t, title, func() error {
			got, stdout, stderr := s.run("doctor --watch-for 1s --json")
			var r doctor.Report
			if err := json.Unmarshal([]byte(stdout), &r); err != nil {
				return fmt.Errorf("%w: %s%s", err, stdout, stderr)
			}
			var ids []string
			for _, f := range r.Findings {
				ids = append(ids, f.ID+" "+cmp.Or(f.Labels["site"], f.Labels["name"]))
			}
			slices.Sort(ids)
			ids = slices.Compact(ids)
			if got != code || !slices.Equal(ids, want) || len(r.Processes) != 4 {
				return fmt.Errorf("exit status %d, %q, %d processes, want %d, %q", got, ids, len(r.Processes), code, want)
			}
			return nil
		})
	}
	finds("all is well", exitOK)
	if _, stdout, _ := s.run("doctor --watch-for 1s"); !strings.HasPrefix(stdout, "healthy: nothing is wrong (cluster demo, 4 processes, looked for 1s)\n") {
		t.Error(stdout)
	}
	if code, _, stderr := s.run("doctor --data " + cluster.Site(1).Data); code != exitFailed || !strings.Contains(stderr, "a site runs on it") {
		t.Errorf("exit status %d, %s", code, stderr)
	}
	if err := cluster.Site(1).Stop(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	finds("eu is down", exitCritical, "SamyaSiteDown eu", "SamyaSiteUnreachable eu", "SamyaSitesApart as", "SamyaSitesApart us")
	if code, stdout, stderr := s.run("doctor --data " + cluster.Site(1).Data + " --json"); code != exitOK && code != exitWarning || !strings.Contains(stdout, `"site": "eu"`) {
		t.Errorf("exit status %d, %s%s", code, stdout, stderr)
	}
	if err := cluster.Site(2).Stop(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	finds("no majority", exitCritical, "SamyaNoMajority ", "SamyaSiteDown as", "SamyaSiteDown eu",
		"SamyaSiteUnreachable as", "SamyaSiteUnreachable eu", "SamyaSitesApart us")
	s.env["SAMYA_ADDR"] = "http://" + sitetest.FreePort(t)
	code, stdout, _ := s.run("doctor --watch-for 1s")
	if code != exitCritical || !strings.HasPrefix(stdout, "2 findings: 1 critical, 1 warning") || !strings.Contains(stdout, "None of 1 processes answers.") {
		t.Errorf("exit status %d, %s", code, stdout)
	}
}

// TestDoctorOfData: damage has the exit status of something critical, and the text says
// where it is.
func TestDoctorOfData(t *testing.T) {
	dir := t.TempDir()
	st, err := store.Open(store.Options{Dir: dir, Cluster: "prod", Site: "us", Members: []core.SiteID{"us"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	_, stdout, _ := s.run("doctor --data " + dir)
	for _, says := range []string{"(data in " + dir + ")\n", "Data of site us of cluster prod, format 4, incarnation ", "; members us.", "site.db has "} {
		if !strings.Contains(stdout, says) {
			t.Errorf("it does not say %q:\n%s", says, stdout)
		}
	}
	if err := os.Truncate(filepath.Join(dir, "site.db"), 9000); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := s.run("doctor --data " + dir)
	if code != exitCritical || stderr != "" || !strings.Contains(stdout, "CRITICAL SamyaDataDamaged") {
		t.Errorf("exit status %d, %s%s", code, stdout, stderr)
	}
}

// TestDoctorUsage: flags that are wrong are named.
func TestDoctorUsage(t *testing.T) {
	s := newShell(t)
	for line, says := range map[string]string{
		"--watch-for 10ms": "watch-for: 10ms, must be 1s to 1h0m0s", "--watch-for 2h": "watch-for: 2h0m0s",
		"--data x --watch-for 2s": "watch-for: it is about a cluster", "--data x --more-sites y": "more-sites: it is about a cluster",
		"x": "1 argument, want no arguments", "--addr ftp://x": "addr: ", "--more-app-managers ftp://x": "more-app-managers: ",
	} {
		if code, stdout, stderr := s.run("doctor " + line); code != exitUsage || stdout != "" || !strings.Contains(stderr, says) {
			t.Errorf("doctor %s: exit status %d, %s%s", line, code, stdout, stderr)
		}
	}
	if code, _, stderr := s.run("doctor --data " + filepath.Join(t.TempDir(), "none")); code != exitFailed || !strings.Contains(stderr, "no such file") {
		t.Errorf("exit status %d, %s", code, stderr)
	}
}
