package redistribute_test

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/redistribute"
)

// oracles are the policies again, slow and obvious: exact arithmetic of any
// size, fractions as fractions, the steps as the documentation tells them.
var oracles = map[string]func(cs []avantan.Contribution, pool *big.Int) map[avantan.SiteID]avantan.Tokens{
	redistribute.Paper:     paperOracle,
	redistribute.Demand:    demandOracle,
	redistribute.EqualRisk: equalRiskOracle,
}

// claim is a site's part in a step of an oracle.
type claim struct {
	site   avantan.SiteID
	amount *big.Rat
}

func claims(cs []avantan.Contribution, amount func(avantan.Contribution) *big.Rat) []claim {
	var all []claim
	for _, c := range cs {
		all = append(all, claim{c.Site, amount(c)})
	}
	slices.SortFunc(all, func(a, b claim) int { return cmp.Compare(a.site, b.site) })
	return all
}

func total(all []claim) *big.Rat {
	sum := new(big.Rat)
	for _, c := range all {
		sum.Add(sum, c.amount)
	}
	return sum
}

func rat(n avantan.Tokens) *big.Rat { return new(big.Rat).SetInt64(int64(n)) }

// ledger is the grants so far.
type ledger map[avantan.SiteID]*big.Rat

func (l ledger) grant(site avantan.SiteID, amount *big.Rat) {
	if l[site] == nil {
		l[site] = new(big.Rat)
	}
	l[site].Add(l[site], amount)
}

func (l ledger) tokens() map[avantan.SiteID]avantan.Tokens {
	tokens := map[avantan.SiteID]avantan.Tokens{}
	for site, amount := range l {
		if !amount.IsInt() || !amount.Num().IsInt64() {
			panic("the oracle grants " + amount.String())
		}
		tokens[site] = avantan.Tokens(amount.Num().Int64())
	}
	return tokens
}

// share splits an amount, perhaps negative, in proportion to the claims, equally
// if they are all zero, and rounds towards zero but for the largest fractions.
func (l ledger) share(amount *big.Rat, all []claim) {
	sign := new(big.Rat).SetInt64(int64(amount.Sign()))
	amount = new(big.Rat).Abs(amount)
	if total(all).Sign() == 0 {
		for i := range all {
			all[i].amount = big.NewRat(1, 1)
		}
	}
	sum, left := total(all), new(big.Rat).Set(amount)
	fractions := make([]claim, len(all))
	for i, c := range all {
		exact := new(big.Rat).Quo(new(big.Rat).Mul(amount, c.amount), sum)
		whole := new(big.Rat).SetInt(new(big.Int).Quo(exact.Num(), exact.Denom()))
		l.grant(c.site, new(big.Rat).Mul(sign, whole))
		left.Sub(left, whole)
		fractions[i] = claim{c.site, exact.Sub(exact, whole)}
	}
	slices.SortFunc(fractions, func(a, b claim) int {
		return cmp.Or(b.amount.Cmp(a.amount), cmp.Compare(a.site, b.site))
	})
	for _, c := range fractions {
		if left.Sign() > 0 {
			l.grant(c.site, sign)
			left.Sub(left, big.NewRat(1, 1))
		}
	}
}

func paperOracle(cs []avantan.Contribution, pool *big.Int) map[avantan.SiteID]avantan.Tokens {
	spare := new(big.Rat).SetInt(pool)
	wants := claims(cs, func(c avantan.Contribution) *big.Rat {
		beyond := new(big.Rat).Sub(rat(c.Wanted), rat(c.Offered))
		if beyond.Sign() < 0 {
			return new(big.Rat)
		}
		return beyond
	})
	slices.SortStableFunc(wants, func(a, b claim) int { return a.amount.Cmp(b.amount) })
	for i := range wants {
		if total(wants).Cmp(spare) > 0 {
			wants[i].amount = new(big.Rat)
		}
	}
	l := ledger{}
	for _, w := range wants {
		l.grant(w.site, w.amount)
		spare.Sub(spare, w.amount)
	}
	if len(cs) > 0 {
		l.share(spare, claims(cs, func(avantan.Contribution) *big.Rat { return new(big.Rat) }))
	}
	return l.tokens()
}

