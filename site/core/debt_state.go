package core

import (
	"math"
	"strings"

	"github.com/samya-db/samya/avantan"
)

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
	// of are the members among which unheard were last chosen.
	of members
	// lost says that a site was written off since the entity was created. The site may be
	// alive and cut off: then it hears of no debt, and grants what it holds.
	lost bool
}

// mayExceed bounds the excess of tokens out over the limit after a grant. If all members
// go by the debt, each sets the debt aside, and there is no excess. A lost site does not.
func (d *debt) mayExceed() Tokens {
	if d.unheard == 0 && !d.lost {
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

// restand is stand for the present state, without an input.
func (e *entity) restand() {
	if e.learns {
		e.itsDebt()
	}
	d := e.debt()
	if d == nil {
		return
	}
	held := e.learns
	if e.majority != nil && !held {
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
	return m != nil && m.Kind == avantan.Election && m.Press == avantan.PressHold && m.Instance == st.Applied+1 &&
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

// owes reports whether the site is in debt. A debt in an offer counts, as it may come
// back.
func (e *entity) owes() bool { return e.books.Left() < 0 || e.books.Left()+e.offered() < 0 }
