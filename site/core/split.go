package core

import "github.com/samya-db/samya/site/core/books"

// An entity from which most requests take tokens would have them all queue up in one
// partition. Its escrow can be split instead, over the lanes: the sites' way of sharing
// a limit, once more within a site. The stripes are part of the books only while the
// lanes are apart. Whatever runs alone finds the books whole, so what is persisted,
// pledged or told never knows of them, and a request that finds too little in a stripe is
// for Step, which has all that there is.

// split is the escrow of an entity as the lanes have it.
type split struct {
	stripes []books.Stripe
	// served counts the requests of stripes that were gathered.
	served uint64
}

// takesBack reports whether tokens of a stripe may be given back. One that was not
// given any takes none: there is something that hangs on how many there are.
func (e *entity) takesBack(s *books.Stripe, tokens Tokens) bool {
	return s.Left() > 0 && s.Fits(tokens) && e.books.Net()+s.Net()-tokens+e.outside+e.surplus() >= 0
}

// leftOn is what is left of an entity as a lane tells it: of a split one that is the
// sum of what each lane has, which may change meanwhile.
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

// Split has the escrow of an entity spread over the lanes, or not any more, and reports
// whether there is one of that name and it was not so. It runs alone.
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

// SplitState is what is known of a split entity.
type SplitState struct {
	Name string
	// Left is what each lane has.
	Left []Tokens
	// Served counts the requests that its lanes have served.
	Served uint64
}

// Splits tells of the split entities, in the order in which they were split. It runs
// alone.
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
			c.freedOne(e)
			continue
		}
		c.look(e)
	}
}

// leastPart is how many tokens a lane must get of a split entity for that to be worth
// it.
const leastPart = 4

// scatter gives each lane its part of what is left of the split entities, if nothing
// hangs on how much that is in all.
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
