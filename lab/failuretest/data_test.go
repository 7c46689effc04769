package failuretest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/site/sitetest"
)

// TestDataDirectoryOfAnotherIsRefused starts sites on data of others, on data in use, and
// on files that are no database. Each site must end with an error that names the fault,
// and leave the data as it was.
func TestDataDirectoryOfAnotherIsRefused(t *testing.T) {
	beside(t)
	cluster := start(t, proc.Config{Sites: []string{"us", "eu", "as"}})
	us := dial(t, cluster.Site(0))
	create(t, 30, us)
	if _, err := us.acquire(t.Context(), "take", 3, 0); err != nil {
		t.Fatal(err)
	}
	// used is the data of a site that ended: the data at the start of a case.
	used := filepath.Join(t.TempDir(), "used")
	kill(t, cluster.Site(0))
	if err := os.CopyFS(used, os.DirFS(cluster.Site(0).Data)); err != nil {
		t.Fatal(err)
	}
	restart(t, cluster.Site(0))

	withFile := func(content []byte) func() string {
		return func() string {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "site.db"), content, 0o600); err != nil {
				t.Fatal(err)
			}
			return dir
		}
	}
	whole, err := os.ReadFile(filepath.Join(used, "site.db"))
	if err != nil {
		t.Fatal(err)
	}
	copied := withFile(whole)
	nothing := func() string { return t.TempDir() }
	noise := bytes.Repeat([]byte("no database at all\n"), 5000)
	tests := []struct {
		name string
		dir  func() string
		// The cluster, site and members on the command line; empty: the right ones.
		cluster, site, members string
		want                   string
	}{
		{name: "a second process", dir: func() string { return cluster.Site(0).Data }, want: "in use by another process"},
		{name: "another site's", dir: copied, site: "eu", want: `of site "us" of cluster "failuretest", not site "eu"`},
		{name: "another cluster's", dir: copied, cluster: "other", want: `of cluster "failuretest", not site "us" of cluster "other"`},
		{name: "fewer members", dir: copied, members: "us,eu", want: "member set differs"},
		{name: "other members", dir: copied, members: "us,eu,sa", want: "member set differs"},
		{name: "more members", dir: copied, members: "us,eu,as,sa", want: "member set differs"},
		{name: "no members for a new one", dir: nothing, members: "none", want: "needs the member set"},
		{name: "not a member", dir: nothing, members: "eu,as", want: `this site, "us", is not among them`},
		{name: "text", dir: withFile(noise), want: "unknown format"},
		{name: "a few bytes", dir: withFile([]byte("x")), want: "site.db"},
		{name: "both meta pages spoiled", dir: withFile(append(noise[:8192:8192], whole[8192:]...)), want: "unknown format"},
		{name: "half of a database", dir: withFile(whole[:len(whole)/2]), want: "that belong to it"},
		{name: "the head of a database", dir: withFile(whole[:8192]), want: "that belong to it"},
		{name: "a file in its place", dir: func() string { return filepath.Join(copied(), "site.db") }, want: "not a directory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := test.dir()
			before := contents(t, dir)
			status, output := siteOn(t, dir, cmp.Or(test.cluster, "failuretest"), cmp.Or(test.site, "us"), cmp.Or(test.members, "us,eu,as"))
			if status <= 0 {
				t.Errorf("status %d, want one above 0\n%s", status, output)
			}
			if !strings.Contains(output, test.want) || strings.Contains(output, "goroutine ") {
				t.Errorf("the output does not say %q and no more:\n%s", test.want, output)
			}
			if test.name != "a second process" && len(before) > 0 && !bytes.Equal(contents(t, dir), before) {
				t.Error("the data that was refused has changed")
			}
		})
	}
	if s := us.share(t); s.GetNet() != 3 {
		t.Errorf("the site whose data others wanted has %v", s)
	}
}

// contents returns the database in a directory, nil if there is none.
func contents(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "site.db"))
	if err != nil && !errors.Is(err, os.ErrNotExist) && !strings.Contains(err.Error(), "not a directory") {
		t.Fatal(err)
	}
	return b
}

// siteOn runs a site that is expected to end by itself, and returns its exit status and
// output. The site gets its members unless they are "none".
func siteOn(t *testing.T, dir, cluster, site, members string) (status int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	args := []string{
		"site", "--name", site, "--cluster", cluster, "--data", dir,
		"--grpc", sitetest.FreePort(t), "--http", sitetest.FreePort(t), "--gossip", sitetest.FreePort(t),
		"--preset", "local", "--exit-with-stdin",
	}
	if members != "none" {
		args = append(args, "--members", members)
	}
	cmd := exec.CommandContext(ctx, samya(t), args...)
	stdin, err := cmd.StdinPipe() // open until the end: it is a lifeline
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }() // the process has ended
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if ctx.Err() != nil {
		t.Errorf("still running after %s", patience)
	}
	return exitStatus(err), out.String()
}
