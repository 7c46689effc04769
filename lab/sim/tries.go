package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/attempt"
)

// tries are the attempts of a request that may go from site to site.
type tries struct {
	// roams says that the attempts may; else all go to the same site, as the first.
	roams bool
	// notAfter is the wall time after which no site may run it; 0 for none. kept is
	// how long the client goes on.
	notAfter int64
	kept     micros
	// count is the client's number of the attempt, latest the attempt with the answer
	// that counts, tried the sites that it says were tried before.
	count  uint32
	latest attempt.Number
	tried  []core.SiteID
	// sites are the sites that the client knows of; blind says that an app manager may
	// have tried others.
	sites []int
	blind bool
	// manager is the app manager that makes the attempts of the present count, nil
	// for none.
	manager *manager
}

// manager is an app manager that was handed an attempt of a client.
type manager struct {
	count, relay uint32
	// tried are the sites that the client told of, sites the manager's own.
	tried []core.SiteID
	all   bool
	sites []int
}

// epoch is the true time at the start of a run, in milliseconds.
const epoch = 1_700_000_000_000

// impatient is how often, in thousandths, a client that may go to another site
// does so before there can be an answer.
const impatient = 350

// roam lets the attempts of a request go from site to site.
func (p *op) roam(s *sim) {
	if len(s.nodes) == 1 || s.o.Hungry || !s.chance(600) {
		return
	}
	p.tries.roams = true
	// The site with the clock furthest behind must still take it: see Horizon.
	p.tries.kept = micros(4000+s.r.IntN(25_000)) * millisecond
	p.tries.notAfter = epoch + (s.now+p.tries.kept)/millisecond
}

func (t *tries) keep(most micros) micros {
	if t.roams {
		return t.kept
	}
	return most
}

// goOn numbers the next attempt and chooses its site.
func (p *op) goOn(c *call) (site int) {
	s, t := p.s, &p.tries
	switch {
	case t.count == 0:
		t.count = 1
		p.manage()
	case t.manager == nil && s.chance(150):
		// The same attempt again.
		c.attempt, c.tried = t.latest, t.tried
		return p.site
	case t.manager != nil && t.manager.relay < 6 && s.chance(600):
		t.manager.relay++
	default:
		p.leave()
		t.count++
		p.manage()
	}
	if t.count > 1 && s.chance(750) || t.manager != nil && t.manager.relay > 0 {
		p.site = s.otherSite(p.site)
	}
	if m := t.manager; m != nil {
		c.attempt, c.tried = attempt.Of(m.count, m.relay), m.list(s, p.site)
		m.sites = append(m.sites, p.site)
	} else {
		c.attempt, c.tried = attempt.Of(t.count, 0), t.list(s, p.site)
		t.sites = append(t.sites, p.site)
	}
	t.latest, t.tried = c.attempt, c.tried
	if c.attempt != attempt.Of(1, 0) {
		s.report.Failovers++
	}
	p.late(c, p.site)
	return p.site
}

// manage has an app manager make the attempts of the present count, or not.
func (p *op) manage() {
	s, t := p.s, &p.tries
	t.manager = nil
	if !s.chance(300) {
		return
	}
	m := &manager{count: t.count}
	if t.count > 1 {
		m.tried = t.list(s, -1)
		m.all = m.tried == nil
	}
	t.manager = m
}

// leave ends an app manager's work for a client: it answers which sites it has tried, or
// the client hears no more of it. It may still be at it.
func (p *op) leave() {
	s, t := p.s, &p.tries
	m := t.manager
	if m == nil {
		return
	}
	t.manager = nil
	if s.chance(300) {
		t.sites = append(t.sites, m.sites...)
		return
	}
	t.blind = true
	s.report.ManagersLost++
	if s.chance(500) {
		m.relay++
		site := s.someSite()
		c := &call{op: p, done: true, attempt: attempt.Of(m.count, m.relay), tried: m.list(s, site)}
		s.after(s.r.Int64N(6*second), func() { s.nodes[site].hand(c) })
	}
}

// list are the sites that an attempt at a site says were tried before; nil for all
// others.
func (t *tries) list(s *sim, site int) []core.SiteID {
	if t.count <= 1 {
		return nil
	}
	if t.blind || s.chance(200) {
		return nil
	}
	return s.others(t.sites, site, []core.SiteID{})
}

func (m *manager) list(s *sim, site int) []core.SiteID {
	switch {
	case m.all:
		return nil
	case m.count == 1 && m.relay == 0:
		return nil
	}
	list := slices.DeleteFunc(slices.Clone(m.tried), func(id core.SiteID) bool { return id == s.names[site] })
	if list == nil {
		list = []core.SiteID{}
	}
	return s.others(m.sites, site, list)
}

// others adds the names of sites to a list, each once and without a given site.
func (s *sim) others(sites []int, without int, list []core.SiteID) []core.SiteID {
	for _, i := range sites {
		if i != without && !slices.Contains(list, s.names[i]) {
			list = append(list, s.names[i])
		}
	}
	return list
}

// late sends an attempt again much later, also after its time is over.
func (p *op) late(c *call, site int) {
	s := p.s
	if !s.chance(s.chances.late) {
		return
	}
	again := &call{op: p, done: true, attempt: c.attempt, tried: c.tried}
	delay := s.r.Int64N(p.issued + p.tries.kept + 15*second - s.now)
	s.after(delay, func() { s.nodes[site].hand(again) })
}

// claimedOf lists the sites that a call wants asked, without its own site.
func (s *sim) claimedOf(n *node, c *call) []core.SiteID {
	if c.tried != nil || c.attempt>>8 <= 1 {
		return c.tried
	}
	return slices.DeleteFunc(slices.Clone(s.names), func(id core.SiteID) bool {
		// Nobody has gone to a site that has not told that it serves. The answer may be of a
		// while ago.
		to := s.nodes[slices.Index(s.names, id)]
		return id == n.id || to.outside() || to.cfg.Joining && (!to.opened || s.now < to.openedAt+200*second)
	})
}

// numbered is the number of an attempt, also of a first attempt without a number.
func numbered(a attempt.Number) attempt.Number { return max(a, attempt.Of(1, 0)) }
