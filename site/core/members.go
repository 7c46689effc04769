package core

import (
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/stored"
)

// The catalogue decides the sites of the cluster, its roster. A site is added first: it
// may then learn the catalogue from others, and votes on nothing. Once it has, any member
// has it admitted: it becomes a member, and votes in the catalogue's next instance. From
// then on each entity's sequence adopts the new view by an instance of its own. The next
// change of the voters waits for the last entity.

// maxSeats bounds the sites that a cluster ever has.
const maxSeats = avantan.MaxMembers

// rosterOf is the roster with which a core begins; unknown for a site that joins.
func rosterOf(cfg *Config, from *stored.Restored) (stored.Roster, error) {
	if from.Catalogue != nil && from.Catalogue.Roster.Version > 0 {
		r := from.Catalogue.Roster.Clone()
		return r, r.Validate()
	}
	if cfg.Joining {
		return stored.Roster{}, nil
	}
	return stored.Founded(cfg.Members), nil
}

// serves reports whether a site is a member.
func (r *roster) serves(site SiteID) bool { return r.place(site) >= 0 }

// knows reports whether a site has a seat, or is one that this site has met. A site
// without a roster cannot tell.
func (r *roster) knows(site SiteID) bool { return r.Version == 0 || slices.Contains(r.names, site) }

// count notes that an entity came, or went (-1).
func (r *roster) count(e *entity, n int) {
	if e.voters < r.Version {
		r.behind += n
	}
}

// View implements avantan.Ledger: the catalogue is decided by the latest voters. A site
// that does not know them yet learns only.
func (cat *catalogue) View() avantan.View { return cat.c.roster.view(cat.c.roster.Version) }

// settleSite carries out a decided change of the sites. The outcome comes with the
// version of the roster afterwards.
func (cat *catalogue) settleSite(t avantan.Instance, ch *stored.CatalogueChange) (answer.Code, uint64) {
	r := cat.c.roster.Clone()
	code := seated(&r, t, ch, cat.numbered)
	if code == answer.OK {
		cat.c.seat(r)
	}
	return code, uint64(r.Version)
}

// seat takes over a roster. The core reseats its machines once the step is done.
func (c *cataloguing) seat(r stored.Roster) {
	c.roster.decided(r)
	c.reseated = true
}

// heardCatalogue notes how far the catalogue is applied at another site.
func (c *cataloguing) heardCatalogue(m *avantan.Message) {
	if m.Validate() != nil {
		return
	}
	if c.cat.heard == nil {
		c.cat.heard = make(map[SiteID]avantan.Instance)
	}
	c.cat.heard[m.From] = max(c.cat.heard[m.From], m.SenderApplied())
}

// isMember reports whether this site is a member as far as it knows.
func (c *common) isMember() bool {
	return c.roster.Version > 0 && c.roster.serves(c.cfg.Self)
}

// settleIn has a new member serve once all others know of it.
func (c *cataloguing) settleIn() {
	if c.settledIn || c.unheard() > 0 {
		return
	}
	c.settledIn, c.cat.dirty = true, true
	c.out.Events = append(c.out.Events, event.Event{Kind: event.Serving})
}

// unheard counts the other members that are not known to know this site's admission.
// Until all do, a site could take an attempt of a request to have reached the others
// only. So a new member serves nobody before.
func (c *cataloguing) unheard() int {
	if c.settledIn {
		return 0
	}
	seat := c.roster.Seat(c.cfg.Self)
	if seat == nil || !seat.State.Serves() {
		return max(1, c.roster.size())
	}
	n := 0
	for _, m := range c.roster.others() {
		if c.cat.heard[m] < seat.Since {
			n++
		}
	}
	return n
}

// membersNow are the sites of the cluster as this site knows them.
func (c *cataloguing) membersNow() answer.Members {
	m := answer.Members{Version: uint64(c.roster.Version), Behind: c.roster.behind}
	for i := range c.roster.Seats {
		s := &c.roster.Seats[i]
		m.Sites = append(m.Sites, answer.Member{
			Site: s.Site, State: string(s.State), Heir: s.Heir, Knows: c.heardOf(s.Site, s), Unheard: c.unheardOf(s), Rescued: s.Rescued, Unsettled: s.Unsettled,
		})
	}
	return m
}

// heardOf reports whether a site is known to know the state of a seat.
func (c *cataloguing) heardOf(site SiteID, s *stored.Seat) bool {
	return site == c.cfg.Self || c.cat.heard[site] >= s.Since
}

// unheardOf are the members but the site itself that are not known to know the state of
// its seat.
func (c *cataloguing) unheardOf(s *stored.Seat) []SiteID {
	var unheard []SiteID
	for i := range c.roster.Seats {
		m := &c.roster.Seats[i]
		if m.Site != s.Site && c.roster.serves(m.Site) && !c.heardOf(m.Site, s) {
			unheard = append(unheard, m.Site)
		}
	}
	return unheard
}
