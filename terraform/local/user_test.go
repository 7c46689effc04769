package local_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/local"
	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/terraform/tofutest"
)

// user is a client of the cluster that knows how many tokens it holds.
type user struct {
	t    *testing.T
	c    *tofutest.Config
	out  outputs
	held int64
}

// look reads the outputs anew.
func (u *user) look() {
	u.t.Helper()
	u.out = outputs{}
	u.c.Output(&u.out)
}

// at is a client of a region's first app manager.
func (u *user) at(region string) *httpapi.Client {
	u.t.Helper()
	if len(u.out.Endpoints[region]) == 0 {
		u.t.Fatalf("no endpoint of %s in %v", region, u.out.Endpoints)
	}
	files := tlsconf.Files{CA: u.out.Credentials.CA, Cert: u.out.Credentials.Certificate, Key: u.out.Credentials.Key}
	return u.as(region, files)
}

// as is a client with other credentials.
func (u *user) as(region string, files tlsconf.Files) *httpapi.Client {
	u.t.Helper()
	store, err := tlsconf.Open(files, nil)
	if err != nil {
		u.t.Fatal(err)
	}
	client, err := httpapi.New(u.out.Endpoints[region][0], &http.Transport{DialTLSContext: store.DialHTTP(""), DisableKeepAlives: true})
	if err != nil {
		u.t.Fatal(err)
	}
	return client
}

func (u *user) acquire(region string, tokens int64) {
	u.t.Helper()
	if _, err := u.at(region).Acquire(u.t.Context(), entity, httpapi.Request{Tokens: tokens, Wait: "10s"}); err != nil {
		u.t.Fatal(err)
	}
	u.held += tokens
}

func (u *user) release(region string, tokens int64) {
	u.t.Helper()
	if _, err := u.at(region).Release(u.t.Context(), entity, httpapi.Request{Tokens: tokens}); err != nil {
		u.t.Fatal(err)
	}
	u.held -= tokens
}

// balance compares the books of all sites with the tokens that the user holds.
func (u *user) balance(when string) {
	u.t.Helper()
	var last string
	eventually(u.t, "the books balance "+when, func() string {
		s, err := u.at("us-west1").GetEntity(u.t.Context(), entity)
		if err != nil {
			last = err.Error()
			return last
		}
		last = fmt.Sprintf("%+v", s)
		if !s.Complete || !s.Consistent {
			return last
		}
		return ""
	})
	s, err := u.at("us-west1").GetEntity(u.t.Context(), entity)
	if err != nil {
		u.t.Fatal(err)
	}
	if s.Acquired != u.held || s.Available+s.Acquired+s.InTransit != limit {
		u.t.Fatalf("%s: held %d of %d, the books say %+v", when, u.held, limit, s)
	}
}

// pids returns the processes that run.
func (u *user) pids() map[string]int {
	u.t.Helper()
	state, err := local.Read(u.out.Directory)
	if err != nil {
		u.t.Fatal(err)
	}
	pids := make(map[string]int)
	for _, name := range state.Names() {
		if state.Runs(name) {
			pids[name] = state.Processes[name].PID
		}
	}
	return pids
}

func (u *user) names() []string {
	u.t.Helper()
	var names []string
	for name := range u.pids() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// gone waits until a process is known not to run.
func (u *user) gone(name string) {
	u.t.Helper()
	eventually(u.t, name+" is gone", func() string {
		if _, runs := u.pids()[name]; runs {
			return "it runs"
		}
		return ""
	})
}

// changed checks that these processes were restarted, started and stopped, and no other.
func (u *user) changed(before map[string]int, restarted, started, stopped []string) {
	u.t.Helper()
	now := u.pids()
	for name, pid := range before {
		switch {
		case slices.Contains(stopped, name):
			if now[name] != 0 || runs(pid) {
				u.t.Errorf("%s was not stopped", name)
			}
		case slices.Contains(restarted, name):
			if now[name] == pid || now[name] == 0 {
				u.t.Errorf("%s was not restarted", name)
			}
		case now[name] != pid:
			u.t.Errorf("%s ran as %d and runs as %d", name, pid, now[name])
		}
	}
	for name := range now {
		if _, was := before[name]; !was && !slices.Contains(started, name) {
			u.t.Errorf("%s was started", name)
		}
	}
	for _, name := range started {
		if now[name] == 0 {
			u.t.Errorf("%s was not started", name)
		}
	}
}

// kill ends a process as kill -9 does.
func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("process %d", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// runs reports whether a process of that id runs, and is not waiting to be reaped.
func runs(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// free checks that nobody listens at addr.
func free(t *testing.T, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Errorf("port: %v", err)
		return
	}
	_ = l.Close()
}

// freePorts claims two stretches of 300 ports until the end of the test.
func freePorts(t *testing.T) (sites, managers int) {
	t.Helper()
	ports, err := proc.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ports.Release(); err != nil {
			t.Error(err)
		}
	})
	return ports.First, ports.First + proc.StretchPorts/2
}

// eventually looks until there is nothing to complain of.
func eventually(t *testing.T, what string, wrong func() string) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	end := time.After(time.Minute)
	for {
		last := wrong()
		if last == "" {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not within a minute: %s: %s", what, last)
		}
	}
}
