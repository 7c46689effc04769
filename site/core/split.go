package core

import (
	"github.com/samya-db/samya/site/core/books"
)

// If most requests took tokens from the same entity, all would queue up in the same
// partition. Its escrow can be split over the shards instead, as sites share a limit. The
// stripes are outside the books only while the shards are apart. Code that runs alone
// finds the books whole, so records, pledges and reports never show stripes. A request
// that finds too few tokens in a stripe is for Step, which has all tokens.

// split is the part of an entity's escrow in the shards.
type split struct {
	stripes []books.Stripe
	// served counts the requests served on the stripes before the last gather.
	served uint64
}

// takesBack reports whether tokens may be given back to a stripe. A stripe without tokens
// takes none: something then depends on the number of tokens in all.
func (e *entity) takesBack(s *books.Stripe, tokens Tokens) bool {
	return s.Left() > 0 && s.Fits(tokens) && e.books.Net()+s.Net()-tokens+e.outside+e.keptOut() >= 0
}

// leftOf is the number of tokens left of an entity as told by a shard. For a split entity
// it is the sum over the shards, which may change meanwhile.
func leftOf(e *entity) Tokens {
	s := e.split()
	if s == nil {
		return e.usable()
	}
	left := e.books.Left()
	for i := range s.stripes {
		left += s.stripes[i].Left()
	}
	return left
}

// SplitState describes a split entity.
type SplitState struct {
	Name string
	// Left is the number of tokens left in each shard.
	Left []Tokens
	// Served counts the requests served by its shards.
	Served uint64
}

// leastPart is the number of tokens that each shard must get for scattering to be
// worthwhile.
const leastPart = 4
