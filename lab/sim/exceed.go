package sim

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/stored"
)

// mayExceed checks by how much a site says that a limit may be exceeded. While there is a
// debt, a site may say that nothing may be exceeded only if all sites go by that debt.
// From then on no grant brings more out than the site has said, however sites fail,
// except for raises of the limit.
func (o *observer) mayExceed(n *node, v *answer.View) {
	q := o.sequence(sequenceID{v.Name, v.Generation})
	if len(o.s.nodes) == 1 || q.limits == nil || v.Applied > q.settled {
		return
	}
	owed, since := q.debts[v.Applied], q.owedSince[v.Applied]
	switch {
	case v.MayExceed != 0 && v.MayExceed != owed:
		o.s.fail(OverGrant, "%s tells that %v may be exceeded by %d; after instance %d %d are owed", n.id, q.id, v.MayExceed, v.Applied, owed)
	case v.MayExceed != 0:
		o.s.report.MayExceed++
	case owed > 0:
		for _, m := range o.s.nodes {
			// Others grant nothing before they have caught up with the instance that makes
			// them voters.
			// A lost site may serve, and hears of nothing any more: it goes on as a voter or not.
			grants := o.votedIn(q, v.Applied+1, m.id)
			if m.writtenOff() {
				e, has := m.durable.Entities[v.Name]
				grants = !m.out && has && e.Generation == v.Generation && o.votedIn(q, e.Protocol.Applied+1, m.id)
			}
			if grants && !m.goesBy(q, since) {
				o.s.fail(OverGrant, "%s tells that %v may not be exceeded; %s has not heard of the debt of %d since instance %d", n.id, q.id, m.id, owed, since)
			}
		}
	}
	ceiling := q.limits[v.Applied].limit - q.aside[v.Applied] + v.MayExceed - q.raises[v.Applied]
	if q.ceiling == nil || ceiling < *q.ceiling {
		q.ceiling = &ceiling
	}
}

// goesBy reports whether a site goes by the debt that an instance has raised, by its
// durable state. It has applied the instance, or its tokens are in the instance's value.
func (n *node) goesBy(q *sequence, since avantan.Instance) bool {
	e, found := n.durable.Entities[q.id.entity]
	switch {
	case n.stale != nil || found && e.Generation > q.id.generation:
		return true
	case !found || e.Generation < q.id.generation:
		return n.durable.generation() >= q.id.generation
	case e.Protocol.Applied+1 == since:
		_, in := q.chosen[since].Of(n.id)
		return in
	}
	return e.Protocol.Applied >= since
}

// withinTold checks a grant against the bound told before.
func (o *observer) withinTold(n *node, p *op, q *sequence, r *stored.Records) {
	if q.ceiling == nil || q.shifted {
		return
	}
	var out core.Tokens
	for _, m := range o.s.nodes {
		d := m.drained
		if d == nil {
			d = m.durable
		}
		e, found := d.Entities[q.id.entity]
		switch {
		case found && e.Generation == q.id.generation:
			// Others may grant tokens that come back by a reconciliation before the site
			// that counted them has heard.
			out += d.Books[q.id.entity].Net - q.driftsAhead(m.id, e.Protocol.Applied)
		case d.generation() >= q.id.generation:
			// A site has dropped the entity, and the tokens out there.
			return
		}
	}
	for i := range r.Books {
		if b := &r.Books[i]; b.Name == q.id.entity {
			out += b.Net - n.drained.Books[b.Name].Net
		}
	}
	if o.hands(n, r) {
		return
	}
	out -= o.twice(q)
	if most := *q.ceiling + q.raised; out > most {
		o.s.fail(OverGrant, "%s grants %v; %d of %v are out then, it was told that at most %d can be", n.id, p, out, q.id, most)
	}
}

// appliedBy checks which sites have applied a change of a limit, by its answer.
func (o *observer) appliedBy(n *node, p *op, a *answer.Answer) {
	q := o.sequence(sequenceID{p.entity, a.View().Generation})
	at := q.decidedAt(p.requestID)
	if len(o.s.nodes) == 1 || a.Code != answer.OK || at == 0 {
		return
	}
	for _, m := range o.s.nodes {
		if slices.Contains(a.Unapplied(), m.id) || !o.votedIn(q, at, m.id) || m.writtenOff() {
			continue
		}
		if e, found := m.durable.Entities[p.entity]; m.stale == nil && found && e.Generation == q.id.generation && e.Protocol.Applied < at {
			o.s.fail(Answers, "%s answers %v: all but %v have applied it; %s has not", n.id, p, a.Unapplied(), m.id)
		}
	}
	if !p.awaitsAll() {
		return
	}
	if len(a.Unapplied()) == 0 {
		o.s.report.AppliedByAll++
		return
	}
	if !o.s.healed || p.issued < o.s.healedAt+20*second {
		return
	}
	if !slices.ContainsFunc(o.s.inside(), func(m *node) bool { return !m.vouchedFor() }) {
		o.s.fail(Liveness, "after healing, %s answers %v: %v have not applied it", n.id, p, a.Unapplied())
	}
}

// awaitsAll reports whether a change of a limit is to be answered once all sites have
// applied it.
func (p *op) awaitsAll() bool { return p.kind == setLimit && p.id%2 == 0 }

// decidedAt is the instance that has decided a change of the limit; 0 for none.
func (q *sequence) decidedAt(requestID string) avantan.Instance {
	for t := avantan.Instance(1); t <= q.settled; t++ {
		var ch limitChange
		if v := q.chosen[t]; v != nil && len(v.Change) > 0 && json.Unmarshal(v.Change, &ch) == nil && ch.RequestID == requestID {
			return t
		}
	}
	return 0
}

// allHeard checks, once nothing moves any more, that every site knows that all sites go
// by the debts there are. A debt may be younger than a round of all sites' reports: an
// entity that moved may have left a site short long ago. Then a round is waited for.
func (s *sim) allHeard() {
	before := s.unheard()
	if len(before) == 0 {
		return
	}
	s.runUntil(s.now + s.hearing())
	for at, heard := range s.unheard() {
		if _, was := before[at]; was {
			s.fail(Liveness, "after healing, %s does not know that all have heard of the debt of %+v, only %v", at.site, at.id, heard)
		}
	}
}

// debtAt is a debt as a site knows it: since is the instance that last raised it.
type debtAt struct {
	site  core.SiteID
	id    sequenceID
	since avantan.Instance
}

// unheard are the debts of which a site does not know that all sites go by them, with the
// sites that are known to.
func (s *sim) unheard() map[debtAt][]core.SiteID {
	debts := make(map[debtAt][]core.SiteID)
	for _, n := range s.inside() {
		for _, name := range s.admin.names {
			if e := n.drained.Entities[name]; e.Debt > 0 && len(e.DebtHeard) < n.status.Members {
				debts[debtAt{n.id, sequenceID{name, e.Generation}, e.DebtSince}] = e.DebtHeard
			}
		}
	}
	return debts
}

// usualSync is the default of Config.Sync, in milliseconds.
const usualSync core.Tick = 5000

// hearing is the time in which each site asks about all entities, and hears the answers:
// it asks about Config.MaxTold in each round.
func (s *sim) hearing() micros {
	most := micros(0)
	for _, n := range s.nodes {
		rounds := micros(len(s.admin.names)/max(n.cfg.MaxTold, 1) + 2)
		most = max(most, rounds*micros(cmp.Or(n.cfg.Sync, usualSync))*millisecond)
	}
	return most + second
}
