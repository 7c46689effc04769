package core

import "slices"

// A crowd is where many sites are short of an entity at once, and little is left. Each
// of them would ask all others for the same few tokens: as many redistributions as
// sites, each of which brings next to nothing. So a crowd begins one at a time, and that
// one is an instance, which shares out anew what all have by what all want.
//
// Sites take turns. Who lacks most, by what all have told, begins first. Each site that
// lacks less follows a crowdStep later, and finds the instance under way by then; after
// the last one it is the turn of the first again. Sites where nobody waits come later, and
// all do after an instance that moved few tokens. So the number of redistributions does not grow with the number of sites.
//
// None of this holds under the admission proof.

const (
	// crowdSize is how many other sites have to be short at once. Fewer are served
	// sooner by direct transfers, each within one round trip.
	crowdSize = 5
	// crowdPart is of which part of the limit less has to be left, in all.
	crowdPart = 8
	// crowdStep is by how many milliseconds a site follows the one that lacks next more:
	// more than the beginning of an instance takes to arrive.
	crowdStep = 250
	// crowdPause is for how many milliseconds nobody begins the next instance after one
	// that moved enough tokens.
	crowdPause = 100
)

// isShort reports whether another site has told lately that it expects at even odds to
// need more than it has.
func (c *Core) isShort(e *entity, i int) bool {
	v := &e.views[i]
	return c.cfg.Members[i] != c.cfg.Self && v.at != 0 && c.now.Tick <= v.at+maxAge && v.left < v.Median && c.seemsUp(c.cfg.Members[i])
}

// inCrowd reports whether so many other sites are short that all take turns.
func (c *Core) inCrowd(e *entity) bool {
	if len(c.cfg.Members) <= crowdSize || e.views == nil || !c.mods.admission.Patient() {
		return false
	}
	if left, told := c.elsewhere(e); !told || left+max(0, e.usable()) >= e.limit/crowdPart {
		return false
	}
	short := 0
	for i := range e.views {
		if c.isShort(e, i) {
			short++
		}
	}
	return short >= crowdSize
}

// turn is when the site may next begin a redistribution in a crowd: in its step of each
// round of steps, one for each short site. What a site lacks counts as it was told, its
// own too, so that sites agree on who comes first.
func (c *Core) turn(e *entity) Tick {
	self := slices.Index(c.cfg.Members, c.cfg.Self)
	own := e.views[self].Median - e.views[self].Left
	first, round := e.rarely().turns, Tick(crowdStep)
	if e.queue.len() == 0 && e.books.Left() >= 0 {
		first += c.cfg.GiveUp
	}
	for i := range e.views {
		if !c.isShort(e, i) {
			continue
		}
		round += crowdStep
		if lack := e.views[i].Median - e.views[i].Left; lack > own || lack == own && i < self {
			first += crowdStep
		}
	}
	if c.now.Tick < first {
		return first
	}
	begun := c.now.Tick - (c.now.Tick-first)%round
	if c.now.Tick < begun+crowdStep {
		return c.now.Tick
	}
	return begun + round
}

// turned notes that an instance has moved so many tokens between sites: the next turns
// begin after a pause, which is longer if that was little.
func (c *Core) turned(e *entity, moved Tokens) {
	switch {
	case !c.inCrowd(e):
		if e.seldom != nil {
			e.seldom.turns = 0
		}
	case moved < worth(e):
		e.rarely().turns = c.now.Tick + c.cfg.GiveUp
	default:
		e.rarely().turns = c.now.Tick + crowdPause
	}
}

// waitsForTurn reports whether the site lets others begin first.
func (c *Core) waitsForTurn(e *entity) bool {
	if s := e.rarely(); s.turns == 0 {
		s.turns = c.now.Tick
	}
	return c.now.Tick < c.turn(e)
}
