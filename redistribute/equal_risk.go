package redistribute

import "github.com/samya-db/samya/avantan"

// equalRisk gives every site the same chance to run short. Site i needs mᵢ tokens at even
// odds and qᵢ to be safe, both out of the pool and its own offer included. With P tokens
// in the pool, it gets
//
//	gᵢ = mᵢ + z (qᵢ - mᵢ),   z = (P - Σ m) / Σ (q - m)
//
// with the same z for all. Let the demands have the same shape and differ in place and
// width, as normal distributions do. Then each site's demand exceeds its grant with the
// same probability. This is how stock is allotted to depots that share it (Eppen and
// Schrage, "Centralized ordering policies in a multi-warehouse system with lead times and
// random demand", 1981).
//
// q is Wanted. m is Median, a hint, moved into the range from Queued to Wanted. The pool
// is shared out in this order:
//
//  1. Queued, to the smallest first; see queuesFirst.
//  2. m-Queued, in full, or in proportion where it is scarce.
//  3. The rest in proportion to q-m, also beyond q, where z is above 1; in
//     proportion to q if nobody has q above m; equally if all are zero.
//
// A pool below zero is a debt; see owe.
type equalRisk struct{}

func (equalRisk) Name() string { return EqualRisk }

func (equalRisk) Grants(cs []avantan.Contribution, delta avantan.Tokens) ([]avantan.Tokens, error) {
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
		weights[k] = uint64(median(cs[i]) - cs[i].Queued)
	}
	left = allOrInProportion(grants, order, weights, left)
	var spread uint64
	for k, i := range order {
		weights[k] = uint64(cs[i].Wanted - median(cs[i]))
		spread |= weights[k]
	}
	if spread == 0 {
		for k, i := range order {
			weights[k] = uint64(cs[i].Wanted)
		}
	}
	share(grants, order, left, weights)
	return grants, nil
}

// median returns the tokens a site needs at even odds.
func median(c avantan.Contribution) avantan.Tokens {
	return min(max(c.Median, c.Queued), c.Wanted)
}
