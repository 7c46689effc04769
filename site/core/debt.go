package core

import (
	"github.com/samya-db/samya/avantan"
)

// A limit may be lowered below the number of tokens out. The entity's sequence then
// decides a debt along with the limit: the excess of the tokens in circulation over the
// limit. The debt belongs to the whole entity. It is a function of the decided instances,
// and every site that has applied them knows it. So no site need have a negative balance:
// a debt borne by one site alone would not keep another site from granting tokens that
// come back there.
//
// Each site that knows of a debt sets the whole debt aside from its own tokens left, and
// may use only the rest. No site has less than none, so no more than the limit is out
// after a grant. The tokens set aside pay the debt with the next instance. A site with a
// contribution that may be in the instance making the debt uses nothing from that
// contribution on. Section 18 of docs/protocol.md has the argument.

// setDebt notes the debt after instance t, which has decided v. Every contributor to v
// had applied the instances before t, and has stood still since if v raises the debt.
func (c *limiting) setDebt(e *entity, amount Tokens, t avantan.Instance, v *avantan.Value) {
	since := t
	if d := e.debt(); d != nil && amount <= d.amount {
		since = d.since
	}
	heard := make([]SiteID, 0, len(v.Contributions))
	for _, contribution := range v.Contributions {
		heard = append(heard, contribution.Site)
	}
	c.knowDebt(e, amount, since, heard)
}

// knowDebt notes a debt, the instance that last raised the debt, and members that go by
// it.
func (c *limiting) knowDebt(e *entity, amount Tokens, since avantan.Instance, heard []SiteID) {
	switch {
	case amount == 0 && e.debt() == nil:
		return
	case amount == 0:
		since, heard = 0, c.namesOf(c.roster.serving)
	}
	d := e.itsDebt()
	if d.since != since {
		d.unheard, d.of = c.peers(), c.peers()
	}
	d.amount, d.since, d.lost = amount, since, c.lossesSince(e)
	d.unheard &^= c.membersOf(heard)
}

// heardOfDebt notes that a member has applied instances up to applied, and so knows the
// debt.
func (c *limiting) heardOfDebt(e *entity, member int, applied avantan.Instance) {
	d := e.debt()
	if d == nil || d.amount == 0 || applied < d.since || !d.unheard.has(member) {
		return
	}
	d.unheard.remove(member)
	c.dirtyRecord(e)
}

// stand works out, after a step of the majority variant, the tokens the site must not
// use.
func (c *limiting) stand(e *entity, in *avantan.Input) {
	st := e.majority.State()
	if next := st.Applied + 1; st.Pledge != nil && (e.debt() == nil || e.debt().held != next) &&
		(asksToHold(st, in) || makesDebt(st.Accepted)) {
		e.itsDebt().held = next
		c.dirtyRecord(e)
	}
	e.restand()
}
