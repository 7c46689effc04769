package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/samya-db/samya/internal/devca"
)

// MaxNodes bounds the nodes of a site.
const MaxNodes = 3

// ErrNoEtcd says that the sites have several nodes, and the program etcd is missing.
var ErrNoEtcd = errors.New("etcd not found: sites of several nodes keep their log in etcd")

// etcdMembers is the number of processes of a region's etcd.
const etcdMembers = 3

// The ports of a region of several nodes: the first node of a site has the port of a site of
// a process, the others have ports of later sites, and etcd has the ports of the last two.
const (
	slotSecond = 4
	slotThird  = 2
	slotEtcd   = 8
)

// nodes is the number of a region's nodes.
func (r Region) nodes() int { return max(1, r.Nodes) }

// mostSites is how many sites a region may have ever, by the nodes of a site.
func mostSites(nodes int) int {
	return []int{MaxPerRegion, slotSecond, slotThird}[nodes-1]
}

// slotOf is the place of a node in the ports of its region; both numbers count from 0.
func slotOf(site, node int) int {
	return site + []int{0, slotSecond, slotThird}[node]
}

// nodesOf is the number of nodes of a region's sites, which a region without sites keeps.
func (c Config) nodesOf(s *State, region string) int {
	if r, ok := c.Regions[region]; ok {
		return r.nodes()
	}
	return max(1, s.Nodes[region])
}

// replicated reports whether a region has sites of several nodes.
func (c Config) replicated() bool {
	for _, r := range c.Regions {
		if r.nodes() > 1 {
			return true
		}
	}
	return false
}

// site is the name of the process's site. The first node's process has the name, the ports
// and the data directory of a site of a single process.
func (p *Process) site() string { return cmp.Or(p.Site, p.Name) }

// first reports whether a process is a site, or the first node of a site.
func (p *Process) first() bool { return p.Kind == KindSite && p.Name == p.site() }

// nodeName is the name of a node, by its number from 0.
func nodeName(n int) string { return string(rune('a' + n)) }

// siteNodes are the processes of a site, from the first node on, which has the place at of all.
func (c Config) siteNodes(region string, at, n, nodes int) []Process {
	var all []Process
	for k := range nodes {
		port := c.SitePort + at + slotOf(n, k)
		p := Process{
			Name: SiteName(region, n+1), Kind: KindSite, Region: region,
			GRPC: loopback(port), HTTP: loopback(port + stride), Gossip: loopback(port + 2*stride),
		}
		if nodes > 1 {
			p.Site, p.Node = p.Name, nodeName(k)
		}
		if k > 0 {
			p.Name += "-" + p.Node
		}
		all = append(all, p)
	}
	return all
}

// etcd are the processes of a region's etcd, from the first site on, which has the place at of all.
func (c Config) etcd(region string, at int) []Process {
	all := make([]Process, etcdMembers)
	var cluster []string
	scheme := "http"
	if c.TLS {
		scheme = "https"
	}
	for i := range all {
		port := c.SitePort + i*stride + at + slotEtcd
		all[i] = Process{
			Name: region + "-etcd-" + nodeName(i), Kind: KindEtcd, Region: region,
			HTTP: loopback(port), GRPC: loopback(port), Gossip: loopback(port + 1),
		}
		cluster = append(cluster, all[i].Name+"="+scheme+"://"+all[i].Gossip)
	}
	for i := range all {
		p := &all[i]
		clients, peers := scheme+"://"+p.HTTP, scheme+"://"+p.Gossip
		p.Args = []string{
			"--name", p.Name, "--data-dir", c.data(p.Name), "--initial-cluster", strings.Join(cluster, ","),
			"--initial-cluster-token", c.Cluster + "-" + region,
			"--listen-client-urls", clients, "--advertise-client-urls", clients,
			"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
			"--heartbeat-interval", "50", "--election-timeout", "500", "--log-level", "warn",
		}
		if c.TLS {
			ca, cert, key := filepath.Join(c.Dir, certDir, devca.CertFile), c.certificate(p.certificate(), p.Name), c.key(p.certificate(), p.Name)
			p.Args = append(p.Args,
				"--client-cert-auth", "--trusted-ca-file", ca, "--cert-file", cert, "--key-file", key,
				"--peer-client-cert-auth", "--peer-trusted-ca-file", ca, "--peer-cert-file", cert, "--peer-key-file", key)
		}
	}
	return all
}

