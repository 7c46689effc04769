package failuretest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/etcd"
	"github.com/samya-db/samya/devcluster/proc"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// nodeSite is a site with its log in etcd, with its nodes and etcd's members.
type nodeSite struct {
	t     *testing.T
	etcd  *etcd.Cluster
	nodes []*siteNode
	watch *commitWatch
}

// siteNode is a node of a site, behind its own way to etcd.
type siteNode struct {
	*proc.Process
	proxy *etcdProxy
}

// nodeSiteName is the name of the site.
const nodeSiteName = "us"

// nodePrefix begins the keys of the site.
const nodePrefix = "/samya/failuretest/" + nodeSiteName + "/"

// startNodes starts etcd and a site of some nodes, and waits until a node is active. All is
// stopped with the test. A node that ends by itself fails the test.
func startNodes(t *testing.T, nodes int, cfg etcd.Config, args ...string) *nodeSite {
	t.Helper()
	if _, err := etcd.Installed(); err != nil {
		t.Skip(err)
	}
	bin := samya(t)
	cfg.Dir = t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cluster, err := etcd.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &nodeSite{t: t, etcd: cluster}
	t.Cleanup(func() {
		if err := cluster.Stop(context.Background()); err != nil {
			t.Errorf("stopping etcd: %v", err)
		}
	})
	s.watch = watchCommits(t, cluster)
	programs := proc.NewPrograms()
	t.Cleanup(func() {
		s.alive()
		for _, n := range s.nodes {
			s.do(n.Signal(syscall.SIGCONT))
		}
		if err := programs.Stop(context.Background(), 5*time.Second); err != nil {
			t.Errorf("stopping the nodes: %v", err)
		}
	})
	for i := range nodes {
		name := string(rune('a' + i))
		addrs, err := proc.FreePorts(ctx, 3)
		if err != nil {
			t.Fatal(err)
		}
		proxy := newEtcdProxy(t, cluster.Endpoints())
		p, err := programs.Start(proc.Program{
			Name: "node " + name, Log: filepath.Join(cfg.Dir, "node-"+name+".log"),
			Argv: append([]string{
				bin, "site", "--name", nodeSiteName, "--region", nodeSiteName, "--cluster", "failuretest", "--members", nodeSiteName,
				"--data", filepath.Join(cfg.Dir, "node-"+name), "--grpc", addrs[0], "--http", addrs[1], "--gossip", addrs[2],
				"--preset", "local", "--partitions", "3", "--log", "etcd", "--node", name,
				"--etcd-endpoints", strings.Join(proxy.addrs, ","), proc.LifelineFlag,
			}, args...),
		})
		if err != nil {
			t.Fatal(err)
		}
		p.GRPC, p.HTTP = addrs[0], addrs[1]
		s.nodes = append(s.nodes, &siteNode{p, proxy})
		if i == 0 {
			// The first node founds the site: the others copy its base.
			s.active()
		}
	}
	for _, n := range s.nodes {
		s.serves(n)
	}
	return s
}

func (s *nodeSite) do(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Errorf("making nodes fail: %v", err)
	}
}

// name is the name of a node for the site.
func (n *siteNode) name() string { return strings.TrimPrefix(n.Name, "node ") }

// page asks a node for a page of its HTTP server, and returns the status.
func (n *siteNode) page(ctx context.Context, path string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.HTTP+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// serves waits until a node serves its pages: it follows, or is active.
func (s *nodeSite) serves(n *siteNode) {
	s.t.Helper()
	sitetest.Eventually(s.t, n.Name+" is up", func() error {
		_, err := n.page(s.t.Context(), "/livez")
		return err
	})
}

// active waits until a node is active and ready, and returns it.
func (s *nodeSite) active() (node *siteNode) {
	s.t.Helper()
	sitetest.Eventually(s.t, "a node is active", func() error {
		leader, _ := s.watch.leader()
		for _, n := range s.nodes {
			if n.name() != leader || n.PID() == 0 {
				continue
			}
			node = n
			code, err := n.page(s.t.Context(), "/readyz")
			if err == nil && code != http.StatusOK {
				err = fmt.Errorf("%s answers %d", n.Name, code)
			}
			return err
		}
		return fmt.Errorf("%w: the leader is %q", errNoActive, leader)
	})
	return node
}

var errNoActive = errors.New("no node that runs is active")

// others returns all nodes but a given node.
func (s *nodeSite) others(but *siteNode) []*siteNode {
	var all []*siteNode
	for _, n := range s.nodes {
		if n != but {
			all = append(all, n)
		}
	}
	return all
}

// alive fails the test if a node has ended by itself.
func (s *nodeSite) alive() {
	s.t.Helper()
	for _, n := range s.nodes {
		if death := n.Death(); death != nil && killedBy(death.Err) != syscall.SIGKILL {
			s.t.Errorf("nobody asked for it: %v", death)
		}
	}
}

// restart starts the nodes that were killed.
func (s *nodeSite) restart() {
	s.t.Helper()
	s.alive()
	for _, n := range s.nodes {
		if n.PID() == 0 {
			if err := n.Start(); err != nil {
				s.t.Fatal(err)
			}
			s.serves(n)
		}
	}
}

// handOver has the active node hand the site over, and returns when it answered.
func (s *nodeSite) handOver(from *siteNode) (time.Time, error) {
	conn := dial(s.t, from.Process)
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
	defer cancel()
	_, err := samyav1.NewSiteServiceClient(conn.conn).HandOver(ctx, &samyav1.HandOverRequest{})
	return time.Now(), err
}
