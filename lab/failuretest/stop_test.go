package failuretest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/site/sitetest"
)

// TestATerminatedSiteEnds tells a site to end while acquires wait there that nothing can
// serve: the other sites are gone. The site ends in good order within 5 s.
func TestATerminatedSiteEnds(t *testing.T) {
	const soon = 5 * time.Second
	cluster := start(t, proc.Config{Sites: []string{"us", "eu", "as"}})
	clients := dialAll(t, cluster)
	create(t, 30, clients...)
	us, site := clients[0], cluster.Site(0)
	kill(t, cluster.Site(1))
	kill(t, cluster.Site(2))
	const callers = 20
	var all sync.WaitGroup
	got := make([]answer, callers)
	for i := range got {
		a := answer{id: fmt.Sprint("wait-", i), kind: ledger.Acquire, asked: 20}
		all.Go(func() { got[i] = send(t.Context(), us, a, patience) })
	}
	sitetest.Eventually(t, "the acquires wait", func() error {
		if s := us.share(t); s.GetWaiting() != callers {
			return fmt.Errorf("%d wait", s.GetWaiting())
		}
		return nil
	})
	began := time.Now()
	if err := site.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := expectDeath(t, cluster, site); err != nil {
		t.Errorf("the site ends with %v, want status 0:\n%s", err, site.Tail(5))
	}
	took := time.Since(began)
	if took > soon {
		t.Errorf("the site takes %s to end, want at most %s", took, soon)
	}
	all.Wait()
	for _, a := range got {
		if a.reason == "" {
			t.Errorf("granted without tokens: %+v", a)
		}
	}
	t.Logf("ended %s after SIGTERM with %d acquires waiting, who are told %s", took.Round(time.Millisecond), callers, got[0].reason)
	// A starting site needs the word of another site that its data is the latest.
	restart(t, cluster.Site(1), site)
	if s := us.share(t); s.GetNet() != 0 || s.GetWaiting() != 0 {
		t.Errorf("after the next start: %v", s)
	}
}

// TestAnInterruptedDemoLeavesNothing interrupts `samya demo` under load, as Ctrl-C does,
// and looks for leftover processes and ports.
func TestAnInterruptedDemoLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(samya(t), "demo", "--duration", "10m", "--dir", dir, "--load", "100")
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Should the test fail, the demo's children end with it.
	defer func() { _ = cmd.Process.Kill() }()
	loading, drained := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(drained)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "making load") {
				close(loading)
				break
			}
		}
		_, _ = io.Copy(io.Discard, stdout)
	}()
	select {
	case <-loading:
	case <-drained:
		t.Fatal("the demo ended before it made load")
	case <-time.After(2 * patience):
		t.Fatal("the demo makes no load")
	}
	children := childrenOf(t, cmd.Process.Pid)
	if len(children) != 2*len(regions) {
		t.Fatalf("%d processes, want a site and an app manager in each of %d regions", len(children), len(regions))
	}
	var ports []string
	for _, argv := range children {
		for i, arg := range argv[:len(argv)-1] {
			if arg == "--grpc" || arg == "--http" || arg == "--gossip" {
				ports = append(ports, argv[i+1])
			}
		}
	}
	if len(ports) != 3*len(children) {
		t.Fatalf("%d ports on the command lines %v", len(ports), children)
	}
	pause(t, time.Second)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		<-drained
		ended <- cmd.Wait()
	}()
	select {
	case err := <-ended:
		if status := exitStatus(err); status <= 0 {
			t.Errorf("status %d, want one above 0: %v", status, err)
		}
	case <-time.After(patience):
		t.Fatal("the demo does not end")
	}
	for pid, argv := range children {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there: %v", pid, argv)
		}
	}
	for _, addr := range ports {
		if conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", addr); err == nil {
			_ = conn.Close()
			t.Errorf("somebody still listens at %s", addr)
		}
	}
}

// childrenOf returns the command lines of a process's children, by their ids.
func childrenOf(t *testing.T, parent int) map[int][]string {
	t.Helper()
	found := make(map[int][]string)
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Skipf("needs /proc: %v", err)
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The fields behind the name in brackets: state, parent, …
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		dir := filepath.Dir(path)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			t.Fatal(err)
		}
		argv, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			t.Fatal(err)
		}
		found[pid] = strings.Split(strings.TrimSuffix(string(argv), "\x00"), "\x00")
	}
	return found
}