// nodeFlags are the flags of a node; none of a site of a single process.
func (c Config) nodeFlags(p *Process, endpoints []string) []string {
	if p.Node == "" {
		return nil
	}
	flags := []string{"--log", "etcd", "--node", p.Node, "--etcd-endpoints", strings.Join(endpoints, ",")}
	if c.TLS {
		flags = append(flags, "--etcd-ca", filepath.Join(c.Dir, certDir, devca.CertFile),
			"--etcd-cert", c.certificate(p.certificate(), p.site()), "--etcd-key", c.key(p.certificate(), p.site()))
	}
	return flags
}

// findEtcd finds the program etcd, if any region needs it, and takes its sum.
func (c *Config) findEtcd() (sum string, err error) {
	if !c.replicated() {
		return "", nil
	}
	program, err := exec.LookPath(cmp.Or(c.Etcd, "etcd"))
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoEtcd, err)
	}
	c.Etcd = program
	return checksum(program)
}

// keepsNodes refuses a region whose sites go back to a single process: the log stays in etcd.
// It notes the nodes of each region.
func (a *applier) keepsNodes() error {
	for region, r := range a.cfg.Regions {
		has := max(1, a.state.Nodes[region])
		if has > 1 && r.nodes() == 1 {
			return fmt.Errorf("%w: regions: %s: nodes: 1, must be 2 or 3: its sites have their log in etcd, and do not go back", ErrConfig, region)
		}
		if r.nodes() > 1 {
			if a.state.Nodes == nil {
				a.state.Nodes = make(map[string]int)
			}
			a.state.Nodes[region] = r.nodes()
		}
	}
	return nil
}

// nodeMark is the file of a data directory whose log went over to etcd (package store).
const nodeMark = "node"

// goesOver reports whether the first node of a site has still to bring the site's log to
// etcd. Until then another node would begin a log of its own there.
func (a *applier) goesOver(site string) bool {
	data := a.cfg.data(site)
	if _, err := os.Stat(data); err != nil {
		return false
	}
	_, err := os.Stat(filepath.Join(data, nodeMark))
	return errors.Is(err, fs.ErrNotExist)
}

// standbyFirst sorts the processes that are to be restarted: of a site's nodes the active
// one last, so that the site stops only once.
func (a *applier) standbyFirst(ctx context.Context, all []Process) []Process {
	active, place := make(map[string]int), make(map[string]int)
	for i, p := range all {
		if _, known := place[p.site()]; !known {
			place[p.site()] = i
		}
		if p.Node == "" {
			continue
		}
		if role, err := a.ask.role(ctx, p); err == nil && role == RoleActive {
			active[p.Name] = 1
		}
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y Process) int {
		return cmp.Or(cmp.Compare(place[x.site()], place[y.site()]), cmp.Compare(active[x.Name], active[y.Name]))
	})
	return all
}

// Roles of a node.
const (
	RoleActive  = "active"
	RoleStandby = "standby"
)

// Roles asks all nodes that run for their roles, by the names of the processes. Others are
// left out.
func Roles(ctx context.Context, s State) map[string]string {
	roles := make(map[string]string)
	if s.Config == nil {
		return roles
	}
	ask, err := newAsker(*s.Config)
	if err != nil {
		return roles
	}
	for name, r := range s.Processes {
		if r.Node == "" || !s.Runs(name) {
			continue
		}
		if role, err := ask.role(ctx, r.Process); err == nil {
			roles[name] = role
		}
	}
	return roles
}

// serving waits until a node follows or serves, and a node of its site serves.
func (a *applier) serving(ctx context.Context, p Process) error {
	if p.Node == "" {
		return a.ask.serves(ctx, p)
	}
	role, err := a.ask.role(ctx, p)
	if err != nil || role == RoleActive {
		return err
	}
	for _, other := range a.all {
		if other.site() == p.site() && other.Name != p.Name {
			if role, err := a.ask.role(ctx, other); err == nil && role == RoleActive {
				return nil
			}
		}
	}
	return errors.New("no node of site " + strconv.Quote(p.site()) + " serves")
}
