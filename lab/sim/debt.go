package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
)

// standsStill checks a batch that a site hands over. After a grant of tokens of an entity
// in debt, the site has at least the debt left, by the decisions it has applied. A site
// with tokens in a decided value that makes a debt grants nothing before it has applied
// the value. Transactions that apply a decision, or change where entities stand, are left
// out.
func (o *observer) standsStill(n *node, r *stored.Records) {
	o.grantsNothing(n, r)
	if r.Catalogue != nil || len(r.Deleted) > 0 || len(o.s.nodes) == 1 {
		return
	}
	for i := range r.Block.Records {
		q := &r.Block.Records[i]
		p := o.s.opOf(q.Key)
		if p == nil || !p.kind.acquires() || q.State != stored.Ran || n.hasRun(p) {
			continue
		}
		for _, c := range n.drained.charges(p) {
			e, found := n.drained.Entities[c.name]
			if !found || slices.ContainsFunc(r.Entities, func(now stored.Entity) bool {
				return now.Name == c.name && (now.Generation != e.Generation || now.Protocol.Applied != e.Protocol.Applied)
			}) {
				continue
			}
			q := o.sequence(sequenceID{c.name, e.Generation})
			o.withinTold(n, p, q, r)
			owed, soon := q.owedAt(n.id, &e)
			if has := n.willHave(c.name, r); owed > 0 && owed > has || soon > 0 {
				o.s.fail(OverGrant, "%s grants %v; it has %d of %q left, %d are owed, soon %d", n.id, p, has, c.name, owed, soon)
			}
		}
	}
}

// willHave is how many tokens of an entity the site has left and set aside after a
// transaction.
func (n *node) willHave(name string, r *stored.Records) core.Tokens {
	e, b := n.drained.Entities[name], n.drained.Books[name]
	for i := range r.Entities {
		if r.Entities[i].Name == name {
			e = r.Entities[i]
		}
	}
	for i := range r.Books {
		if r.Books[i].Name == name {
			b = r.Books[i]
		}
	}
	return holdings(&e, &b) - b.Net
}

// owedAt is the debt of an entity at a site with record e, after the last instance
// applied. soon is the debt that the next instance makes, if it is decided with the
// site's tokens.
func (q *sequence) owedAt(site core.SiteID, e *stored.Entity) (owed, soon core.Tokens) {
	at := e.Protocol.Applied
	if at > q.settled || int(at) >= len(q.debts) {
		return 0, 0
	}
	if v := q.chosen[at+1]; at < q.settled && v != nil && q.debts[at+1] > q.debts[at] {
		if _, in := v.Of(site); in {
			soon = q.debts[at+1]
		}
	}
	return q.debts[at], soon
}

// usable is how many tokens of an entity the site may hand out: the tokens left, less the
// debt and the lack of its offers, and none while the site is held.
func (n *node) usable(name string) core.Tokens {
	e, left := n.drained.Entities[name], n.drained.Books[name].Left
	if e.Protocol.Pledge != nil {
		left += min(0, e.Protocol.Pledge.Offered)
	}
	for i := range e.Star.Slices {
		if s := &e.Star.Slices[i]; !s.Committed {
			left += min(0, s.Pledge.Offered)
		}
	}
	if e.Protocol.Pledge != nil && e.Held == e.Protocol.Applied+1 || n.drained.leaves(n.id) || n.s.changing() && !n.s.observe.catalogue.last().roster.View(max(1, e.Voters)).Has(n.id) {
		return min(left, 0)
	}
	return min(left, max(0, left-e.Debt))
}
