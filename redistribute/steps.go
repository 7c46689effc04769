package redistribute

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// queuesFirst grants the tokens that waiting acquires ask for, to the smallest sum first,
// ties in the order of the sites. It turns the paper's greedy choice round, so that the
// most waiting sites are served. The last of them gets the rest of the pool. It returns
// the tokens left.
func queuesFirst(grants []avantan.Tokens, cs []avantan.Contribution, order []int, left uint64) uint64 {
	ascending := slices.Clone(order)
	slices.SortStableFunc(ascending, func(a, b int) int { return cmp.Compare(cs[a].Queued, cs[b].Queued) })
	for _, i := range ascending {
		fits := min(uint64(cs[i].Queued), left)
		grants[i] = avantan.Tokens(fits)
		left -= fits
	}
	return left
}

// allOrInProportion grants the needs, a need for each site in order, in full if left
// suffices, else left in proportion to them. It returns the tokens left.
func allOrInProportion(grants []avantan.Tokens, order []int, needs []uint64, left uint64) uint64 {
	// Needs are compared with the room in turn: their sum may overflow.
	room, scarce := left, false
	for _, need := range needs {
		scarce = scarce || need > room
		room -= min(need, room)
	}
	if scarce {
		share(grants, order, left, needs)
		return 0
	}
	for k, i := range order {
		grants[i] += avantan.Tokens(needs[k])
	}
	return room
}

// share grants all of left in proportion to the weights.
func share(grants []avantan.Tokens, order []int, left uint64, weights []uint64) {
	if left == 0 {
		return
	}
	for k, s := range proportionally(left, weights) {
		grants[order[k]] += avantan.Tokens(s)
	}
}

// owe shares out a debt. The debt stays with the sites that offered a debt, in proportion
// to their debts, less the payments by other offers. A debt never wanders and never
// grows. A further debt from lowering the limit falls on all sites equally. A grant of
// the least integer is representable, so the debt is subtracted step by step instead of
// being negated.
func owe(grants []avantan.Tokens, cs []avantan.Contribution, order []int, debt uint64, weights []uint64) {
	room, exceeds := debt, true
	for k, i := range order {
		weights[k] = magnitude(int64(min(cs[i].Offered, 0)))
		exceeds = exceeds && weights[k] <= room
		room -= min(weights[k], room)
	}
	if exceeds {
		// Every debtor keeps its debt, and room is the debt that the limit adds.
		for k, i := range order {
			grants[i] -= avantan.Tokens(weights[k])
			weights[k] = 0
		}
		debt = room
	}
	for k, part := range proportionally(debt, weights) {
		grants[order[k]] -= avantan.Tokens(part)
	}
}

// sumOf adds unsigned numbers, and reports whether the sum fits 64 bits.
func sumOf(numbers []uint64) (total uint64, fits bool) {
	for _, n := range numbers {
		var carry uint64
		if total, carry = bits.Add64(total, n, 0); carry > 0 {
			return 0, false
		}
	}
	return total, true
}
