package redistribute

import (
	"cmp"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// paper is Algorithm 2. TW, the tokens a site wants, counts beyond its offer: max(0,
// Wanted-Offered). As long as all wants together exceed the pool, the smallest is
// rejected, ties in the order of the sites. The remaining wants are granted, and the rest
// of the pool is split equally.
//
// Two repairs. The printed RejectSomeRequests adds the rejected site's offer to a pool
// that holds it already (line 14): sites that offer 5 and 5 and want 10 and 1 are then
// granted 14 tokens out of 10. The text means that a rejected want lowers the total
// wanted. And the printed division (line 23) drops its remainder: here it goes to the
// first sites, a token each; of a negative pool the first sites bear a token more each.
//
// An oddity is kept, for comparison. A site that wants more can end with less than it
// offered, since offers are not given back before they are split.
type paper struct{}

func (paper) Name() string { return Paper }

func (paper) Grants(cs []avantan.Contribution, delta avantan.Tokens) ([]avantan.Tokens, error) {
	order, pool, err := inSiteOrder(cs, delta)
	if err != nil {
		return nil, err
	}
	grants := make([]avantan.Tokens, len(cs))
	if len(cs) == 0 {
		return grants, nil
	}

	// Rejecting the smallest until the rest fits is the same as accepting the largest as
	// long as they fit; this way no sum can overflow.
	ascending := slices.Clone(order)
	slices.SortStableFunc(ascending, func(a, b int) int {
		return cmp.Compare(wantedBeyondOffer(cs[a]), wantedBeyondOffer(cs[b]))
	})
	spare := pool
	for _, i := range slices.Backward(ascending) {
		want := wantedBeyondOffer(cs[i])
		if spare < 0 || want > uint64(spare) {
			break
		}
		grants[i] = avantan.Tokens(want)
		spare -= int64(want)
	}

	each, rest := spare/int64(len(cs)), spare%int64(len(cs))
	for _, i := range order {
		grants[i] += avantan.Tokens(each)
		switch {
		case rest > 0:
			grants[i]++
			rest--
		case rest < 0:
			grants[i]--
			rest++
		}
	}
	return grants, nil
}

// wantedBeyondOffer is the paper's TokensWanted. It may be as large as 2^64-1: the offer
// of a site in debt is negative.
func wantedBeyondOffer(c avantan.Contribution) uint64 {
	if c.Wanted <= c.Offered {
		return 0
	}
	return uint64(c.Wanted) - uint64(c.Offered)
}
