package local

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a [Config]. The region and the number of a process fix its ports, so that a
// change of a region's size moves no port of another region.
const (
	// MaxRegions bounds the regions of a cluster.
	MaxRegions = 10
	// MaxPerRegion bounds the sites and the app managers of a region.
	MaxPerRegion = 10
	// DefaultSitePort is the gRPC port of the first site.
	DefaultSitePort = 7001
	// DefaultAppManagerPort is the HTTP port of the first app manager.
	DefaultAppManagerPort = 8080

	// stride is the distance between the three kinds of ports of a process.
	stride = MaxRegions * MaxPerRegion
)

// ErrConfig matches the errors of an invalid [Config].
var ErrConfig = errors.New("not a cluster that can be run here")

// Config describes the wanted cluster.
type Config struct {
	// Dir is the cluster's directory, an absolute path. It holds data, logs and the
	// state of the processes.
	Dir string `json:"dir"`
	// Samya is the absolute path of the program.
	Samya string `json:"samya"`
	// Etcd is the program etcd, for sites of several nodes; empty: "etcd" of the PATH.
	Etcd string `json:"etcd,omitempty"`
	// Cluster is the cluster's name.
	Cluster string `json:"cluster"`
	// Regions are the regions by name.
	Regions map[string]Region `json:"regions"`
	// SiteSettings are further flags of all sites, by name without dashes.
	SiteSettings map[string]string `json:"site_settings,omitempty"`
	// AppManagerSettings are further flags of all app managers.
	AppManagerSettings map[string]string `json:"app_manager_settings,omitempty"`
	// SitePort and AppManagerPort are the first of 300 ports each.
	SitePort       int `json:"site_port"`
	AppManagerPort int `json:"app_manager_port"`
	// TLS encrypts all connections and has processes know their callers by certificates.
	// The cluster has its own authority, in a folder of the directory.
	TLS bool `json:"tls"`
	// Drain has the sites leave that the cluster has and the configuration has not. Without
	// it such a configuration is refused.
	Drain bool `json:"drain,omitempty"`
	// Leave are sites that leave, whatever the regions say: others take their places. A site
	// that has left may stay in the list.
	Leave []string `json:"leave,omitempty"`
	// Lost are sites like Leave that have lost their data: they are written off.
	Lost []string `json:"lost,omitempty"`
	// Runs are the numbers of the wanted runs by process name. A process starts if it
	// does not run, or if its run has a lower number. A process that is not named counts
	// on from its former number.
	Runs map[string]int64 `json:"runs,omitempty"`
}

// Region is the size of a region.
type Region struct {
	// Sites hold tokens. A region has at most MaxPerRegion sites ever: the name of a site
	// that has left is never used again.
	Sites int `json:"sites"`
	// AppManagers serve clients; their number may change at any time.
	AppManagers int `json:"app_managers"`
	// Nodes are the nodes of each site: 0 or 1, a site of a single process with its log on disk;
	// 2 or 3, nodes with their log in the region's etcd. More may come, not fewer than 2
	// after. A region has then at most 4 or 2 sites ever.
	Nodes int `json:"nodes,omitempty"`
}

var (
	goodName    = regexp.MustCompile(`\A[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?\z`)
	goodSetting = regexp.MustCompile(`\A[a-z](?:[a-z0-9-]*[a-z0-9])?\z`)
)

// reserved are the flags that the cluster's layout sets.
var reserved = []string{
	"access-file", "await-log", "cluster", "config", "data", "etcd-ca", "etcd-cert", "etcd-endpoints", "etcd-key", "etcd-password-file",
	"etcd-user", "exit-with-stdin", "gossip", "gossip-key-file", "grpc", "help", "http", "insecure", "join", "log", "members",
	"name", "node", "region", "tls-ca", "tls-cert", "tls-crl", "tls-key",
}

