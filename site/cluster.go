package site

import (
	"context"
	"slices"

	"github.com/samya-db/samya/internal/membership"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/input"
)

// cluster serves samyav1.ClusterService.
type cluster struct {
	samyav1.UnimplementedClusterServiceServer
	*Site
}

// ListSites implements samyav1.ClusterServiceServer: the durable member set, and the
// knowledge of gossip and of this site's links about each member.
func (s cluster) ListSites(context.Context, *samyav1.ListSitesRequest) (*samyav1.ListSitesResponse, error) {
	resp := &samyav1.ListSitesResponse{Cluster: s.cfg.Cluster, AnsweredBy: "site/" + s.cfg.Name}
	connected := s.links.Connected()
	heard, refusals := s.membership.Sites(), s.links.Refusals()
	for _, id := range s.members() {
		site := &samyav1.Site{Name: string(id), Refusal: refusals[id]}
		i := slices.IndexFunc(heard, func(m membership.Member) bool { return m.Name == site.Name })
		if i >= 0 {
			site.Region, site.Address, site.HttpAddress = heard[i].Region, heard[i].GRPC, heard[i].HTTP
			site.OldestVersion, site.NewestVersion = uint32(heard[i].Versions.Oldest), uint32(heard[i].Versions.Newest)
			site.Health = samyav1.SiteHealth_SITE_HEALTH_UNREACHABLE
		}
		if site.Name == s.cfg.Name || slices.Contains(connected, id) {
			site.Health = samyav1.SiteHealth_SITE_HEALTH_SERVING
		}
		resp.Sites = append(resp.Sites, site)
	}
	return resp, nil
}

// address returns where a peer is thought to listen; "" if unknown.
func (s *Site) address(to core.SiteID) string {
	for _, m := range s.membership.Sites() {
		if m.Name == string(to) {
			return m.GRPC
		}
	}
	return ""
}

// region returns the region of a peer; "" if unknown.
func (s *Site) region(to core.SiteID) string {
	for _, m := range s.membership.Sites() {
		if m.Name == string(to) {
			return m.Region
		}
	}
	return ""
}

// reachable tells the core which members a leader should wait for: members that this
// site has a link to and that gossip does not think dead.
func (s *Site) reachable(connected []core.SiteID) {
	var up []core.SiteID
	for _, m := range s.membership.Sites() {
		id := core.SiteID(m.Name)
		if m.Health == membership.Alive && slices.Contains(connected, id) {
			up = append(up, id)
		}
	}
	// A hint lost while the engine is busy is repeated at the next change. Until then a
	// leader waits a little longer or settles for less.
	if err := s.engine.Submit(input.Reachable{Sites: up}); err != nil {
		s.log.Debug("the core was not told who is reachable", "error", err)
	}
}

// members are the members that the catalogue decided last.
func (s *Site) members() []core.SiteID { return *s.sites.Load() }

// joining reports whether the data directory was made to join a cluster.
func (s *Site) joining() bool { return s.founded.Version == 0 }

// meet brings up links to the sites that gossip tells of, for a site that joins: it does
// not know the members yet.
func (s *Site) meet() {
	if !s.joining() {
		return
	}
	var sites []core.SiteID
	for _, m := range s.membership.Sites() {
		sites = append(sites, core.SiteID(m.Name))
	}
	s.links.SetPeers(sites)
}

// resite goes by other members.
func (s *Site) resite(members, peers []core.SiteID) {
	s.sites.Store(&members)
	s.links.SetPeers(peers)
	s.log.Info("the cluster has other sites", "members", members, "peers", peers)
}

// watch keeps the core's view of who is reachable up to date with gossip.
func (s *Site) watch(ctx context.Context) {
	for {
		changed := s.membership.Changed()
		s.meet()
		s.reachable(s.links.Connected())
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