func demandOracle(cs []avantan.Contribution, pool *big.Int) map[avantan.SiteID]avantan.Tokens {
	left, l := new(big.Rat).SetInt(pool), ledger{}
	if len(cs) == 0 || l.owed(left, cs) {
		return l.tokens()
	}
	l.queues(left, cs)
	expected := claims(cs, func(c avantan.Contribution) *big.Rat { return rat(c.Wanted - c.Queued) })
	if total(expected).Cmp(left) > 0 {
		l.share(left, expected)
		return l.tokens()
	}
	for _, e := range expected {
		l.grant(e.site, e.amount)
	}
	wanted := claims(cs, func(c avantan.Contribution) *big.Rat { return rat(c.Wanted) })
	l.share(left.Sub(left, total(expected)), wanted)
	return l.tokens()
}

// owed shares out a debt, and reports whether there is a debt.
func (l ledger) owed(pool *big.Rat, cs []avantan.Contribution) bool {
	if pool.Sign() >= 0 {
		return false
	}
	debts := claims(cs, func(c avantan.Contribution) *big.Rat { return rat(min(c.Offered, 0)) })
	if total(debts).Cmp(pool) < 0 {
		l.share(pool, debts)
		return true
	}
	for _, d := range debts {
		l.grant(d.site, d.amount)
	}
	l.share(pool.Sub(pool, total(debts)), claims(cs, func(avantan.Contribution) *big.Rat { return new(big.Rat) }))
	return true
}

// queues grants the queued tokens, and takes them off left.
func (l ledger) queues(left *big.Rat, cs []avantan.Contribution) {
	queued := claims(cs, func(c avantan.Contribution) *big.Rat { return rat(c.Queued) })
	slices.SortStableFunc(queued, func(a, b claim) int { return a.amount.Cmp(b.amount) })
	for _, q := range queued {
		amount := q.amount
		if amount.Cmp(left) > 0 {
			amount = new(big.Rat).Set(left)
		}
		l.grant(q.site, amount)
		left.Sub(left, amount)
	}
}

// clampedMedian is the median that equal-risk uses.
func clampedMedian(c avantan.Contribution) avantan.Tokens {
	switch {
	case c.Median < c.Queued:
		return c.Queued
	case c.Median > c.Wanted:
		return c.Wanted
	}
	return c.Median
}

// equalRiskOracle computes the z of the formula, and the grants with it.
func equalRiskOracle(cs []avantan.Contribution, pool *big.Int) map[avantan.SiteID]avantan.Tokens {
	left, l := new(big.Rat).SetInt(pool), ledger{}
	if len(cs) == 0 || l.owed(left, cs) {
		return l.tokens()
	}
	medians := claims(cs, func(c avantan.Contribution) *big.Rat { return rat(clampedMedian(c)) })
	spreads := claims(cs, func(c avantan.Contribution) *big.Rat { return rat(c.Wanted - clampedMedian(c)) })
	surplus := new(big.Rat).Sub(left, total(medians))
	switch {
	case surplus.Sign() < 0:
		l.queues(left, cs)
		l.share(left, claims(cs, func(c avantan.Contribution) *big.Rat { return rat(clampedMedian(c) - c.Queued) }))
	case total(spreads).Sign() == 0:
		for _, m := range medians {
			l.grant(m.site, m.amount)
		}
		l.share(surplus, medians)
	default:
		z := new(big.Rat).Quo(surplus, total(spreads))
		exact := make([]claim, len(cs))
		short := new(big.Rat).Set(left)
		for i, m := range medians {
			grant := new(big.Rat).Add(m.amount, new(big.Rat).Mul(z, spreads[i].amount))
			whole := new(big.Rat).SetInt(new(big.Int).Quo(grant.Num(), grant.Denom()))
			l.grant(m.site, whole)
			short.Sub(short, whole)
			exact[i] = claim{m.site, grant.Sub(grant, whole)}
		}
		slices.SortStableFunc(exact, func(a, b claim) int { return b.amount.Cmp(a.amount) })
		for i := range short.Num().Int64() {
			l.grant(exact[i].site, big.NewRat(1, 1))
		}
	}
	return l.tokens()
}