// Validate returns an error that matches [ErrConfig] if the cluster cannot run.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	if !filepath.IsAbs(c.Dir) || filepath.Clean(c.Dir) != c.Dir || c.Dir == "/" {
		bad("dir: %q, must be a clean absolute path below /", c.Dir)
	}
	if !filepath.IsAbs(c.Samya) {
		bad("samya: %q, must be an absolute path", c.Samya)
	}
	if !goodName.MatchString(c.Cluster) {
		bad("cluster: %q, must be of a-z, 0-9 and '-', 32 at most, and begin with a letter", c.Cluster)
	}
	if n := len(c.Regions); n < 1 || n > MaxRegions {
		bad("regions: %d, must be 1 to %d", n, MaxRegions)
	}
	sites := 0
	for _, name := range slices.Sorted(maps.Keys(c.Regions)) {
		r := c.Regions[name]
		if !goodName.MatchString(name) {
			bad("regions: %q, must be of a-z, 0-9 and '-', 32 at most, and begin with a letter", name)
		}
		if r.Nodes < 0 || r.Nodes > MaxNodes {
			bad("regions: %s: nodes: %d, must be 1 to %d", name, r.Nodes, MaxNodes)
		} else if most := mostSites(r.nodes()); r.Sites < 0 || r.Sites > most {
			bad("regions: %s: sites: %d, must be 0 to %d", name, r.Sites, most)
		}
		if r.AppManagers < 0 || r.AppManagers > MaxPerRegion {
			bad("regions: %s: app_managers: %d, must be 0 to %d", name, r.AppManagers, MaxPerRegion)
		}
		sites += r.Sites
	}
	if sites == 0 {
		bad("regions: no region has a site")
	}
	for what, settings := range map[string]map[string]string{"site_settings": c.SiteSettings, "app_manager_settings": c.AppManagerSettings} {
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			if !goodSetting.MatchString(name) || slices.Contains(reserved, name) {
				bad("%s: %q, must be the name of a flag that the layout does not decide", what, name)
			}
		}
	}
	for what, port := range map[string]int{"site_port": c.SitePort, "app_manager_port": c.AppManagerPort} {
		if port < 1 || port+3*stride > 65536 {
			bad("%s: %d, must be 1 to %d", what, port, 65536-3*stride)
		}
	}
	if d := c.SitePort - c.AppManagerPort; d > -3*stride && d < 3*stride {
		bad("site_port, app_manager_port: %d and %d, must lie %d apart", c.SitePort, c.AppManagerPort, 3*stride)
	}
	return errors.Join(errs...)
}

// Kinds of processes.
const (
	KindSite       = "site"
	KindAppManager = "appmgr"
	KindEtcd       = "etcd"
)

// Process is a process of the wanted cluster.
type Process struct {
	// Name is unique in the cluster: eu-1, am-eu-1, eu-etcd-a. The first node of a site has
	// the site's name, the second is eu-1-b.
	Name string `json:"name"`
	// Kind is [KindSite], [KindAppManager] or [KindEtcd].
	Kind string `json:"kind"`
	// Site and Node are the site and the name of a node; empty for other processes.
	Site string `json:"site,omitempty"`
	Node string `json:"node,omitempty"`
	// Region is the process's region.
	Region string `json:"region"`
	// GRPC, HTTP and Gossip are the addresses on which the process listens: of etcd, Gossip
	// is for its peers, the others are for clients.
	GRPC   string `json:"grpc"`
	HTTP   string `json:"http"`
	Gossip string `json:"gossip"`
	// Args is the command line after the program.
	Args []string `json:"-"`
}

// Processes returns the processes of a new cluster: etcd, the sites, then the app managers, each
// sorted by region. The same configuration always gives the same processes.
func (c Config) Processes() []Process { return c.layout(&State{}).wanted }

// layout are the processes of a cluster.
type layout struct {
	// wanted are etcd, the sites, then the app managers; leaving are sites that leave.
	wanted, leaving []Process
	// short are regions without names left for sites.
	short []string
}

// layout returns the processes of the cluster of a state. The first sites of each region
// that neither have left nor are about to are wanted. In a new cluster all sites are
// founders; later sites join.
func (c Config) layout(s *State) layout {
	var l layout
	var managers, sites, etcd []Process
	out := slices.Concat(s.Gone, s.Leaving, c.Leave, c.Lost)
	for i, region := range c.places(s) {
		missing, nodes, replicated := c.Regions[region].Sites, c.nodesOf(s, region), 0
		for n := range mostSites(nodes) {
			p := c.siteNodes(region, i*MaxPerRegion, n, nodes)
			switch name := p[0].Name; {
			case slices.Contains(s.Leaving, name):
				l.leaving = append(l.leaving, p...)
				replicated = nodes
			case missing > 0 && !slices.Contains(out, name):
				missing--
				sites = append(sites, p...)
				replicated = nodes
			}
		}
		if replicated > 1 {
			etcd = append(etcd, c.etcd(region, i*MaxPerRegion)...)
		}
		if missing > 0 {
			l.short = append(l.short, region)
		}
		for n := range c.Regions[region].AppManagers {
			at := i*MaxPerRegion + n
			managers = append(managers, Process{
				Name: AppManagerName(region, n+1), Kind: KindAppManager, Region: region,
				HTTP: loopback(c.AppManagerPort + at), GRPC: loopback(c.AppManagerPort + stride + at), Gossip: loopback(c.AppManagerPort + 2*stride + at),
			})
		}
	}
	l.wanted = slices.Concat(etcd, sites, managers)
	c.fill(s, &l)
	return l
}

