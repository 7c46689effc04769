package terraform_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/devca"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/terraform/tofutest"
)

// atRegion is the place of the region of nodes among the addresses of the tests, and etcdAt the
// first of the three addresses of etcd.
const (
	atRegion = 9
	etcdAt   = 4
)

// TestNodes has a site go over from its disk to an etcd, by the unchanged command lines of the
// units. The second node is started too early, and waits. Then the first is killed, and the
// second goes on with all tokens.
func TestNodes(t *testing.T) {
	etcd := program(t, "etcd")
	samya := tofutest.Samya(t)
	c := tofutest.Copy(t, "modules/region", "")
	c.Must("init")
	addressesAreOurs(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	ca := authority(t, dir)
	secrets(t, ca, config, "europe-west2", atRegion)
	members, endpoints := etcdSecrets(t, dir, config)
	at := []string{address(atRegion, 10), address(atRegion, 30)}
	// Each machine has directories of its own, and else what all machines of the region have.
	files := func(machine string, more map[string]any) rendered {
		t.Helper()
		vars := map[string]any{
			"seeds": at, "addresses": map[string]string{first: at[0]},
			"site_settings": map[string]string{"preset": "lan"}, "app_manager_settings": map[string]string{"preset": "lan"},
			"paths": map[string]string{
				"program": samya, "etcd": etcd, "config": config, "data": filepath.Join(dir, machine), "etcd_data": filepath.Join(dir, machine),
			},
		}
		maps.Copy(vars, more)
		return render(t, c, vars)
	}
	over := withNodes(map[string]any{
		"addresses": map[string]string{first: at[0], second: at[1]},
		"etcd": map[string]any{
			"endpoints": endpoints, "members": members, "release": map[string]string{"url": "https://example.com/etcd", "sha256": strings.Repeat("1", 64)},
		},
	})

	alone := files("a", nil)
	site := newMachine(t, alone.SiteFiles[first], nil)
	manager := newMachine(t, alone.AppManagerFiles, map[string]string{
		"NAME": "am", "ADDRESS": address(atRegion, 11), "SERVE": address(atRegion, 11),
	})
	site.start(t)
	manager.start(t)
	client := nodesClient(t, dir)
	all := []*machine{site, manager}
	eventually(t, all, "an entity is created", func() error {
		_, err := client.CreateEntity(t.Context(), "acme/vm", 500, "once")
		return err
	})
	if _, err := client.Acquire(t.Context(), "acme/vm", httpapi.Request{Tokens: 350, Wait: "20s"}); err != nil {
		t.Fatal(err)
	}

	all = []*machine{manager}
	for name := range members {
		m := newMachine(t, files(name, over).EtcdFiles[name], nil)
		m.start(t)
		all = append(all, m)
	}
	b := newMachine(t, files("b", over).SiteFiles[second], nil)
	b.start(t)
	all = append(all, b)
	eventually(t, append(all, site), "the second node waits for the log", func() error {
		if !strings.Contains(b.log.String(), "waits until another node has begun the log") {
			return errors.New(b.log.String())
		}
		return nil
	})
	if _, err := client.Acquire(t.Context(), "acme/vm", httpapi.Request{Tokens: 1}); err != nil {
		t.Errorf("the site stops before it goes over: %v", err)
	}
	site.stop(t, syscall.SIGTERM)
	a := newMachine(t, files("a", over).SiteFiles[first], nil)
	a.start(t)
	served := func(node string, standbys uint32) func() error {
		return func() error {
			sites, err := client.ListSites(t.Context())
			if err != nil || len(sites.Sites) != 1 {
				return fmt.Errorf("sees %+v, %w", sites, err)
			}
			if s := sites.Sites[0]; s.Node != node || s.Standbys != standbys || s.Health != "serving" {
				return fmt.Errorf("sees %+v", s)
			}
			return nil
		}
	}
	eventually(t, append(all, a), "the first node serves", served("a", 1))
	eventually(t, append(all, a), "the second node has a copy", func() error {
		if _, err := os.Stat(filepath.Join(dir, "b", "node")); err != nil || !strings.Contains(b.log.String(), "is copied") {
			return fmt.Errorf("%w: %s", err, b.log)
		}
		return nil
	})
	a.stop(t, syscall.SIGKILL)
	eventually(t, all, "the second node serves", served("b", 0))
	eventually(t, all, "the books balance", func() error {
		s, err := client.GetEntity(t.Context(), "acme/vm")
		if err != nil {
			return err
		}
		if !s.Complete || !s.Consistent || s.Acquired != 351 || s.Available+s.Acquired+s.InTransit != 500 {
			return fmt.Errorf("they say %+v", s)
		}
		return nil
	})
}

// nodesClient is a client of the app manager of the region of nodes.
func nodesClient(t *testing.T, dir string) *httpapi.Client {
	t.Helper()
	store, err := tlsconf.Open(tlsconf.Files{
		CA: filepath.Join(dir, "ca", devca.CertFile), Cert: filepath.Join(dir, "ca", "client-operator.pem"), Key: filepath.Join(dir, "ca", "client-operator-key.pem"),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := httpapi.New("https://"+address(atRegion, 11)+":8080", &http.Transport{DialTLSContext: store.DialHTTP(""), DisableKeepAlives: true})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// etcdSecrets puts in place the secrets of an etcd of three members, of an authority of its own,
// and of the site. It returns the addresses of the members by name, and those for clients.
func etcdSecrets(t *testing.T, dir, config string) (members map[string]string, endpoints []string) {
	t.Helper()
	from := filepath.Join(dir, "etcd-ca")
	ca, err := devca.Create(from, "samya-etcd", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := ca.Issue(tlsconf.Identity{Kind: tlsconf.Client, Name: first}, nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	joined(t, filepath.Join(config, "etcd.pem"), cert, key)
	joined(t, filepath.Join(config, "etcd-ca.pem"), filepath.Join(from, devca.CertFile))
	members = make(map[string]string)
	var hosts []string
	for i := range 3 {
		host := address(atRegion, etcdAt+i)
		hosts = append(hosts, host)
		members[fmt.Sprintf("etcd-europe-west2-%d", i+1)] = host
		endpoints = append(endpoints, host+":2379")
	}
	// On a single machine a member goes to another from any of its addresses.
	cert, key, err = ca.Issue(tlsconf.Identity{Kind: tlsconf.AppManager, Name: etcdName}, append(hosts, "127.0.0.1"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	joined(t, filepath.Join(config, "member.pem"), cert, key)
	return members, endpoints
}
