package demo

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/httpapi/httpapitest"
)

// TestMain lets this test program play the part of samya's processes. The first site has
// a fake app manager, and the app managers pass everything on to it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "site" || os.Args[1] == "appmgr") {
		os.Exit(child(os.Args[1], os.Args[2:]))
	}
	if filepath.Base(os.Args[0]) == "etcd" {
		os.Exit(etcd(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

func child(role string, args []string) int {
	flags := flag.NewFlagSet(role, flag.ContinueOnError)
	values := make(map[string]*string)
	for _, name := range []string{"name", "region", "cluster", "data", "members", "grpc", "http", "gossip", "preset", "join", "latency", "forecast-bin", "log", "node", "etcd-endpoints"} {
		values[name] = flags.String(name, "", "")
	}
	flags.Bool("exit-with-stdin", false, "")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	serve := func(addr string, handler http.Handler) {
		// No bound on idle connections: a client opens some ahead of need. A request met
		// by the end of its connection has no known outcome.
		server := &http.Server{Addr: addr, Handler: handler}
		go func() { fmt.Fprintln(os.Stderr, server.ListenAndServe()) }()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/die", func(http.ResponseWriter, *http.Request) {
		fmt.Fprintln(os.Stderr, "told to die")
		os.Exit(3)
	})
	switch role {
	case "site":
		// The app managers know the gossip address.
		serve(*values["gossip"], httpapitest.New())
	case "appmgr":
		first, _, _ := strings.Cut(*values["join"], ",")
		mux.Handle("/v1/", httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: first}))
	}
	serve(*values["http"], mux)
	<-stop.Done()
	return 0
}

// etcd is a member of etcd that does nothing but be healthy.
func etcd(args []string) int {
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	addr := args[slices.Index(args, "--listen-client-urls")+1]
	fmt.Fprintln(os.Stderr, http.ListenAndServe(strings.TrimPrefix(addr, "http://"), mux))
	return 1
}

// buffer is a writer that may be read while it is written.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// running is a demo under way, of this program's own processes.
type running struct {
	stdout, stderr buffer
	data           string
	cancel         context.CancelCauseFunc
	done           chan struct{}
	result         *Result
	err            error
}

func run(t *testing.T, change func(*Options)) *running {
	t.Helper()
	bin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &running{data: t.TempDir(), done: make(chan struct{})}
	opts := Options{
		Bin: bin, Duration: time.Second, Day: 20 * time.Second, Entity: "acme/vm", Limit: 5000, Rate: 200,
		Dir: r.data, Stdout: &r.stdout, Stderr: &r.stderr,
	}
	change(&opts)
	ctx, cancel := context.WithCancelCause(t.Context())
	r.cancel = cancel
	go func() {
		defer close(r.done)
		r.result, r.err = Run(ctx, opts)
	}()
	t.Cleanup(func() {
		cancel(nil)
		<-r.done
	})
	return r
}

// await polls until the output holds the text.
func (r *running) await(t *testing.T, text string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(30 * time.Second); ; {
		if strings.Contains(r.stdout.String(), text) {
			return
		}
		select {
		case <-tick.C:
		case <-r.done:
			t.Fatalf("the demo ended (%v) without %q:\n%s", r.err, text, r.stdout.String())
		case <-end:
			t.Fatalf("no %q:\n%s", text, r.stdout.String())
		}
	}
}

// addresses finds the addresses of the children in the output of the demo.
func addresses(text string) []string {
	var found []string
	for word := range strings.FieldsSeq(text) {
		if u, err := url.Parse(word); err == nil && u.Scheme == "http" && !slices.Contains(found, u.Host) {
			found = append(found, u.Host)
		}
	}
	return found
}

// gone fails the test if somebody listens at any of the addresses.
func gone(t *testing.T, addrs []string) {
	t.Helper()
	if len(addrs) == 0 {
		t.Error("no addresses to look at")
	}
	for _, addr := range addrs {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			t.Errorf("somebody still listens at %s", addr)
		}
	}
}

func TestRun(t *testing.T) {
	r := run(t, func(o *Options) { o.JSON = true })
	<-r.done
	if r.err != nil {
		t.Fatalf("%v\n%s", r.err, r.stderr.String())
	}
	if err := r.result.Verdict(); err != nil {
		t.Error(err)
	}
	if out := r.stdout.String(); strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, `{"granted":`) {
		t.Errorf("stdout is not one line of JSON:\n%s", out)
	}
	for _, want := range []string{"am-sa  ready after", "OK: the limit held", "stopping the cluster"} {
		if !strings.Contains(r.stderr.String(), want) {
			t.Errorf("no %q in\n%s", want, r.stderr.String())
		}
	}
}

