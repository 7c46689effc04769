package appmgr

import "github.com/samya-db/samya/internal/membership"

// SiteInfo is where a site can be reached.
type SiteInfo struct {
	// Name is the site's name.
	Name string
	// Region is where it stands.
	Region string
	// Address is the host:port of its gRPC listener.
	Address string
}

// Directory tells where sites can be reached. It does not tell which sites are members:
// only a site knows.
type Directory interface {
	// Sites returns the sites heard of.
	Sites() []SiteInfo
	// Changed returns a channel that is closed at the next change of Sites.
	Changed() <-chan struct{}
}

// gossiped is the Directory that gossip fills. It keeps sites thought dead: the app
// manager's own probes judge better, and sooner.
type gossiped struct{ *membership.Membership }

// Sites implements Directory.
func (g gossiped) Sites() []SiteInfo {
	var infos []SiteInfo
	for _, m := range g.Membership.Sites() {
		if m.GRPC != "" {
			infos = append(infos, SiteInfo{Name: m.Name, Region: m.Region, Address: m.GRPC})
		}
	}
	return infos
}
