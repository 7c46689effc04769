package redistribute

import "github.com/samya-db/samya/avantan"

// demand takes the tokens a site wants out of the pool, its own offer included, as its
// need. So no site that wants more ends with less than it offered while there is enough
// for all. It shares out the pool in this order:
//
//  1. Queued, to the smallest first; see queuesFirst.
//  2. Wanted-Queued, in full, or in proportion where it is scarce.
//  3. The surplus in proportion to Wanted; equally if nobody wants anything.
//
// A pool below zero is a debt; see owe.
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

	left := queuesFirst(grants, cs, order, uint64(pool))
	for k, i := range order {
		weights[k] = uint64(cs[i].Wanted - cs[i].Queued)
	}
	left = allOrInProportion(grants, order, weights, left)
	for k, i := range order {
		weights[k] = uint64(cs[i].Wanted)
	}
	share(grants, order, left, weights)
	return grants, nil
}
