package core

import "iter"

// An allocation is an entity that is no rate quota. The books of allocations in a tree are
// sums (docs/protocol.md, section 19); those of rate quotas are not.

// sumsOf are the entities whose net counts the net of an entity: the entity itself and, unless
// it is a rate quota, the allocations above. The net of a rate quota is the rate quota's own:
// it shrinks by the clock. Tokens acquired through a rate quota are out of the allocations
// above, as if acquired from the nearest of them.
func sumsOf(e *entity) iter.Seq[*entity] {
	return func(yield func(*entity) bool) {
		if !yield(e) || rateOf(e) != nil {
			return
		}
		for a := range allocationsOf(e.parent()) {
			if !yield(a) {
				return
			}
		}
	}
}

// allocationsOf are the entities of a chain that are no rate quotas.
func allocationsOf(e *entity) iter.Seq[*entity] {
	return func(yield func(*entity) bool) {
		for a := range e.chain() {
			if rateOf(a) == nil && !yield(a) {
				return
			}
		}
	}
}

// allocationOf is the lowest entity of a chain that is no rate quota; nil if there is none.
func allocationOf(e *entity) *entity {
	for a := range allocationsOf(e) {
		return a
	}
	return nil
}

// carried is the number of tokens of an entity and its descendants that the allocations above
// count as out, and that move along with the entity.
func (s *space) carried(e *entity) Tokens {
	if rateOf(e) == nil {
		return e.books.Net()
	}
	return s.carriedBelow(e)
}

// carriedBelow is the sum of carried over the children of an entity.
func (s *space) carriedBelow(e *entity) (sum Tokens) {
	s.childrenOf(e, "", func(child *entity) bool {
		sum += s.carried(child)
		return true
	})
	return sum
}
