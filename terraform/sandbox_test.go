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

// TestSandbox starts a site under strace: the unit's filter of system calls lets all its
// system calls pass.
func TestSandbox(t *testing.T) {
	c := tofutest.Copy(t, "modules/region", "")
	c.Must("init")
	unit := render(t, c, nil).SiteFiles["europe-west2-1"]["/etc/systemd/system/samya.service"].Content
	allowed := filter(t, unit)
	strace := program(t, "strace")
	addrs, err := proc.FreePorts(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	m := &machine{log: &buffer{}, died: make(chan error, 1), argv: []string{
		tofutest.Samya(t), "site", "--name", "us", "--members", "us", "--data", filepath.Join(dir, "data"),
		"--grpc", addrs[0], "--http", addrs[1], "--gossip", addrs[2],
	}}
	cmd := exec.Command(strace, append([]string{"-f", "-qq", "-e", "signal=none", "-o", trace}, m.argv...)...)
	cmd.Stdout, cmd.Stderr = m.log, m.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { m.died <- cmd.Wait() }()
	eventually(t, []*machine{m}, "the site is ready", func() error {
		resp, err := http.Get("http://" + addrs[1] + "/readyz")
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers %s", resp.Status)
		}
		return nil
	})
	// The group: strace and the traced site.
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-m.died; err != nil {
		// It was told to end; strace says so in its own way.
		t.Log(err)
	}
	used := calls(t, trace)
	if len(used) < 30 {
		t.Fatalf("a site makes %d system calls: the trace is not of one", len(used))
	}
	for _, call := range used {
		if !allowed[call] {
			t.Errorf("the unit does not let %s pass, which a site needs", call)
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
