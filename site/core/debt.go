package core

import (
	"math"
	"strings"

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

// debt is a site's knowledge of an entity that is in debt, or is about to be.
type debt struct {
	// amount is the excess of the tokens in circulation over the limit after the last
	// instance applied, 0 for none; since is the instance that last raised the debt.
	amount Tokens
	since  avantan.Instance
	// held is the instance until whose end the site stands still, as its contribution may
	// be in a value that makes a debt; 0 for none.
	held avantan.Instance
	// aside is the number of tokens left that the site must not use.
	aside Tokens
	// unheard are the members that may grant tokens that pay the debt: not known to have
	// applied since, nor to stand still until they have.
	unheard members
}

// mayExceed bounds the excess of tokens out over the limit after a grant. If all members
// go by the debt, each sets the debt aside, and there is no excess.
func (d *debt) mayExceed() Tokens {
	if d.unheard == 0 {
		return 0
	}
	return d.amount
}

// settling begins the name of the policy of a value that settles the debt: the members'
// offers pay the debt first, and tokens that they lack become a debt. A build that does
// not know of debts accepts no such value.
const settling = "debt/"

// policyOf is the policy named by a value, and whether the value settles the debt.
func policyOf(v *avantan.Value) (name string, settles bool) {
	return strings.CutPrefix(v.Policy, settling)
}

// debt is nil while the site may use all tokens left.
func (e *entity) debt() *debt {
	if e.seldom == nil {
		return nil
	}
	return e.seldom.debt
}

// itsDebt returns the debt for changes, and creates it if nil.
func (e *entity) itsDebt() *debt {
	s := e.rarely()
	if s.debt == nil {
		s.debt = new(debt)
	}
	return s.debt
}

// owed is the debt after the last instance applied here.
func (e *entity) owed() Tokens {
	if d := e.debt(); d != nil {
		return d.amount
	}
	return 0
}

// usable is the number of tokens that the site may hand out, to clients or to other
// sites: the tokens left, less the tokens that pay the debt, and less the deficit in
// negative offers, which may come back. It is negative if the deficit exceeds the tokens
// left.
func (e *entity) usable() Tokens {
	left := e.books.Left() - e.lacking()
	d := e.debt()
	if d == nil {
		return left
	}
	return min(left, max(0, left-d.aside))
}

// stillHas is the number of tokens that the site could use if it did not stand still; 0
// unless the site stands still.
func (e *entity) stillHas() Tokens {
	d := e.debt()
	if d == nil || d.aside != math.MaxInt64 {
		return 0
	}
	return max(0, e.books.Left()-e.lacking()-d.amount)
}

// setDebt notes the debt after instance t, which has decided v. Every contributor to v
// had applied the instances before t, and has stood still since if v raises the debt.
func (c *Core) setDebt(e *entity, amount Tokens, t avantan.Instance, v *avantan.Value) {
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
func (c *Core) knowDebt(e *entity, amount Tokens, since avantan.Instance, heard []SiteID) {
	switch {
	case amount == 0 && e.debt() == nil:
		return
	case amount == 0:
		since, heard = 0, c.cfg.Members
	}
	d := e.itsDebt()
	if d.since != since {
		d.unheard = c.peers()
	}
	d.amount, d.since = amount, since
	d.unheard &^= c.membersOf(heard)
}

// heardOfDebt notes that a member has applied instances up to applied, and so knows the
// debt.
func (c *Core) heardOfDebt(e *entity, member int, applied avantan.Instance) {
	d := e.debt()
	if d == nil || d.amount == 0 || applied < d.since || !d.unheard.has(member) {
		return
	}
	d.unheard.remove(member)
	c.dirtyRecord(e)
}

// shareOut computes the grants of a value's members, from their offers and from a change
// of the tokens in circulation. It also returns the debt that remains of an earlier debt.
func shareOut(v *avantan.Value, policy grantsOf, delta, owed Tokens, settles bool) ([]Tokens, Tokens, error) {
	if !settles {
		grants, err := policy.Grants(v.Contributions, delta)
		return grants, owed, err
	}
	grants, err := policy.Grants(v.Contributions, delta-owed)
	if err != nil {
		return nil, 0, err
	}
	// The sum is the pool; the policy has found that it does not overflow.
	var pool Tokens
	for _, g := range grants {
		pool += g
	}
	if pool < 0 {
		clear(grants)
	}
	return grants, max(0, -pool), nil
}

// grantsOf is a redistribute.Policy.
type grantsOf interface {
	Grants(cs []avantan.Contribution, delta Tokens) ([]Tokens, error)
}

// stand works out, after a step of the majority variant, the tokens the site must not
// use.
func (c *Core) stand(e *entity, in *avantan.Input) {
	st := e.majority.State()
	if next := st.Applied + 1; st.Pledge != nil && (e.debt() == nil || e.debt().held != next) &&
		(asksToHold(st, in) || makesDebt(st.Accepted)) {
		e.itsDebt().held = next
		c.dirtyRecord(e)
	}
	e.restand()
}

// restand is stand for the present state, without an input.
func (e *entity) restand() {
	d := e.debt()
	if d == nil {
		return
	}
	held := false
	if e.majority != nil {
		st := e.majority.State()
		held = st.Pledge != nil && d.held == st.Applied+1
	}
	if d.aside = d.amount; held {
		d.aside = math.MaxInt64
	}
	if d.aside == 0 {
		e.seldom.debt = nil
	}
}

// asksToHold reports whether an input is the election of a leader that this site has
// answered, and that may build a value that makes a debt.
func asksToHold(st *avantan.State, in *avantan.Input) bool {
	m := in.Receive
	return m != nil && m.Kind == avantan.Election && m.Press >= avantan.PressHold && m.Instance == st.Applied+1 &&
		m.Ballot == st.Promised
}

// makesDebt reports whether a value may make a debt: it settles the present one.
func makesDebt(v *avantan.Value) bool {
	if v == nil {
		return false
	}
	_, settles := policyOf(v)
	return settles
}

// payDebt begins an instance where the entity is in debt: for acquires that wait, or once
// in a while to take tokens that came back here off the debt.
func (c *Core) payDebt(e *entity) {
	waits := e.queue.len() > 0 && (c.emptyFor(e) == 0 || e.apart())
	switch {
	case e.owed() == 0 || e.busy():
		return
	case waits:
		c.started(e, reactiveReason, Majority)
	case c.debtWake(e) != 0 && c.debtWake(e) <= c.now.Tick:
		c.started(e, debtReason, Majority)
	default:
		return
	}
	c.begin(e)
}

// debtWake is the time at which this site begins an instance that takes tokens that came
// back here off the debt; 0 for never.
func (c *Core) debtWake(e *entity) Tick {
	if e.owed() == 0 || e.books.Left() == 0 || e.busy() {
		return 0
	}
	return max(1, e.hunt.triggered+c.cfg.Tell, e.hunt.noQuorum)
}
