package proc_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
)

const deadline = 20 * time.Second

// start starts a cluster that is stopped with the test.
func start(t *testing.T, cfg proc.Config) *proc.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	c, err := proc.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return c
}

// gone reports whether no process has that id.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// eventually polls until ok or the deadline.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(deadline); ; {
		if ok() {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not within %s: %s", deadline, what)
		}
	}
}

func TestStartAndStopLeaveNothing(t *testing.T) {
	var ready []string
	cfg := config(t.TempDir())
	cfg.Ready = func(name string) { ready = append(ready, name) }
	c := start(t, cfg)
	if len(ready) != 3 {
		t.Errorf("told ready: %v, want three names", ready)
	}
	all := append(c.Sites(), c.AppManagers()...)
	var pids []int
	for _, p := range all {
		if p.PID() == 0 || gone(p.PID()) {
			t.Errorf("%s does not run", p.Name)
		}
		pids = append(pids, p.PID())
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, p := range all {
		if !gone(pids[i]) {
			t.Errorf("process %d of %s is still there", pids[i], p.Name)
		}
		for _, addr := range []string{p.GRPC, p.HTTP, p.Gossip} {
			l, err := net.Listen("tcp", addr)
			if err != nil {
				t.Errorf("port of %s: %v", p.Name, err)
				continue
			}
			_ = l.Close()
		}
		if !strings.HasSuffix(p.Tail(1), "stops") {
			t.Errorf("%s was not asked to stop; its log ends %q", p.Name, p.Tail(1))
		}
	}
	select {
	case death := <-c.Deaths():
		t.Errorf("a stop counts as an unexpected end: %v", death)
	default:
	}
	if err := c.Site(0).Start(); err == nil {
		t.Error("a process started after the cluster's stop")
	}
}

func TestKillAndStartAgainKeepPortsAndData(t *testing.T) {
	c := start(t, config(t.TempDir()))
	p := c.Site(1)
	before, pid := portsOf(p), p.PID()
	if err := p.Start(); err == nil {
		t.Error("started while it runs")
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if !gone(pid) || p.PID() != 0 {
		t.Errorf("process %d is still there", pid)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("kill of a dead process: %v", err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := p.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	if p.PID() == pid || portsOf(p) != before {
		t.Errorf("started again as %d on %v, was %d on %v", p.PID(), portsOf(p), pid, before)
	}
	if got := strings.Count(p.Tail(10), "starts"); got != 2 {
		t.Errorf("the log tells of %d starts, want 2:\n%s", got, p.Tail(10))
	}
	select {
	case death := <-c.Deaths():
		t.Errorf("a kill that was asked for counts as an unexpected end: %v", death)
	default:
	}
}

// TestJoin: a site that joins later has ports and data of its own, and ends with the
// cluster.
func TestJoin(t *testing.T) {
	c := start(t, config(t.TempDir()))
	p, err := c.Join(t.Context(), "as", c.Site(0).Gossip, c.Site(1).Gossip)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := p.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	args := strings.Join(p.Args, " ")
	if !strings.HasSuffix(args, "--join "+c.Site(0).Gossip+","+c.Site(1).Gossip) || strings.Contains(args, "--members") {
		t.Errorf("started with %s", args)
	}
	if c.Site(2) != p || p.Data == c.Site(0).Data || portsOf(p) == portsOf(c.Site(0)) {
		t.Errorf("%s on %v with %s is not the third site, or not itself", p.Name, portsOf(p), p.Data)
	}
	pid := p.PID()
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !gone(pid) {
		t.Errorf("process %d of %s is still there", pid, p.Name)
	}
}

func TestUnexpectedDeathIsTold(t *testing.T) {
	c := start(t, config(t.TempDir()))
	resp, err := http.Get("http://" + c.Site(0).HTTP + "/die")
	if err == nil {
		_ = resp.Body.Close()
	}
	select {
	case death := <-c.Deaths():
		if death.Process != c.Site(0) {
			t.Errorf("%s is said to have died", death.Process.Name)
		}
		for _, want := range []string{"us ended", "exit status 7", "us is told to die"} {
			if !strings.Contains(death.Error(), want) {
				t.Errorf("%q does not say %q", death, want)
			}
		}
	case <-time.After(deadline):
		t.Fatal("nobody told")
	}
}

func TestTakenPortIsAvoided(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.SiteArgs = []string{"--fail-once", filepath.Join(cfg.Dir, "failed")}
	start(t, cfg)
	if _, err := os.Stat(filepath.Join(cfg.Dir, "failed")); err != nil {
		t.Errorf("no process failed, the test shows nothing: %v", err)
	}
}

func TestFailedStartLeavesNothing(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.AppManagerArgs = []string{"--no-such-flag"}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	c, err := proc.Start(ctx, cfg)
	if err == nil {
		_ = c.Stop(ctx)
		t.Fatal("started")
	}
	death, ok := errors.AsType[*proc.DeathError](err)
	if !ok || death.Process.Name != "am-us" || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("error %v does not tell what failed", err)
	}
}

func TestStubbornProcessIsKilled(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.SiteArgs = []string{"--stubborn"}
	cfg.Grace = 100 * time.Millisecond
	c := start(t, cfg)
	pid := c.Site(0).PID()
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !gone(pid) {
		t.Errorf("process %d is still there", pid)
	}
}

func TestKilledParentTakesItsChildrenAlong(t *testing.T) {
	dir := t.TempDir()
	bin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "parent", dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ids []byte
	eventually(t, "the parent wrote its children's ids", func() bool {
		ids, err = os.ReadFile(filepath.Join(dir, "ids"))
		return err == nil
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	fields := strings.Fields(string(ids))
	if len(fields) != 3 {
		t.Fatalf("%d children, want 3", len(fields))
	}
	for _, field := range fields {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "child "+field+" is gone", func() bool { return gone(pid) || zombie(pid) })
	}
}

// zombie reports whether the process has ended and waits to be reaped by
// whoever adopted it.
func zombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func portsOf(p *proc.Process) [3]string { return [3]string{p.GRPC, p.HTTP, p.Gossip} }
