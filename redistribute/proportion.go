package redistribute

import (
	"cmp"
	"math/big"
	"slices"
)

// proportionally splits total in proportion to the weights, equally if all are
// zero, by the method of the largest remainder: each gets the whole part of its
// share, and the tokens left over go one each to the largest fractions, the
// first of equals. The shares add up to total; at least one weight is needed.
//
// It computes with integers of any size: the product of two 64-bit numbers is
// divided by a sum of 64-bit numbers that may itself not fit.
func proportionally(total uint64, weights []uint64) []uint64 {
	shares := make([]uint64, len(weights))
	sum := new(big.Int)
	for _, w := range weights {
		sum.Add(sum, new(big.Int).SetUint64(w))
	}
	if sum.Sign() == 0 {
		n := uint64(len(weights))
		for k := range shares {
			shares[k] = total / n
			if uint64(k) < total%n {
				shares[k]++
			}
		}
		return shares
	}

	tokens := new(big.Int).SetUint64(total)
	fractions := make([]*big.Int, len(weights))
	byFraction := make([]int, len(weights))
	left := total
	for k, w := range weights {
		product := new(big.Int).SetUint64(w)
		product.Mul(product, tokens)
		whole, fraction := product.QuoRem(product, sum, new(big.Int))
		shares[k], fractions[k], byFraction[k] = whole.Uint64(), fraction, k
		left -= shares[k]
	}
	slices.SortStableFunc(byFraction, func(a, b int) int {
		return cmp.Or(fractions[b].Cmp(fractions[a]), cmp.Compare(a, b))
	})
	// Fewer tokens are left over than there are fractions above zero.
	for _, k := range byFraction[:left] {
		shares[k]++
	}
	return shares
}
