package redistribute

import (
	"cmp"
	"math/big"
	"math/bits"
	"slices"
)

// proportionally splits total in proportion to the weights, equally if all are zero, by
// the method of the largest remainder. Each gets the whole part of its share. The tokens
// left over go to the largest fractions, a token each, the first of equals. The shares
// add up to total; at least one weight is needed.
func proportionally(total uint64, weights []uint64) []uint64 {
	sum, fits := sumOf(weights)
	if fits && sum == 0 {
		shares := make([]uint64, len(weights))
		n := uint64(len(weights))
		for k := range shares {
			shares[k] = total / n
			if uint64(k) < total%n {
				shares[k]++
			}
		}
		return shares
	}

	var shares []uint64
	var byFraction func(a, b int) int
	if fits {
		shares, byFraction = divide(total, weights, sum)
	} else {
		shares, byFraction = divideLarge(total, weights)
	}
	left := total
	ranked := make([]int, len(weights))
	for k := range weights {
		left -= shares[k]
		ranked[k] = k
	}
	if left == 0 {
		return shares
	}
	slices.SortFunc(ranked, func(a, b int) int { return cmp.Or(byFraction(b, a), cmp.Compare(a, b)) })
	// Fewer tokens are left over than there are fractions above zero.
	for _, k := range ranked[:left] {
		shares[k]++
	}
	return shares
}

// divide returns the whole parts of the shares, and how their fractions compare, where
// the sum of the weights fits 64 bits. Products have 128 bits; a quotient fits, as no
// weight is above the sum.
func divide(total uint64, weights []uint64, sum uint64) (shares []uint64, byFraction func(a, b int) int) {
	shares, fractions := make([]uint64, len(weights)), make([]uint64, len(weights))
	for k, w := range weights {
		if w == sum {
			shares[k] = total
			continue
		}
		high, low := bits.Mul64(total, w)
		shares[k], fractions[k] = bits.Div64(high, low, sum)
	}
	return shares, func(a, b int) int { return cmp.Compare(fractions[a], fractions[b]) }
}

// divideLarge is divide for weights of any sum.
func divideLarge(total uint64, weights []uint64) (shares []uint64, byFraction func(a, b int) int) {
	sum, tokens := new(big.Int), new(big.Int).SetUint64(total)
	for _, w := range weights {
		sum.Add(sum, new(big.Int).SetUint64(w))
	}
	shares = make([]uint64, len(weights))
	fractions := make([]*big.Int, len(weights))
	for k, w := range weights {
		product := new(big.Int).SetUint64(w)
		product.Mul(product, tokens)
		whole, fraction := product.QuoRem(product, sum, new(big.Int))
		shares[k], fractions[k] = whole.Uint64(), fraction
	}
	return shares, func(a, b int) int { return fractions[a].Cmp(fractions[b]) }
}
