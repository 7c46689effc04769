package books

import "sync/atomic"

// The escrow of a hot entity is spread over stripes, as sites share a limit. Each shard
// that serves its requests has a stripe. Tokens of stripes are in no other balance until
// the stripes are gathered.

// MostInStripe bounds the balances of a stripe, in tokens: all stripes together stay
// within most.
const MostInStripe = most >> 8

// Stripe is a shard's part of an escrow. Its shard alone changes it while stripes are
// scattered.
type Stripe struct {
	// left may be read by others.
	left atomic.Int64
	// given is the number of tokens from Scatter; net is taken less returned.
	given, net, taken, returned Tokens
	operations                  uint64
	broken                      *brokenError
	_                           [64]byte // stripes share no cache line
}

// Left is the number of tokens available in the stripe. It may be called at any time.
func (s *Stripe) Left() Tokens { return Tokens(s.left.Load()) }

// Net is the number of tokens taken from the stripe less returned to it, since it was
// scattered.
func (s *Stripe) Net() Tokens { return s.net }

// Operations counts the operations on the stripe since it was scattered.
func (s *Stripe) Operations() uint64 { return s.operations }

// Take hands out tokens: at least 1, at most the tokens left in the stripe.
func (s *Stripe) Take(tokens Tokens) error {
	if tokens < 1 || tokens > s.Left() {
		return s.fail("take", tokens)
	}
	s.taken += tokens
	return s.move("take", tokens)
}

// Fits reports whether the stripe has room for the return of outstanding tokens.
func (s *Stripe) Fits(tokens Tokens) bool {
	return s.Left() <= MostInStripe-tokens && s.net >= tokens-MostInStripe
}

// Return takes back outstanding tokens, which must fit.
func (s *Stripe) Return(tokens Tokens) error {
	if tokens < 1 || !s.Fits(tokens) {
		return s.fail("return", tokens)
	}
	s.returned += tokens
	return s.move("return", -tokens)
}

// move moves tokens from left to net.
func (s *Stripe) move(operation string, tokens Tokens) error {
	s.left.Store(s.left.Load() - int64(tokens))
	s.net += tokens
	s.operations++
	if s.broken == nil && s.Left()+s.net == s.given {
		return nil
	}
	return s.fail(operation, tokens)
}

func (s *Stripe) fail(operation string, tokens Tokens) error {
	if s.broken == nil {
		s.broken = &brokenError{Operation: operation + " of a stripe", Tokens: tokens, Left: s.Left(), Net: s.net}
	}
	return s.broken
}

// Scatter gives each of the stripes, which are empty, the same part of the tokens left.
func (b *Books) Scatter(stripes []Stripe, part Tokens) error {
	n := Tokens(len(stripes))
	if b.Closed() || part < 0 || part > MostInStripe || part*n > b.left {
		return b.fail("scatter", part)
	}
	for i := range stripes {
		s := &stripes[i]
		if s.given != 0 || s.net != 0 {
			return b.fail("scatter", part)
		}
		s.given = part
		s.left.Store(int64(part))
	}
	b.left -= part * n
	b.escrow -= part * n
	return nil
}

// Gather takes the stripes' tokens back into the books and empties the stripes. It
// returns the tokens taken and returned there, and the number of operations.
func (b *Books) Gather(stripes []Stripe) (taken, returned Tokens, operations uint64, err error) {
	left, net, given := b.left, b.net, Tokens(0)
	for i := range stripes {
		s := &stripes[i]
		if s.broken != nil && err == nil {
			err = s.broken
		}
		left += s.Left()
		net += s.net
		given += s.given
		taken += s.taken
		returned += s.returned
		operations += s.operations
		s.left.Store(0)
		s.given, s.net, s.taken, s.returned, s.operations = 0, 0, 0, 0, 0
	}
	if err == nil && (b.Closed() || !within(left, 0) || !within(net, 0)) {
		err = b.fail("gather", given)
	}
	if err != nil {
		b.Close()
		return taken, returned, operations, err
	}
	b.left, b.net = left, net
	b.escrow += given
	return taken, returned, operations, nil
}
