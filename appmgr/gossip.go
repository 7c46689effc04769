package appmgr

import (
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/membership"
)

// gossiped is the Directory that gossip fills. It keeps sites thought dead: the app
// manager's own probes judge better, and sooner.
type gossiped struct{ *membership.Membership }

// Sites implements Directory.
func (g gossiped) Sites() []route.SiteInfo {
	var infos []route.SiteInfo
	for _, m := range g.Membership.Sites() {
		if m.GRPC != "" {
			infos = append(infos, route.SiteInfo{Name: m.Name, Region: m.Region, Address: m.GRPC, Node: m.Instance, Term: m.Term})
		}
	}
	return infos
}
