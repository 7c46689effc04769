package core

import "github.com/samya-db/samya/site/core/books"

// If most requests took tokens from the same entity, all would queue up in the same
// partition. Its escrow can be split over the lanes instead, as sites share a limit. The
// stripes are outside the books only while the lanes are apart. Code that runs alone
// finds the books whole, so records, pledges and reports never show stripes. A request
// that finds too few tokens in a stripe is for Step, which has all tokens.

// split is the part of an entity's escrow in the lanes.
type split struct {
	stripes []books.Stripe
	// served counts the requests served on the stripes before the last gather.
	served uint64
}

// takesBack reports whether tokens may be given back to a stripe. A stripe without tokens
// takes none: something then depends on the number of tokens in all.
func (e *entity) takesBack(s *books.Stripe, tokens Tokens) bool {
	return s.Left() > 0 && s.Fits(tokens) && e.books.Net()+s.Net()-tokens+e.outside+e.surplus() >= 0
}

// leftOn is the number of tokens left of an entity as told by a lane. For a split entity
// it is the sum over the lanes, which may change meanwhile.
func (c *Core) leftOn(_ int, e *entity) Tokens {
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

// Split spreads the escrow of an entity over the lanes, or ends that. It reports whether
// the entity exists and its state changed. It runs alone.
func (c *Core) Split(name string, on bool) bool {
	if c.lanes.apart {
		c.joinLanes()
	}
	e := c.space.find(name)
	switch {
	case e == nil || e.place == nil || (e.split() != nil) == on:
		return false
	case on:
		e.place.split.Store(&split{stripes: make([]books.Stripe, len(c.lanes.all))})
		c.lanes.splits = append(c.lanes.splits, e)
	default:
		c.unsplit(e)
	}
	return true
}

func (c *Core) unsplit(e *entity) {
	if e.split() == nil {
		return
	}
	e.place.split.Store(nil)
	for i, s := range c.lanes.splits {
		if s == e {
			c.lanes.splits = append(c.lanes.splits[:i], c.lanes.splits[i+1:]...)
			return
		}
	}
}

// SplitState describes a split entity.
type SplitState struct {
	Name string
	// Left is the number of tokens left in each lane.
	Left []Tokens
	// Served counts the requests served by its lanes.
	Served uint64
}

// Splits describes the split entities, in the order of splitting. It runs alone.
func (c *Core) Splits() []SplitState {
	states := make([]SplitState, 0, len(c.lanes.splits))
	for _, e := range c.lanes.splits {
		s := e.split()
		st := SplitState{Name: e.name, Served: s.served}
		for i := range s.stripes {
			st.Left = append(st.Left, s.stripes[i].Left())
			st.Served += s.stripes[i].Operations()
		}
		states = append(states, st)
	}
	return states
}

// gather makes the books of the split entities whole.
func (c *Core) gather() {
	for _, e := range c.lanes.splits {
		s := e.split()
		asked, back, served, err := e.books.Gather(s.stripes)
		c.keepWhole(e, err)
		s.served += served
		if asked == 0 && back == 0 {
			continue
		}
		c.dirtyBooks(e)
		if back > 0 {
			c.returned(e, back)
		}
		if asked > 0 {
			c.demanded(e, asked)
		}
		if back > 0 {
			c.later(e)
			continue
		}
		c.look(e)
	}
}

// leastPart is the number of tokens that each lane must get for scattering to be
// worthwhile.
const leastPart = 4

// scatter gives each lane its part of the tokens left of the split entities, unless
// something depends on the number left in all.
func (c *Core) scatter() {
	for _, e := range c.lanes.splits {
		s := e.split()
		part := e.books.Left() / Tokens(len(s.stripes))
		if part < leastPart || e.queue.len() > 0 || e.audit != nil || !c.atEase(e) {
			continue
		}
		c.keepWhole(e, e.books.Scatter(s.stripes, min(part, books.MostInStripe/2)))
	}
}
