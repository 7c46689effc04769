package redistribute

import (
	"cmp"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// demand takes what a site wants out of the pool, its own offer included, as
// its need, so that no site that wants more ends with less than it offered
// while there is enough for all. It shares out the pool in this order:
//
//  1. Queued, to the smallest first, ties in the order of the sites: the paper's
//     greedy choice turned round, so that the most waiting sites are served. The
//     last one gets what is left of the pool.
//  2. Wanted-Queued, in full, or in proportion where it is scarce.
//  3. The surplus in proportion to Wanted; equally if nobody wants anything.
//
// A pool below zero is a debt. It stays with the sites that offered one, in
// proportion to what they owe, less what the other offers paid, so that a debt
// never wanders and never grows; what a lowering of the limit adds beyond that
// falls on all sites equally.
type demand struct{}

func (demand) Name() string { return Demand }

func (demand) Grants(cs []avantan.Contribution, delta avantan.Tokens) ([]avantan.Tokens, error) {
	order, pool, err := inSiteOrder(cs, delta)
	if err != nil {
		return nil, err
	}
	grants := make([]avantan.Tokens, len(cs))
	if len(cs) == 0 {
		return grants, nil
	}
	weights := make([]uint64, len(cs))
	if pool < 0 {
		owe(grants, cs, order, magnitude(pool), weights)
		return grants, nil
	}
	left := uint64(pool)

	ascending := slices.Clone(order)
	slices.SortStableFunc(ascending, func(a, b int) int { return cmp.Compare(cs[a].Queued, cs[b].Queued) })
	for _, i := range ascending {
		fits := min(uint64(cs[i].Queued), left)
		grants[i] = avantan.Tokens(fits)
		left -= fits
	}

	// Whether all expectations fit is asked one by one: their sum may overflow.
	room, scarce := left, false
	for k, i := range order {
		weights[k] = uint64(cs[i].Wanted - cs[i].Queued)
		scarce = scarce || weights[k] > room
		room -= min(weights[k], room)
	}
	if !scarce {
		for k, i := range order {
			grants[i] += avantan.Tokens(weights[k])
			weights[k] = uint64(cs[i].Wanted)
		}
		left = room
	}
	for k, share := range proportionally(left, weights) {
		grants[order[k]] += avantan.Tokens(share)
	}
	return grants, nil
}

// owe shares out a debt. A grant of the least integer is representable, so the
// debt is taken off step by step instead of being negated.
func owe(grants []avantan.Tokens, cs []avantan.Contribution, order []int, debt uint64, weights []uint64) {
	room, exceeds := debt, true
	for k, i := range order {
		weights[k] = magnitude(int64(min(cs[i].Offered, 0)))
		exceeds = exceeds && weights[k] <= room
		room -= min(weights[k], room)
	}
	if exceeds {
		// Every debtor keeps its debt, and room is what the limit adds to it.
		for k, i := range order {
			grants[i] -= avantan.Tokens(weights[k])
			weights[k] = 0
		}
		debt = room
	}
	for k, share := range proportionally(debt, weights) {
		grants[order[k]] -= avantan.Tokens(share)
	}
}
