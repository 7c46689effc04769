package proc_test

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
)

func program(t *testing.T, argv ...string) proc.Program {
	t.Helper()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		t.Skip(err)
	}
	argv[0] = path
	return proc.Program{Name: "other", Argv: argv, Log: filepath.Join(t.TempDir(), "log")}
}

func TestProgramsAreStopped(t *testing.T) {
	s := proc.NewPrograms()
	g := program(t, "sleep", "1000")
	one, err := s.Start(g)
	if err != nil {
		t.Fatal(err)
	}
	// This program does not stop when it is asked.
	two, err := s.Start(program(t, "sh", "-c", "trap '' TERM; while :; do sleep 1; done"))
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{one.PID(), two.PID()}
	if one.Death() != nil || len(s.Processes()) != 2 {
		t.Error("a program that runs is said to have ended")
	}
	if err := s.Stop(t.Context(), 50*time.Millisecond); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		eventually(t, "a stopped program is gone", func() bool { return gone(pid) })
	}
	if _, err := s.Start(g); err == nil {
		t.Error("started after the stop")
	}
}

func TestProgramsEndTells(t *testing.T) {
	s := proc.NewPrograms()
	defer func() { _ = s.Stop(context.Background(), time.Second) }()
	p, err := s.Start(program(t, "sh", "-c", "echo wrong flag >&2; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	<-p.Died()
	if death := p.Death(); death == nil || !strings.Contains(death.Error(), "wrong flag") {
		t.Errorf("death %v, want the log's last line", death)
	}
	if _, err := s.Start(proc.Program{Name: "nothing"}); err == nil {
		t.Error("started without a command line")
	}
}

func TestStopWithoutAStart(t *testing.T) {
	if err := proc.NewPrograms().Stop(t.Context(), time.Second); err != nil {
		t.Error(err)
	}
}

// TestStretchesAreApart: no two holders get the same port, and a released stretch serves
// again.
func TestStretchesAreApart(t *testing.T) {
	single, err := proc.FreePorts(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(single[0])
	if err != nil {
		t.Fatal(err)
	}
	at, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	var held []*proc.Stretch
	// Other tests run at the same time and need stretches too.
	for range 4 {
		s, err := proc.Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if at >= s.First && at < s.First+proc.StretchPorts {
			t.Errorf("port %d of this process lies in the stretch from %d", at, s.First)
		}
		for _, other := range held {
			if d := s.First - other.First; d > -proc.StretchPorts && d < proc.StretchPorts {
				t.Errorf("stretches from %d and %d overlap", s.First, other.First)
			}
		}
		held = append(held, s)
	}
	for _, s := range held {
		if err := s.Release(); err != nil {
			t.Error(err)
		}
	}
	s, err := proc.Claim(t.Context())
	if err != nil {
		t.Fatalf("after all are released: %v", err)
	}
	if err := s.Release(); err != nil {
		t.Error(err)
	}
}

func TestFreePorts(t *testing.T) {
	addrs, err := proc.FreePorts(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, addr := range addrs {
		l, err := net.Listen("tcp", addr)
		if err != nil || seen[addr] {
			t.Errorf("%s: taken: %v", addr, err)
			continue
		}
		seen[addr] = true
		defer func() { _ = l.Close() }()
	}
}
