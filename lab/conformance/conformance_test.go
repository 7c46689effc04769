package conformance

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/buildtest"
	"github.com/samya-db/samya/internal/devca"
	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/lab/conformance/sdk"
)

// clientsEnv lists the clients to be tried, with commas between; empty: the Go client alone, by
// the rows that neither wait nor do faults. The others need their languages, and what make
// clients builds.
const clientsEnv = "SAMYA_CONFORMANCE"

// onlyEnv names the only row to be tried; empty: all.
const onlyEnv = "SAMYA_CONFORMANCE_ROW"

// driveEnv has this program drive the Go client.
const driveEnv = "SAMYA_CONFORMANCE_DRIVER"

// operatorToken is the token of the callers that may do all that rows do.
const operatorToken = "token-of-the-operator-0123456789abcdef"

// clients are the folder of the other clients, from this folder.
const clients = "../../clients"

func TestMain(m *testing.M) {
	if os.Getenv(driveEnv) != "" {
		if err := sdk.Run(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// drivers are the command lines of the drivers, after the folder that they run in.
var drivers = map[string]struct {
	dir  string
	argv []string
}{
	"Go":             {".", nil},
	"TypeScript":     {clients + "/typescript", []string{"node", "dist/conformance/driver.js"}},
	"Python":         {clients + "/python", []string{"python3", "conformance/driver.py", "--sync"}},
	"Python asyncio": {clients + "/python", []string{"python3", "conformance/driver.py"}},
}

// tried returns the names of the clients to be tried.
func tried(t *testing.T) []string {
	t.Helper()
	text := os.Getenv(clientsEnv)
	if text == "" {
		return []string{"Go"}
	}
	names := strings.Split(text, ",")
	for _, name := range names {
		if _, ok := drivers[name]; !ok {
			t.Fatalf("%s: there is no client %q; there are %v", clientsEnv, name, slices.Sorted(maps.Keys(drivers)))
		}
	}
	return names
}

// TestConformance: each client keeps each promise of the table.
func TestConformance(t *testing.T) {
	race.OtherProcesses(t)
	rows, err := Load(clients + "/conformance/scenarios.json")
	if err != nil {
		t.Fatal(err)
	}
	names := tried(t)
	b := bench(t, names)
	results := Results{}
	began := time.Now()
	rows = slices.DeleteFunc(rows, func(row Row) bool { return !chosen(row) })
	if len(rows) == 0 {
		t.Fatalf("%s: there is no such row", onlyEnv)
	}
	for _, row := range rows {
		problems, err := b.Play(t.Context(), row)
		if err != nil {
			t.Fatal(err)
		}
		results[row.Name] = problems
		for name, problem := range problems {
			if problem != "" {
				t.Errorf("%s: %q: %s", name, row.Name, problem)
			}
		}
	}
	t.Logf("%d rows, %d clients, %.0f s\n%s", len(rows), len(names), time.Since(began).Seconds(), table(rows, names, results))
	examples(t, b, names)
}

// examples runs the examples of the clients, which their pages show.
func examples(t *testing.T, b *Bench, names []string) {
	t.Helper()
	c := b.Cluster
	targets := "http://" + c.AppManager(0).HTTP + ",http://" + c.AppManager(1).HTTP
	if out, err := b.Drivers[0].Do("create", map[string]any{"entity": "acme/seats", "limit": 100}, patience); err != nil || out["error"] != nil {
		t.Fatalf("create the entity of the examples: %v %v", err, out["error"])
	}
	for _, e := range []struct{ client, dir, program, file string }{
		{"TypeScript", "typescript", "node", "examples/seats.mjs"},
		{"Python", "python", "python3", "examples/seats.py"},
		{"Python asyncio", "python", "python3", "examples/seats_asyncio.py"},
	} {
		if !slices.Contains(names, e.client) {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		cmd := exec.CommandContext(ctx, e.program, e.file)
		cmd.Dir = filepath.Join(clients, e.dir)
		cmd.Env = append(os.Environ(), "SAMYA_TARGETS="+targets, "SAMYA_TOKEN="+operatorToken, "PYTHONPATH=.")
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil || !strings.Contains(string(out), "granted 3 seats") {
			t.Errorf("%s: %v\n%s", e.file, err, out)
		}
	}
}

// TestPagesShowTheExamples: the page of each client has its examples word for word.
func TestPagesShowTheExamples(t *testing.T) {
	for file, page := range map[string]string{
		"typescript/examples/seats.mjs": "typescript/README.md", "python/examples/seats.py": "python/README.md",
		"python/examples/seats_asyncio.py": "python/README.md",
	} {
		example, err := os.ReadFile(filepath.Join(clients, file))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(clients, page))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\n"+string(example)+"```\n") {
			t.Errorf("%s does not show %s as it is", page, file)
		}
	}
}

// chosen reports whether a row is to be tried.
func chosen(row Row) bool {
	if only := os.Getenv(onlyEnv); only != "" {
		return row.Name == only
	}
	return os.Getenv(clientsEnv) != "" || !slices.ContainsFunc(row.Steps, func(s Step) bool { return s.Fault != "" || s.Pass != 0 })
}

// table shows the results as a table of Markdown.
func table(rows []Row, names []string, results Results) string {
	var out strings.Builder
	fmt.Fprintf(&out, "| row | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for _, row := range rows {
		fmt.Fprintf(&out, "| %s |", row.Name)
		for _, name := range names {
			if results[row.Name][name] == "" {
				out.WriteString(" ok |")
			} else {
				out.WriteString(" FAILED |")
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// bench starts a cluster, the drivers, and what stands between.
func bench(t *testing.T, names []string) *Bench {
	t.Helper()
	ctx := t.Context()
	dir := t.TempDir()
	bin, err := buildtest.Samya(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string]string{"operator": operatorToken, "viewer": "token-of-the-viewer-0123456789abcdef"}
	c, err := proc.Start(ctx, proc.Config{
		Bin: bin, Dir: dir, Cluster: "conformance", Sites: []string{"a", "b", "c"}, AppManagers: []string{"a", "b"},
		AppManagerArgs: []string{"--access-file", accessFile(t, dir, tokens)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
	})
	b := &Bench{Cluster: c}
	for _, name := range names {
		b.Drivers = append(b.Drivers, driver(t, name))
	}
	ca, security := authority(t, filepath.Join(dir, "ca"))
	other, _ := authority(t, filepath.Join(dir, "other-ca"))
	httpAt := func(p *proc.Process) string { return p.HTTP }
	grpcAt := func(p *proc.Process) string { return p.GRPC }
	webs, rpcs := b.front(t, httpAt, security), b.front(t, grpcAt, security)
	for _, d := range b.Drivers {
		at, scheme := webs, "http"
		if d.Name == "Go" {
			at, scheme = rpcs, ""
		}
		for client, with := range at.clients(scheme, tokens, ca, other) {
			with["client"] = client
			out, err := d.Do("open", with, patience)
			if err != nil || out["error"] != nil {
				t.Fatalf("%s: open %s: %v %v", d.Name, client, err, out["error"])
			}
		}
	}
	return b
}

// driver starts the driver of a client; it is stopped with the test.
func driver(t *testing.T, name string) *Driver {
	t.Helper()
	how := drivers[name]
	if how.argv == nil {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		how.argv = []string{self}
	} else if _, err := exec.LookPath(how.argv[0]); err != nil {
		t.Fatalf("the driver of %s: %v", name, err)
	}
	d, err := StartDriver(name, how.dir, how.argv, driveEnv+"=yes")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// accessFile writes the access file of the app managers.
func accessFile(t *testing.T, dir string, tokens map[string]string) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("callers:\n")
	for _, role := range slices.Sorted(maps.Keys(tokens)) {
		sum := sha256.Sum256([]byte(tokens[role]))
		fmt.Fprintf(&text, "  - {name: %s, role: %s, token_sha256: %s}\n", role, role, hex.EncodeToString(sum[:]))
	}
	path := filepath.Join(dir, "access.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// authority makes a certificate authority in a folder, and a certificate of it for this
// machine.
func authority(t *testing.T, dir string) (caFile string, security *tls.Config) {
	t.Helper()
	ca, err := devca.Create(dir, "conformance", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := ca.Issue(tlsconf.Identity{Kind: tlsconf.AppManager, Name: "am-a"}, []string{"127.0.0.1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, devca.CertFile), &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"},
	}
}

// fronts are the addresses of app managers by one API, directly and through proxies.
type fronts struct{ first, second, proxied, unlucky, secure, nowhere string }

// front makes the proxies of one API.
func (b *Bench) front(t *testing.T, at func(*proc.Process) string, security *tls.Config) fronts {
	t.Helper()
	first, second := at(b.Cluster.AppManager(0)), at(b.Cluster.AppManager(1))
	proxy := func(security *tls.Config) *Proxy {
		p, err := NewProxy(t.Context(), first, security)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() }) // nothing is under way any more
		return p
	}
	a, b2, secure := proxy(nil), proxy(nil), proxy(security)
	b.Proxies = append(b.Proxies, a, b2)
	ports, err := proc.FreePorts(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return fronts{first, second, a.Addr(), b2.Addr(), secure.Addr(), ports[0]}
}

// clients are the clients that rows name, with the arguments of their opening.
func (f fronts) clients(scheme string, tokens map[string]string, ca, other string) map[string]map[string]any {
	url := func(scheme, at string) string {
		if scheme == "" {
			return at
		}
		return scheme + "://" + at
	}
	plain := func(at ...string) map[string]any {
		var targets []string
		for _, a := range at {
			targets = append(targets, url(scheme, a))
		}
		return map[string]any{"targets": targets, "token": tokens["operator"]}
	}
	secure := func(ca string) map[string]any {
		s := scheme
		if s != "" {
			s = "https"
		}
		return map[string]any{"targets": []string{url(s, f.secure)}, "token": tokens["operator"], "ca": ca}
	}
	stranger, viewer := plain(f.first, f.second), plain(f.first, f.second)
	stranger["token"], viewer["token"] = "token-of-nobody-0123456789abcdef", tokens["viewer"]
	return map[string]map[string]any{
		"main": plain(f.first, f.second), "proxied": plain(f.proxied, f.second), "unlucky": plain(f.unlucky),
		"stranger": stranger, "viewer": viewer, "secure": secure(ca), "distrustful": secure(other), "nowhere": plain(f.nowhere),
	}
}
