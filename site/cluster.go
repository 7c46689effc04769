package site

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/membership"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/store"
	"github.com/samya-db/samya/site/wire"
)

// cluster serves samyav1.ClusterService.
type cluster struct {
	samyav1.UnimplementedClusterServiceServer
	*Site
}

// ListSites implements samyav1.ClusterServiceServer: the durable member set, and the
// knowledge of gossip and of this site's links about each member.
func (s cluster) ListSites(context.Context, *samyav1.ListSitesRequest) (*samyav1.ListSitesResponse, error) {
	if !s.seated() {
		e := apierr.New(apierr.SiteUnavailable, "site %s joins the cluster, and does not know its members for sure", s.cfg.Name)
		e.Site, e.RetryAfter = s.cfg.Name, time.Second
		return nil, e
	}
	resp := &samyav1.ListSitesResponse{Cluster: s.cfg.Cluster, AnsweredBy: s.cfg.answersAs(), MembersVersion: s.sites.Load().version}
	look := s.look()
	for _, id := range slices.Sorted(slices.Values(s.members())) { // the catalogue has them in the order of their seats
		site := look(id)
		if site.Name == s.cfg.Name && s.cfg.Term > 0 {
			// Gossip may tell the node that has taken over from this node.
			site.Node, site.Term, site.Address, site.HttpAddress = s.cfg.Instance, s.cfg.Term, s.GRPCAddr(), s.HTTPAddr()
			if s.cfg.Nodes != nil {
				site.Standbys = uint32(s.cfg.Nodes.Standbys()) //nolint:gosec // a count of nodes
			}
		}
		resp.Sites = append(resp.Sites, site)
	}
	return resp, nil
}

// look returns what gossip and this site's links know at this moment of each site.
func (s *Site) look() func(core.SiteID) *samyav1.Site {
	connected := s.links.Connected()
	heard, refusals := s.membership.Sites(), s.links.Refusals()
	return func(id core.SiteID) *samyav1.Site {
		site := &samyav1.Site{Name: string(id), Refusal: refusals[id]}
		i := slices.IndexFunc(heard, func(m membership.Member) bool { return m.Name == site.Name })
		if i >= 0 {
			site.Region, site.Address, site.HttpAddress = heard[i].Region, heard[i].GRPC, heard[i].HTTP
			site.OldestVersion, site.NewestVersion = uint32(heard[i].Versions.Oldest), uint32(heard[i].Versions.Newest)
			site.Node, site.Term, site.Standbys = heard[i].Instance, heard[i].Term, uint32(heard[i].Standbys)
			site.Health = samyav1.SiteHealth_SITE_HEALTH_UNREACHABLE
		}
		if site.Name == s.cfg.Name || slices.Contains(connected, id) {
			site.Health = samyav1.SiteHealth_SITE_HEALTH_SERVING
		}
		return site
	}
}

// address returns where the node that runs a peer is thought to listen; "" if unknown.
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
func (s *Site) members() []core.SiteID { return s.sites.Load().sites }

// memberSet are the members of a version of the roster.
type memberSet struct {
	version uint64
	sites   []core.SiteID
	// heirs has each site that ever had a seat, and who takes over from it; see
	// event.Event.
	heirs map[core.SiteID]core.SiteID
	// changed is closed at the next change of any seat.
	changed chan struct{}
}

// firstMembers are the members that a data directory knows; none for a site that joins.
func firstMembers(founded store.Members, restored *stored.Restored) *memberSet {
	if restored.Catalogue == nil || restored.Catalogue.Roster.Version == 0 {
		m := &memberSet{version: founded.Version, changed: make(chan struct{})}
		if founded.Version > 0 {
			m.sites = founded.Sites
		}
		return m
	}
	r := &restored.Catalogue.Roster
	m := &memberSet{version: uint64(r.Version), heirs: r.Heirs(), changed: make(chan struct{})}
	for i := range r.Seats {
		if r.Seats[i].State.Serves() {
			m.sites = append(m.sites, r.Seats[i].Site)
		}
	}
	return m
}

// seated reports whether this site is a member as far as it knows. The core refuses all
// callers of a site that is none.
func (s *Site) seated() bool { return slices.Contains(s.members(), core.SiteID(s.cfg.Name)) }

// among reports whether a site is a member or was one, or may be one: a site that is no
// member itself may not know all.
func (s *Site) among(site core.SiteID) bool {
	m := s.sites.Load()
	_, seat := m.heirs[site]
	return seat || !s.seated() || slices.Contains(m.sites, site)
}

// inherits reports whether this site takes over from a site that leaves or has left, as
// its heir or as an heir of its heir.
func (s *Site) inherits(site core.SiteID) bool {
	m := s.sites.Load()
	for range m.heirs {
		if site = m.heirs[site]; site == core.SiteID(s.cfg.Name) {
			return true
		}
	}
	return false
}

// joining reports whether the data directory was made to join a cluster.
func (s *Site) joining() bool { return s.founded.Version == 0 }

// meet brings up links to the sites that gossip tells of, for a site that joins and does
// not know the members yet.
func (s *Site) meet() {
	if len(s.members()) > 0 {
		return
	}
	s.links.SetPeers(wire.All(s.membership.Sites(), func(m membership.Member) core.SiteID { return core.SiteID(m.Name) }))
}

// resite goes by other members.
func (s *Site) resite(e *event.Event) {
	before := s.sites.Swap(&memberSet{version: e.Roster, sites: e.Members, heirs: e.Heirs, changed: make(chan struct{})})
	close(before.changed)
	s.links.SetPeers(e.Peers)
	s.log.Info("the cluster has other sites", "members", e.Members, "peers", e.Peers)
}

// toldStandbys is how often a site looks whether other nodes follow than it told, and
// standbysLeave how long it waits for the news to leave.
const (
	toldStandbys  = time.Second
	standbysLeave = 100 * time.Millisecond
)

// tellStandbys tells gossip how many other nodes of this site follow, unless it was told that.
func (s *Site) tellStandbys(self *membership.Node) {
	now := uint8(min(s.cfg.Nodes.Standbys(), math.MaxUint8)) //nolint:gosec // bounded, and a count
	if now == self.Standbys {
		return
	}
	self.Standbys = now
	if err := s.membership.UpdateSelf(*self, standbysLeave); err != nil {
		s.log.Debug("other processes hear later how many nodes follow", "error", err)
	}
}

// watch keeps the links and the core's view of who is reachable up to date with gossip, and
// gossip up to date with the nodes that follow.
func (s *Site) watch(ctx context.Context, self membership.Node) {
	var tick <-chan time.Time
	if s.cfg.Nodes != nil {
		ticker := time.NewTicker(toldStandbys)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		changed := s.membership.Changed()
		s.meet()
		s.links.Readdress()
		s.reachable(s.links.Connected())
		select {
		case <-changed:
		case <-tick:
			s.tellStandbys(&self)
		case <-ctx.Done():
			return
		}
	}
}

// answersAs is the name by which a site answers ListSites.
func (c *Config) answersAs() string { return "site/" + c.Name }
