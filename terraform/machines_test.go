package terraform_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/devca"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/terraform/tofutest"
)

// TestCluster starts the unchanged command lines of the units of five sites and ten app
// managers, on a single machine with all their addresses. Each gets its machine's facts
// and secrets. The processes have to become a cluster that serves.
func TestCluster(t *testing.T) {
	samya := tofutest.Samya(t)
	c := tofutest.Copy(t, "modules/region", "")
	c.Must("init")
	addressesAreOurs(t)
	dir := t.TempDir()
	regions := []string{"asia-east2", "australia-southeast1", "europe-west2", "southamerica-east1", "us-west1"}
	var members, seeds []string
	for i, region := range regions {
		members, seeds = append(members, region+"-1"), append(seeds, address(i, 10))
	}
	ca := authority(t, dir)
	var all []*machine
	for i, name := range regions {
		config := filepath.Join(dir, name)
		r := render(t, c, map[string]any{
			"region": name, "founders": members, "seeds": seeds, "addresses": map[string]string{name + "-1": address(i, 10)},
			"paths": map[string]string{"program": samya, "config": config, "data": filepath.Join(dir, "data-"+name)},
		})
		secrets(t, ca, config, name, i)
		all = append(all, newMachine(t, r.SiteFiles[name+"-1"], nil))
		for n := 11; n <= 12; n++ {
			// The facts that the machine of a group finds out by itself.
			all = append(all, newMachine(t, r.AppManagerFiles, map[string]string{
				"NAME": "am-" + name + "-" + strings.ReplaceAll(address(i, n), ".", "-"), "ADDRESS": address(i, n), "SERVE": address(i, n),
			}))
		}
	}
	for _, m := range all {
		m.start(t)
	}

	store, err := tlsconf.Open(tlsconf.Files{
		CA: filepath.Join(dir, "ca", devca.CertFile), Cert: filepath.Join(dir, "ca", "client-operator.pem"), Key: filepath.Join(dir, "ca", "client-operator-key.pem"),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := func(i, n int) *httpapi.Client {
		t.Helper()
		client, err := httpapi.New("https://"+address(i, n)+":8080", &http.Transport{DialTLSContext: store.DialHTTP(""), DisableKeepAlives: true})
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	for i := range regions {
		for n := 11; n <= 12; n++ {
			// All machines start at once: an app manager knows of sites that do not
			// serve yet, and finds out a moment later that they do.
			eventually(t, all, fmt.Sprintf("app manager %d of %s sees five sites serve", n-10, regions[i]), func() error {
				sites, err := at(i, n).ListSites(t.Context())
				if err != nil {
					return err
				}
				if len(sites.Sites) != len(regions) || slices.ContainsFunc(sites.Sites, func(s httpapi.Site) bool { return s.Health != "serving" }) {
					return fmt.Errorf("sees %+v", sites)
				}
				return nil
			})
		}
	}
	eventually(t, all, "an entity is created", func() error {
		_, err := at(0, 11).CreateEntity(t.Context(), "acme/vm", 500, "once")
		return err
	})
	for i := range regions {
		// More than a site's share: tokens have to move between regions.
		tokens := int64(50)
		if i == 2 {
			tokens = 150
		}
		if _, err := at(i, 12).Acquire(t.Context(), "acme/vm", httpapi.Request{Tokens: tokens, Wait: "20s"}); err != nil {
			t.Fatalf("acquire in %s: %v", regions[i], err)
		}
	}
	eventually(t, all, "the books balance", func() error {
		s, err := at(4, 11).GetEntity(t.Context(), "acme/vm")
		if err != nil {
			return err
		}
		if !s.Complete || !s.Consistent || s.Acquired != 350 || s.Available+s.Acquired+s.InTransit != 500 {
			return fmt.Errorf("they say %+v", s)
		}
		return nil
	})
}

// addressesAreOurs waits until no other run of the tests on this machine has the
// addresses, and keeps them until the test ends.
func addressesAreOurs(t *testing.T) {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for until := time.Now().Add(5 * time.Minute); ; <-again.C {
		held, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address(0, 1)+":8079")
		if err == nil {
			t.Cleanup(func() {
				if err := held.Close(); err != nil {
					t.Error(err)
				}
			})
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the addresses of the test are taken: %v", err)
		}
	}
}

// address is the nth of a region's addresses. All of 127.0.0.0/8 is this machine.
func address(region, n int) string { return fmt.Sprintf("127.64.%d.%d", region*16, n) }

// authority makes the operator's CA and certificate for a cluster.
func authority(t *testing.T, dir string) *devca.CA {
	t.Helper()
	ca, err := devca.Create(filepath.Join(dir, "ca"), "samya", 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ca.Issue(tlsconf.Identity{Kind: tlsconf.Client, Name: "operator"}, nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	return ca
}

// secrets puts in place the secrets that the machines of a region fetch.
func secrets(t *testing.T, ca *devca.CA, dir, region string, i int) {
	t.Helper()
	put := func(name string, parts ...string) {
		t.Helper()
		joined(t, filepath.Join(dir, name), parts...)
	}
	from := filepath.Join(filepath.Dir(dir), "ca")
	put("ca.pem", filepath.Join(from, devca.CertFile))
	put("crl.pem", filepath.Join(from, devca.CRLFile))
	cert, key, err := ca.Issue(tlsconf.Identity{Kind: tlsconf.Site, Name: region + "-1"}, []string{address(i, 10)}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	put("site.pem", cert, key)
	// All app managers of a region share a certificate.
	cert, key, err = ca.Issue(tlsconf.Identity{Kind: tlsconf.AppManager, Name: "am-" + region}, []string{address(i, 11), address(i, 12)}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	put("app-manager.pem", cert, key)
	for name, text := range map[string]string{
		"gossip.key":  "c2FteWEncyBnb3NzaXAga2V5IG9mIDMyIGJ5dGVzISE=\n",
		"access.yaml": "callers:\n  - name: operator\n    role: admin\n    certificate: operator\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// joined writes a file of the contents of others.
func joined(t *testing.T, path string, parts ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, p := range parts {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
}

// machine is a machine's unit, as systemd runs it.
type machine struct {
	argv []string
	log  *buffer
	died chan error
	cmd  *exec.Cmd
	gone chan struct{}
}

var (
	execStart = regexp.MustCompile(`(?m)^ExecStart=(.+)$`)
	variable  = regexp.MustCompile(`\$\{(\w+)\}`)
)

// newMachine reads a machine's files; node holds the facts that it finds out by itself.
func newMachine(t *testing.T, files map[string]file, node map[string]string) *machine {
	t.Helper()
	if node == nil {
		node = make(map[string]string)
		for line := range strings.Lines(files["/etc/samya-node"].Content) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			node[name] = value
		}
	}
	unit, ok := files["/etc/systemd/system/samya.service"]
	if !ok {
		unit = files["/etc/systemd/system/etcd.service"]
	}
	m := execStart.FindStringSubmatch(unit.Content)
	if m == nil {
		t.Fatal("the unit starts nothing")
	}
	// Like systemd: words first, then the variables in braces.
	argv := strings.Fields(m[1])
	for i := range argv {
		argv[i] = variable.ReplaceAllStringFunc(argv[i], func(v string) string {
			value, ok := node[v[2:len(v)-1]]
			if !ok {
				t.Fatalf("the machine does not know %s", v)
			}
			return value
		})
	}
	return &machine{argv: argv, log: &buffer{}, died: make(chan error, 1), gone: make(chan struct{})}
}

// start starts the command line, which ends with the test.
func (m *machine) start(t *testing.T) {
	t.Helper()
	cmd := exec.Command(m.argv[0], m.argv[1:]...)
	cmd.Stdout, cmd.Stderr = m.log, m.log
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.cmd = cmd
	go func() {
		m.died <- cmd.Wait()
		close(m.gone)
	}()
	t.Cleanup(func() { m.stop(t, syscall.SIGTERM) })
}

// stop ends the process by a signal, unless it has ended.
func (m *machine) stop(t *testing.T, by syscall.Signal) {
	t.Helper()
	_ = m.cmd.Process.Signal(by) // it may have ended
	select {
	case <-m.gone:
	case <-time.After(20 * time.Second):
		_ = m.cmd.Process.Kill()
		<-m.gone
		t.Errorf("%s had to be killed", slices.Clone(m.argv)[1])
	}
}

// eventually tries until it is done or a machine has died.
func eventually(t *testing.T, all []*machine, what string, try func() error) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	end := time.After(90 * time.Second)
	for {
		err := try()
		if err == nil {
			return
		}
		for _, m := range all {
			select {
			case died := <-m.died:
				t.Fatalf("%s has ended: %v\n%s", strings.Join(m.argv, " "), died, m.log)
			default:
			}
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not within a minute and a half: %s: %v", what, err)
		}
	}
}

// buffer takes the log of a process, from its goroutines.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
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
