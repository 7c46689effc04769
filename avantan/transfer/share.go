package transfer

import (
	"math/bits"

	"github.com/samya-db/samya/avantan"
)

// share returns the tokens that a donor gives for an ask of at least 1. The donor gives
// all of the ask if the rest still covers its own target. Otherwise it splits the
// tokens left as ask : target, and gives at least 1. It returns zero if no tokens are
// left.
func share(ask, left, target avantan.Tokens) avantan.Tokens {
	target = max(target, 0)
	if left <= 0 {
		return 0
	}
	if ask <= left && target <= left-ask {
		return ask
	}
	// The sum of two 63-bit numbers fits 64 bits. The quotient is below ask, since
	// left is below the divisor.
	hi, lo := bits.Mul64(uint64(left), uint64(ask))
	part, _ := bits.Div64(hi, lo, uint64(ask)+uint64(target))
	return max(avantan.Tokens(part), 1)
}

// divide splits a need of at least 1 over donors in proportion to the tokens they are
// thought to have left. The parts add up to the need; a donor without tokens has no
// part. The result is nil if no donor has tokens. The sum of the tokens left must fit
// 63 bits.
func divide(need avantan.Tokens, donors []Donor) []avantan.Tokens {
	var total uint64
	for _, d := range donors {
		total += uint64(max(d.Left, 0))
	}
	if total == 0 {
		return nil
	}
	parts := make([]avantan.Tokens, len(donors))
	var sum uint64
	var before avantan.Tokens
	for i, d := range donors {
		sum += uint64(max(d.Left, 0))
		// Rounding the running sum down leaves no remainder at the end.
		upTo := need
		if sum < total {
			hi, lo := bits.Mul64(uint64(need), sum)
			part, _ := bits.Div64(hi, lo, total)
			upTo = avantan.Tokens(part)
		}
		parts[i], before = upTo-before, upTo
	}
	return parts
}
