package core

import (
	"math"
	"strings"

	"github.com/samya-db/samya/avantan"
)

// A limit may be lowered below what is out. The sequence of the entity then decides
// a debt along with the limit: the tokens in circulation exceed the limit by that
// much. The debt is a number of the whole entity, a function of the decided
// instances, and every site that has applied them knows it. So no site need have
// less than none: a debt that one site bore alone would not keep another one from
// granting what comes back there.
//
// Each site that knows of a debt sets the whole debt aside of what the site has left,
// and may use the rest only: no site has less than none, so no more than the limit is
// out after a grant. What is set aside pays the debt with the next instance. A site
// whose contribution may be in the instance that makes the debt uses nothing from the
// contribution on. Section 18 of docs/protocol.md has the argument.

// debt is what a site knows of an entity that is in debt, or is about to be.
type debt struct {
	// amount is by how much the tokens in circulation exceed the limit after the
	// last instance applied, and since the instance that last raised the debt; 0 for
	// none.
	amount Tokens
	since  avantan.Instance
	// held is the instance until whose end the site stands still, as its
	// contribution may be in a value that makes a debt; 0 for none.
	held avantan.Instance
	// aside is how much of what is left the site must not use.
	aside Tokens
	// unheard are the members that may grant what pays the debt: those neither known to
	// have applied since, nor to stand still until they have.
	unheard members
}

// mayExceed is by how much more than the limit may be out at most after a grant. If all
// members go by the debt, each of them sets the debt aside.
func (d *debt) mayExceed() Tokens {
	if d.unheard == 0 {
		return 0
	}
	return d.amount
}

// settling begins the name of the policy of a value that settles the debt: what
// its members offer pays the debt first, and what they lack becomes one. A build
// that does not know of debts accepts no such value.
const settling = "debt/"

// policyOf is the policy that a value names, and whether the value settles the debt.
func policyOf(v *avantan.Value) (name string, settles bool) {
	return strings.CutPrefix(v.Policy, settling)
}

// debt is nil while the site may use all that is left.
func (e *entity) debt() *debt {
	if e.seldom == nil {
		return nil
	}
	return e.seldom.debt
}

// itsDebt is the debt, to be changed.
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

// usable is what the site may hand out, to clients or to other sites: all that is
// left, but for what pays the debt, and what an offer of less than nothing lacks: that
// may come back. It is negative if that leaves less than nothing.
func (e *entity) usable() Tokens {
	left := e.books.Left() - e.lacking()
	d := e.debt()
	if d == nil {
		return left
	}
	return min(left, max(0, left-d.aside))
}

// stillHas is the number of tokens that the site could use but for standing still; 0
// unless the site stands still.
func (e *entity) stillHas() Tokens {
	d := e.debt()
	if d == nil || d.aside != math.MaxInt64 {
		return 0
	}
	return max(0, e.books.Left()-e.lacking()-d.amount)
}

// setDebt notes the debt after instance t, which has decided v. Whoever contributed to
// v had applied what came before, and has stood still since if v raises the debt.
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

// heardOfDebt notes that a member has applied instances up to one, and with that the
// debt.
func (c *Core) heardOfDebt(e *entity, member int, applied avantan.Instance) {
	d := e.debt()
	if d == nil || d.amount == 0 || applied < d.since || !d.unheard.has(member) {
		return
	}
	d.unheard.remove(member)
	c.dirtyRecord(e)
}

// shareOut computes what the members of a value are granted out of their offers and
// a change of the tokens in circulation, and the debt that remains of one owed before.
func shareOut(v *avantan.Value, policy grantsOf, delta, owed Tokens, settles bool) ([]Tokens, Tokens, error) {
	if !settles {
		grants, err := policy.Grants(v.Contributions, delta)
		return grants, owed, err
	}
	grants, err := policy.Grants(v.Contributions, delta-owed)
	if err != nil {
		return nil, 0, err
	}
	// The sum is the pool, of which the policy has found that it does not overflow.
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

// stand works out after a step of the majority variant what the site must not use.
func (c *Core) stand(e *entity, in *avantan.Input) {
	st := e.majority.State()
	if next := st.Applied + 1; st.Pledge != nil && (e.debt() == nil || e.debt().held != next) &&
		(asksToHold(st, in) || makesDebt(st.Accepted)) {
		e.itsDebt().held = next
		c.dirtyRecord(e)
	}
	e.restand()
}

// restand works that out from the state as it is.
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

// payDebt begins an instance where the entity is in debt: for acquires that wait, or
// to have what came back here taken off the debt, once in a while.
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

// debtWake is when this site begins an instance that takes what came back here off the
// debt; 0 for never.
func (c *Core) debtWake(e *entity) Tick {
	if e.owed() == 0 || e.books.Left() == 0 || e.busy() {
		return 0
	}
	return max(1, e.hunt.triggered+c.cfg.Tell, e.hunt.noQuorum)
}