// places are the regions in their order, which gives the ports. A region that a site has
// left keeps its place.
func (c Config) places(s *State) []string {
	regions := slices.Collect(maps.Keys(c.Regions))
	for _, site := range slices.Concat(s.Leaving, s.Gone) {
		regions = append(regions, regionOf(site))
	}
	slices.Sort(regions)
	return slices.Compact(regions)
}

// fill writes the command lines of a layout.
func (c Config) fill(s *State, l *layout) {
	founders, seeds := s.Members, []string(nil)
	etcd := make(map[string][]string)
	for _, p := range slices.Concat(l.wanted, l.leaving) {
		if p.first() && !s.known() {
			founders = append(founders, p.Name)
		}
		switch {
		case p.Kind == KindEtcd:
			etcd[p.Region] = append(etcd[p.Region], p.GRPC)
		case p.Kind != KindSite:
		case !s.known() || slices.Contains(s.Members, p.site()) || slices.Contains(s.Joined, p.site()):
			seeds = append(seeds, p.Gossip)
		}
	}
	for _, some := range [][]Process{l.wanted, l.leaving} {
		for i := range some {
			if p := &some[i]; p.Kind != KindEtcd {
				p.Args = c.args(p, founders, seeds, etcd[p.Region])
			}
		}
	}
}

// args is the command line of a process, after the program. Nodes find each other by the
// seeds.
func (c Config) args(p *Process, founders, seeds, etcd []string) []string {
	args := []string{
		p.Kind, "--name", p.site(), "--region", p.Region, "--cluster", c.Cluster,
		"--grpc", p.GRPC, "--http", p.HTTP, "--gossip", p.Gossip, joinFlag, strings.Join(others(seeds, p.Gossip), ","),
	}
	settings := c.AppManagerSettings
	if p.Kind == KindSite {
		settings = c.SiteSettings
		args = append(args, "--data", c.data(p.Name))
		if slices.Contains(founders, p.site()) {
			args = append(args, "--members", strings.Join(founders, ","))
		}
		args = append(args, c.nodeFlags(p, etcd)...)
	}
	args = append(args, c.secureFlags(*p)...)
	if _, told := settings["preset"]; !told {
		args = append(args, "--preset", "local")
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "--"+name+"="+settings[name])
	}
	return args
}

// joinFlag is the flag of the seeds. Only a process that starts looks at them.
const joinFlag = "--join"

// SiteName names the nth site of a region, from 1.
func SiteName(region string, n int) string { return region + "-" + strconv.Itoa(n) }

// regionOf is the region in the name of a site.
func regionOf(site string) string { return site[:max(0, strings.LastIndexByte(site, '-'))] }

// AppManagerName names the nth app manager of a region, from 1.
func AppManagerName(region string, n int) string { return "am-" + region + "-" + strconv.Itoa(n) }

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// others returns the addresses without the address given; all addresses if no other is
// there.
func others(addrs []string, one string) []string {
	rest := slices.DeleteFunc(slices.Clone(addrs), func(a string) bool { return a == one })
	if len(rest) == 0 {
		return addrs
	}
	return rest
}

// The names within a cluster's directory.
const (
	stateFile = "run.json"
	lockFile  = "lock"
	dataDir   = "data"
	logDir    = "logs"
	// leftDir has the data and the logs of sites that have left.
	leftDir = "left"
)

func (c Config) data(name string) string { return filepath.Join(c.Dir, dataDir, name) }

func logOf(dir, name string) string { return filepath.Join(dir, logDir, name+".log") }