func TestRunOfAHierarchy(t *testing.T) {
	r := run(t, func(o *Options) { o.Workload = Hierarchy })
	<-r.done
	if r.err != nil {
		t.Fatalf("%v\n%s", r.err, r.stdout.String())
	}
	if err := r.result.Verdict(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"creating 18 leaves", "\n  data  ", "OK: the limits of 3 orgs, 6 teams and 18 leaves held"} {
		if !strings.Contains(r.stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, r.stdout.String())
		}
	}
	var line struct {
		Entities []map[string]any `json:"entities"`
	}
	var out strings.Builder
	if err := r.result.writeJSON(&out); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out.String()), &line); err != nil || len(line.Entities) != 27 {
		t.Fatalf("%v in %s", err, out.String())
	}
	want := []string{"acquired_books", "acquired_ledger", "limit", "max_acquired", "name", "parent", "refused"}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(line.Entities[1]))); d != "" {
		t.Errorf("fields of an entity (-want +got):\n%s", d)
	}
}

// TestRunOfNodes: the active node of a site is killed, which ends neither the load nor the
// demo.
func TestRunOfNodes(t *testing.T) {
	bin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	if err := os.Symlink(bin, filepath.Join(path, "etcd")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path)
	r := run(t, func(o *Options) { o.HA = true; o.Duration = 3 * time.Second })
	<-r.done
	if r.err != nil {
		t.Fatalf("%v\n%s", r.err, r.stdout.String())
	}
	for _, want := range []string{"5 sites of 2 nodes", "sa-b   ready", "killed the active node of site eu: node a", "node b goes on with site eu", "OK: the limit held"} {
		if !strings.Contains(r.stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, r.stdout.String())
		}
	}
	t.Setenv("PATH", t.TempDir())
	r = run(t, func(o *Options) { o.HA = true })
	<-r.done
	if !errors.Is(r.err, proc.ErrNoEtcd) {
		t.Errorf("without etcd: %v", r.err)
	}
}

func TestRunKeepsTheClusterUntilToldToStop(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	r := run(t, func(o *Options) { o.Keep, o.Dir = true, "" })
	r.await(t, "App managers:")
	addrs := addresses(r.stdout.String())
	resp, err := http.Get("http://" + addrs[0] + "/v1/entities/acme/vm")
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("the cluster that was kept answers %s, %v", resp.Status, err)
	}
	enough := errors.New("enough")
	r.cancel(enough)
	<-r.done
	if !errors.Is(r.err, enough) || r.result == nil || r.result.Verdict() != nil {
		t.Errorf("error %v, result %+v", r.err, r.result)
	}
	if out := r.stdout.String(); !strings.Contains(out, "data and logs are left in "+temp) {
		t.Errorf("nobody is told what stays:\n%s", out)
	}
	gone(t, addrs)
}

func TestInterruptedRunLeavesNothing(t *testing.T) {
	for _, at := range []string{"starting", "us     ready", "making load", "am-us  ready"} {
		t.Run(at, func(t *testing.T) {
			r := run(t, func(o *Options) { o.Duration = time.Minute })
			r.await(t, at)
			enough := errors.New("enough")
			r.cancel(enough)
			<-r.done
			if !errors.Is(r.err, enough) {
				t.Errorf("error %v", r.err)
			}
		})
	}
}

func TestDeathOfASiteIsTold(t *testing.T) {
	r := run(t, func(o *Options) { o.Keep = true })
	r.await(t, "App managers:")
	addrs := addresses(r.stdout.String())
	if resp, err := http.Get("http://" + addrs[1] + "/die"); err == nil {
		_ = resp.Body.Close()
	}
	<-r.done
	death, ok := errors.AsType[*proc.DeathError](r.err)
	if !ok || !strings.Contains(r.err.Error(), "told to die") {
		t.Fatalf("error %v does not tell of the death", r.err)
	}
	if death.Process.HTTP != addrs[1] {
		t.Errorf("%s is said to have died", death.Process.Name)
	}
	gone(t, addrs)
}

func TestUsedDataDirectoryIsRefused(t *testing.T) {
	r := run(t, func(o *Options) {
		if err := os.WriteFile(filepath.Join(o.Dir, "x"), nil, 0o600); err != nil {
			t.Error(err)
		}
	})
	<-r.done
	if r.err == nil || !strings.Contains(r.err.Error(), "not empty") {
		t.Errorf("error %v", r.err)
	}
}
