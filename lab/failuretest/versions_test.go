package failuretest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/samya-db/samya/client"
	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/buildtest"
	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/site/sitetest"
)

// versioned has the program as the build of a version.
var versioned sync.Map

// ofVersion returns the path of the program, built from this tree as that of a version.
func ofVersion(t *testing.T, version int) string {
	t.Helper()
	race.OtherProcesses(t)
	build, _ := versioned.LoadOrStore(version, sync.OnceValues(func() (string, error) {
		return buildtest.Versioned(context.Background(), scratch, version)
	}))
	bin, err := build.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// becomes has a process that does not run start as another program with the same
// arguments.
func becomes(p *proc.Process, bin string) {
	p.Under = []string{"sh", "-c", `shift; exec "` + bin + `" "$@"`, "sh"}
}

// exchange stops a process in good order and starts it with the build of a version.
func exchange(t *testing.T, p *proc.Process, version int) {
	t.Helper()
	if err := p.Stop(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	becomes(p, ofVersion(t, version))
	restart(t, p)
}

// command runs a command of the program against an app manager.
func command(t *testing.T, manager *proc.Process, args ...string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), samya(t), append(args, "--addr", "http://"+manager.HTTP)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestRollingUpgrade exchanges the builds of a cluster one by one, under load: to the
// next version, one back and forth, and after a raise to the version after that. Tokens
// are never short, so no request is refused; whatever was granted is in the books.
func TestRollingUpgrade(t *testing.T) {
	beside(t)
	const limit, callers = 60_000, 20
	cluster := start(t, proc.Config{Bin: ofVersion(t, 1), Sites: regions, AppManagers: regions[:1]})
	clients, manager := dialAll(t, cluster), cluster.AppManager(0)
	create(t, limit, clients...)
	cfg := sdk.Config{RepeatTime: 3 * time.Minute}
	for _, c := range clients {
		cfg.Targets = append(cfg.Targets, sdk.Target{Address: c.site.GRPC, Region: c.site.Name})
	}
	near := make([]*sdk.Client, len(clients)) // a client near each site
	for i := range near {
		cfg.Region = regions[i]
		var err error
		if near[i], err = sdk.New(cfg); err != nil {
			t.Fatal(err)
		}
		defer near[i].Close(context.Background())
	}
	var all sync.WaitGroup
	var held, calls, resumed atomic.Int64
	over := make(chan struct{})
	for i := range callers {
		c := near[i%len(near)]
		all.Go(func() {
			var mine int64
			for running := true; running; {
				moved, _, err := sdkMove(t.Context(), c, mine, nil)
				for errors.Is(err, sdk.ErrOutcomeUnknown) {
					resumed.Add(1)
					moved, _, err = sdkMove(t.Context(), c, mine, err)
				}
				if err != nil {
					t.Errorf("refused: %v", err)
					break
				}
				calls.Add(1)
				mine += moved
				select {
				case <-over:
					running = false
				default:
				}
			}
			held.Add(mine)
		})
	}
	defer sync.OnceFunc(all.Wait)()
	raise := func() (string, error) { return command(t, manager, "cluster", "version", "--raise") }

	exchange(t, cluster.Site(0), 2)
	const lacking = "VERSION_MISMATCH: the cluster stays at version 1: site "
	if out, err := raise(); err == nil || !strings.Contains(out, lacking) || !strings.Contains(out, "has a build that speaks version 1 alone") {
		t.Errorf("raised among older builds: %v\n%s", err, out)
	}
	exchange(t, cluster.Site(1), 2)
	exchange(t, cluster.Site(0), 1)
	exchange(t, cluster.Site(0), 2)
	exchange(t, cluster.Site(2), 2)
	for _, p := range cluster.Sites()[3:] {
		exchange(t, p, 2)
	}
	sitetest.Eventually(t, "the raise", func() error {
		if out, err := raise(); err != nil || out != "the cluster is now of version 2\n" {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
	// Back to the build before is now refused, in words, and the data stays as it was.
	us := cluster.Site(0)
	if err := us.Stop(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	becomes(us, ofVersion(t, 1))
	if err := us.Start(); err != nil {
		t.Fatal(err)
	}
	const old = "the data is of version 2, this build speaks version 1 alone: the build is too old; start a build of version 2 or 3"
	if err := expectDeath(t, cluster, us); exitStatus(err) <= 0 || !strings.Contains(us.Tail(5), old) {
		t.Errorf("a build of version 1 on data of version 2: %v\n%s", err, us.Tail(5))
	}
	becomes(us, ofVersion(t, 3))
	restart(t, us)
	exchange(t, cluster.Site(1), 3)
	close(over)
	all.Wait()
	t.Logf("%d calls, %d resumed, %d tokens held", calls.Load(), resumed.Load(), held.Load())
	settled(t, limit, held.Load(), clients...)
	sitetest.Eventually(t, "the app manager reaches all", func() error {
		out, err := command(t, manager, "cluster", "version")
		if err != nil || !strings.HasPrefix(out, "the cluster is of version 2\n") || strings.Count(out, "2 to 3") != 2 || strings.Contains(out, "?") {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
}

// TestBuildTwoVersionsAhead starts a site with a build two versions ahead: on its own
// data, which the build refuses, and on an empty disk, where the other sites refuse the
// site. Each says so in words, and the others serve on.
func TestBuildTwoVersionsAhead(t *testing.T) {
	beside(t)
	cluster := start(t, proc.Config{Sites: []string{"us", "eu", "as"}, AppManagers: []string{"eu"}})
	clients := dialAll(t, cluster)
	create(t, 300, clients...)
	us, manager := cluster.Site(0), cluster.AppManager(0)
	if err := us.Stop(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	becomes(us, ofVersion(t, 4))
	if err := us.Start(); err != nil {
		t.Fatal(err)
	}
	const data = "the data is of version 2, this build speaks versions 3 to 4: the build is too new; start a build of version 2, raise the version of the cluster, then upgrade"
	if err := expectDeath(t, cluster, us); exitStatus(err) <= 0 || !strings.Contains(us.Tail(5), data) {
		t.Errorf("a build of version 4 on data of version 2: %v\n%s", err, us.Tail(5))
	}
	t.Logf("us, on its own data: %s", lineWith(us.Tail(5), data))
	args := us.Args
	for i := range args {
		if args[i] == us.Data {
			args[i] = t.TempDir()
		}
	}
	if err := us.Start(); err != nil {
		t.Fatal(err)
	}
	const says = "site us has a build that speaks versions 3 to 4"
	sitetest.Eventually(t, "the refusal", func() error {
		out, err := command(t, manager, "sites")
		if err != nil || !strings.Contains(out, "us is refused: "+says) {
			return fmt.Errorf("%w\n%s", err, out)
		}
		t.Logf("samya sites:\n%s", out)
		return nil
	})
	if _, err := clients[1].acquire(t.Context(), "on", 120, patience); err != nil {
		t.Errorf("the others do not serve: %v", err)
	}
	if tail := cluster.Site(1).Tail(200); strings.Count(tail, says) != 1 {
		t.Errorf("eu logs the refusal %d times:\n%s", strings.Count(tail, says), tail)
	}
}

// TestJoinerTwoVersionsAhead: a site that joins with a build two versions ahead is
// refused, before it has a seat as any site, and then for its version. That refusal names
// both versions, in the site's log and in the list of the members, and the cluster is as
// before. With the next build the site joins.
func TestJoinerTwoVersionsAhead(t *testing.T) {
	beside(t)
	cluster := start(t, proc.Config{Sites: []string{"us", "eu", "as"}, AppManagers: []string{"eu"}})
	clients, manager := dialAll(t, cluster), cluster.AppManager(0)
	create(t, 300, clients...)
	listed := func() string {
		out, err := command(t, manager, "member", "list")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out
	}
	serving := func() (out string) {
		t.Helper()
		sitetest.Eventually(t, "all members serve", func() error {
			if out = listed(); strings.Count(out, " serving ") != 3 {
				return errors.New(out)
			}
			return nil
		})
		// The app manager asks another site if the site of its region is slow.
		members, _, _ := strings.Cut(out, "as seen by")
		return members
	}
	before := serving()
	programs := proc.NewPrograms()
	defer func() {
		if err := programs.Stop(context.WithoutCancel(t.Context()), patience); err != nil {
			t.Error(err)
		}
	}()
	join := func(version int) *proc.Process {
		t.Helper()
		ports, err := proc.FreePorts(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		west, err := programs.Start(proc.Program{Name: "west", Log: filepath.Join(t.TempDir(), "west.log"), Argv: []string{
			ofVersion(t, version), "site", "--name", "west", "--region", "west", "--cluster", "failuretest", "--data", t.TempDir(), "--preset", "local",
			"--grpc", ports[0], "--http", ports[1], "--gossip", ports[2], "--join", cluster.Site(0).Gossip,
		}})
		if err != nil {
			t.Fatal(err)
		}
		return west
	}
	const says = "site west has a build that speaks versions 3 to 4, site "
	refused := func(west *proc.Process, says, ends string) {
		t.Helper()
		sitetest.Eventually(t, "the refusal in the log of west", func() error {
			line := lineWith(west.Tail(200), says)
			if !strings.Contains(line, ends) {
				return fmt.Errorf("%s", west.Tail(20))
			}
			t.Logf("west: %s", line)
			return nil
		})
	}
	west := join(4)
	refused(west, "a peer is refused", "is no other member")
	if after := serving(); after != before {
		t.Errorf("the members are now\n%s\nbefore\n%s", after, before)
	}
	if out, err := command(t, manager, "member", "add", "west", "--no-wait"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	refused(west, says, "a build that speaks versions 1 to 2: the build of site west is too new; start there a build of version 2 or 3")
	sitetest.Eventually(t, "the refusal in the list of the members", func() error {
		out := listed()
		if line := lineWith(out, "joining"); !strings.Contains(line, "west is refused: "+says) {
			return fmt.Errorf("%s", out)
		}
		t.Logf("samya member list:\n%s", out)
		return nil
	})
	for i, c := range clients {
		if _, err := c.acquire(t.Context(), fmt.Sprintf("on-%d", i), 90, patience); err != nil {
			t.Errorf("%s does not serve: %v", cluster.Site(i).Name, err)
		}
	}
	if err := west.Stop(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	join(3)
	if out, err := command(t, manager, "member", "add", "west", "--timeout", "1m"); err != nil || !strings.HasSuffix(out, "west is a member\n") {
		t.Errorf("with the next build: %v\n%s", err, out)
	}
}

// lineWith returns the first line of a text that contains a word; empty for none.
func lineWith(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
