package terraform_test

import (
	"bufio"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/terraform/tofutest"
)

// TestSandbox starts a site, and a member of etcd, under strace: the unit's filter of system
// calls lets all their system calls pass.
func TestSandbox(t *testing.T) {
	c := tofutest.Copy(t, "modules/region", "")
	c.Must("init")
	r := render(t, c, withNodes(nil))
	addrs, err := proc.FreePorts(t.Context(), 5)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("site", func(t *testing.T) {
		sandboxed(t, r.SiteFiles[first]["/etc/systemd/system/samya.service"].Content, "http://"+addrs[1]+"/readyz",
			tofutest.Samya(t), "site", "--name", "us", "--members", "us", "--data", filepath.Join(t.TempDir(), "data"),
			"--grpc", addrs[0], "--http", addrs[1], "--gossip", addrs[2])
	})
	t.Run("etcd", func(t *testing.T) {
		clients, peers := "http://"+addrs[3], "http://"+addrs[4]
		sandboxed(t, r.EtcdFiles[etcdName]["/etc/systemd/system/etcd.service"].Content, clients+"/health",
			program(t, "etcd"), "--name", "one", "--data-dir", filepath.Join(t.TempDir(), "data"), "--initial-cluster", "one="+peers,
			"--listen-client-urls", clients, "--advertise-client-urls", clients,
			"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers)
	})
}

// sandboxed runs a program under strace until it is ready, and holds its system calls against
// a unit.
func sandboxed(t *testing.T, unit, ready string, argv ...string) {
	t.Helper()
	allowed := filter(t, unit)
	strace := program(t, "strace")
	trace := filepath.Join(t.TempDir(), "trace")
	m := &machine{log: &buffer{}, died: make(chan error, 1), argv: argv}
	cmd := exec.Command(strace, append([]string{"-f", "-qq", "-e", "signal=none", "-o", trace}, m.argv...)...)
	cmd.Stdout, cmd.Stderr = m.log, m.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { m.died <- cmd.Wait() }()
	eventually(t, []*machine{m}, "it is ready", func() error {
		resp, err := http.Get(ready)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers %s", resp.Status)
		}
		return nil
	})
	// The group: strace and the traced program.
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-m.died; err != nil {
		// It was told to end; strace says so in its own way.
		t.Log(err)
	}
	used := calls(t, trace)
	if len(used) < 30 {
		t.Fatalf("it makes %d system calls: the trace is not of the program", len(used))
	}
	for _, call := range used {
		if !allowed[call] {
			t.Errorf("the unit does not let %s pass, which the program needs", call)
		}
	}
	if allowed["mount"] || allowed["init_module"] || allowed["ptrace"] {
		t.Error("the unit lets pass what nobody needs")
	}
}

var filterLine = regexp.MustCompile(`(?m)^SystemCallFilter=(~?)(.*)$`)

// filter returns the system calls that a unit lets pass, as systemd reads the unit.
func filter(t *testing.T, unit string) map[string]bool {
	t.Helper()
	allowed := make(map[string]bool)
	for _, m := range filterLine.FindAllStringSubmatch(unit, -1) {
		for set := range strings.FieldsSeq(m[2]) {
			calls := members(t, set)
			if m[1] == "" {
				maps.Copy(allowed, calls)
				continue
			}
			maps.DeleteFunc(allowed, func(call string, _ bool) bool { return calls[call] })
		}
	}
	if len(allowed) < 100 {
		t.Fatalf("the unit lets %d system calls pass", len(allowed))
	}
	return allowed
}

// members returns the system calls of a set of systemd, and of the sets in it.
func members(t *testing.T, set string) map[string]bool {
	t.Helper()
	out, err := exec.Command(program(t, "systemd-analyze"), "syscall-filter", set).Output()
	if err != nil {
		t.Fatalf("systemd-analyze syscall-filter %s: %v", set, err)
	}
	all := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		name := strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, " "), name == "", strings.HasPrefix(name, "#"):
		case strings.HasPrefix(name, "@"):
			maps.Copy(all, members(t, name))
		default:
			all[name] = true
		}
	}
	return all
}

var call = regexp.MustCompile(`^\d+ +([a-z_0-9]+)\(`)

// calls returns the system calls of a trace, each once.
func calls(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	seen := make(map[string]bool)
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if m := call.FindStringSubmatch(s.Text()); m != nil {
			seen[m[1]] = true
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(seen))
}
