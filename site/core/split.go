package core

import "sync/atomic"

// An entity from which most requests take tokens would have them all queue up in one
// partition. Its escrow can be split instead, over the lanes: the sites' way of sharing
// a limit, once more within a site. The slots are part of the books only while the
// lanes are apart. Whatever runs alone finds the books whole, so what is persisted,
// pledged or told never knows of them, and a request that finds too little in a slot is
// for Step, which has all that there is.

// split is the escrow of an entity as the lanes have it.
type split struct {
	slots []slot
	// served counts the requests of slots that were folded.
	served uint64
}

// slot is one lane's.
type slot struct {
	// left may be handed out; others than the lane read it.
	left atomic.Int64
	// net is acquired less released, asked and back are those, and served the requests,
	// since the slots were last folded.
	net, asked, back Tokens
	served           uint64
	_                [64]byte
}

func (s *slot) take(tokens Tokens) {
	s.left.Store(s.left.Load() - int64(tokens))
	s.net += tokens
	s.asked += tokens
	s.served++
}

func (s *slot) giveBack(tokens Tokens) {
	s.left.Store(s.left.Load() + int64(tokens))
	s.net -= tokens
	s.back += tokens
	s.served++
}

// maxSlot bounds what releases pile up in a slot and in its net: all slots stay within
// maxBooks.
const maxSlot = maxBooks >> 8

// takesBack reports whether tokens of a slot may be given back. One that was not
// spread takes none: there is something that hangs on how many there are.
func (s *slot) takesBack(e *entity, tokens Tokens) bool {
	left := Tokens(s.left.Load())
	return left > 0 && left <= maxSlot-tokens && s.net-tokens >= -maxSlot &&
		e.net+s.net-tokens+e.outside+e.surplus >= 0
}

// leftOn is what is left of an entity as a lane tells it: of a split one that is the
// sum of what each lane has, which may change meanwhile.
func (c *Core) leftOn(_ int, e *entity) Tokens {
	s := e.split()
	if s == nil {
		return e.usable()
	}
	left := e.left
	for i := range s.slots {
		left += Tokens(s.slots[i].left.Load())
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
		e.place.split.Store(&split{slots: make([]slot, len(c.lanes.all))})
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
		for i := range s.slots {
			st.Left = append(st.Left, Tokens(s.slots[i].left.Load()))
			st.Served += s.slots[i].served
		}
		states = append(states, st)
	}
	return states
}

// fold makes the books of the split entities whole.
func (c *Core) fold() {
	for _, e := range c.lanes.splits {
		s := e.split()
		var asked, back Tokens
		for i := range s.slots {
			x := &s.slots[i]
			e.left += Tokens(x.left.Swap(0))
			e.net += x.net
			asked += x.asked
			back += x.back
			s.served += x.served
			x.net, x.asked, x.back, x.served = 0, 0, 0, 0
		}
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

// leastSlot is how many tokens a lane must get of a split entity for that to be worth
// it.
const leastSlot = 4

// spread gives each lane its part of what is left of the split entities, if nothing
// hangs on how much that is in all.
func (c *Core) spread() {
	for _, e := range c.lanes.splits {
		s := e.split()
		part := e.left / Tokens(len(s.slots))
		if part < leastSlot || e.queue.len() > 0 || e.audit != nil || !c.atEase(e) {
			continue
		}
		part = min(part, maxSlot/2)
		for i := range s.slots {
			s.slots[i].left.Store(int64(part))
			e.left -= part
		}
	}
}
