package core

// In a crowd many sites are short of an entity at once, and little is left. Each of them
// would ask all others for the same few tokens: as many redistributions as sites, each
// bringing next to nothing. So a crowd begins one redistribution at a time: an instance,
// which shares out anew the tokens of all sites by the wants of all.
//
// Sites take turns. The site that lacks most, by the reports of all, begins first. Each
// site that lacks less follows a crowdStep later, and finds the instance under way by
// then; after the last site it is the turn of the first again. Sites where nobody waits
// come later, and all do after an instance that moved few tokens. So the number of
// redistributions does not grow with the number of sites.
//
// None of this holds under the admission proof.

const (
	// crowdSize is the number of other sites that have to be short at once. Direct
	// transfers serve fewer sites sooner, each within a round trip.
	crowdSize = 5
	// crowdPart: in a crowd less than a crowdPart-th of the limit is left in all.
	crowdPart = 8
	// crowdStep is the time in milliseconds after which the next site follows: more than
	// the beginning of an instance takes to arrive.
	crowdStep = 250
	// crowdPause is the time in milliseconds for which no site begins the next instance
	// after an instance that moved enough tokens.
	crowdPause = 100
)

// inCrowd reports whether so many other sites are short that all take turns.
func (c *assessing) inCrowd(e *entity) bool {
	if c.roster.size() <= crowdSize || e.views == nil || !c.mods.Admission.Patient() {
		return false
	}
	if left, told := c.peering.elsewhere(e); !told || left+max(0, e.usable()) >= e.limit/crowdPart {
		return false
	}
	short := 0
	for i := range e.views {
		if c.peering.isShort(e, i) {
			short++
		}
	}
	return short >= crowdSize
}

// turn is the time at which the site may next begin a redistribution in a crowd: in its
// step of each round of steps, with a step for each short site. The reported lack of each
// site counts, this site's included, so that sites agree on their order.
func (c *assessing) turn(e *entity) Tick {
	self := c.roster.home
	own := e.views[self].Median - e.views[self].Left
	first, round := e.rarely().turns, Tick(crowdStep)
	if e.queue.len() == 0 && e.books.Left() >= 0 {
		first += c.cfg.GiveUp
	}
	for i := range e.views {
		if !c.peering.isShort(e, i) {
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

// turned notes the number of tokens that an instance has moved between sites. The next
// turns begin after a pause, longer if the number was small.
func (c *assessing) turned(e *entity, moved Tokens) {
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
func (c *assessing) waitsForTurn(e *entity) bool {
	if s := e.rarely(); s.turns == 0 {
		s.turns = c.now.Tick
	}
	return c.now.Tick < c.turn(e)
}
