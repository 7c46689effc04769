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
}

var (
	goodName    = regexp.MustCompile(`\A[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?\z`)
	goodSetting = regexp.MustCompile(`\A[a-z](?:[a-z0-9-]*[a-z0-9])?\z`)
)

// reserved are the flags that the cluster's layout sets.
var reserved = []string{
	"access-file", "cluster", "config", "data", "exit-with-stdin", "gossip", "gossip-key-file", "grpc", "help", "http",
	"insecure", "join", "members", "name", "region", "tls-ca", "tls-cert", "tls-crl", "tls-key",
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
		if r.Sites < 0 || r.Sites > MaxPerRegion {
			bad("regions: %s: sites: %d, must be 0 to %d", name, r.Sites, MaxPerRegion)
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
)

// Process is a process of the wanted cluster.
type Process struct {
	// Name is unique in the cluster: eu-1, am-eu-1.
	Name string `json:"name"`
	// Kind is [KindSite] or [KindAppManager].
	Kind string `json:"kind"`
	// Region is the process's region.
	Region string `json:"region"`
	// GRPC, HTTP and Gossip are the addresses on which the process listens.
	GRPC   string `json:"grpc"`
	HTTP   string `json:"http"`
	Gossip string `json:"gossip"`
	// Args is the command line after the program.
	Args []string `json:"-"`
}

// Processes returns the processes of a new cluster: the sites, then the app managers, each
// sorted by region. The same configuration always gives the same processes.
func (c Config) Processes() []Process { return c.layout(&State{}).wanted }

// layout are the processes of a cluster.
type layout struct {
	// wanted are the sites, then the app managers; leaving are sites that leave.
	wanted, leaving []Process
	// short are regions without names left for sites.
	short []string
}

// layout returns the processes of the cluster of a state. The first sites of each region
// that neither have left nor are about to are wanted. In a new cluster all sites are
// founders; later sites join.
func (c Config) layout(s *State) layout {
	var l layout
	var managers, sites []Process
	out := slices.Concat(s.Gone, s.Leaving, c.Leave, c.Lost)
	for i, region := range c.places(s) {
		missing := c.Regions[region].Sites
		for n := range MaxPerRegion {
			at := i*MaxPerRegion + n
			p := Process{
				Name: SiteName(region, n+1), Kind: KindSite, Region: region,
				GRPC: loopback(c.SitePort + at), HTTP: loopback(c.SitePort + stride + at), Gossip: loopback(c.SitePort + 2*stride + at),
			}
			switch {
			case slices.Contains(s.Leaving, p.Name):
				l.leaving = append(l.leaving, p)
			case missing > 0 && !slices.Contains(out, p.Name):
				missing--
				sites = append(sites, p)
			}
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
	l.wanted = slices.Concat(sites, managers)
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
	for _, p := range slices.Concat(l.wanted, l.leaving) {
		switch {
		case p.Kind != KindSite:
		case !s.known():
			founders, seeds = append(founders, p.Name), append(seeds, p.Gossip)
		case slices.Contains(s.Members, p.Name) || slices.Contains(s.Joined, p.Name):
			seeds = append(seeds, p.Gossip)
		}
	}
	for _, some := range [][]Process{l.wanted, l.leaving} {
		for i := range some {
			some[i].Args = c.args(&some[i], founders, seeds)
		}
	}
}

// args is the command line of a process, after the program. Nodes find each other by the
// seeds.
func (c Config) args(p *Process, founders, seeds []string) []string {
	args := []string{
		p.Kind, "--name", p.Name, "--region", p.Region, "--cluster", c.Cluster,
		"--grpc", p.GRPC, "--http", p.HTTP, "--gossip", p.Gossip, joinFlag, strings.Join(others(seeds, p.Gossip), ","),
	}
	settings := c.AppManagerSettings
	if p.Kind == KindSite {
		settings = c.SiteSettings
		args = append(args, "--data", c.data(p.Name))
		if slices.Contains(founders, p.Name) {
			args = append(args, "--members", strings.Join(founders, ","))
		}
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
