package core

import "github.com/samya-db/samya/avantan"

// drought is what a site believes of an entity after an instance has shown that
// nobody in reach has any tokens for it: that there are none to be had elsewhere.
// Acquires that what is left cannot serve are refused at once then, and do not
// begin a hunt that would end like the last one. The belief rests on a proof at
// its beginning, and on what others tell since.
//
// While it lasts, tokens that others tell of are asked for in the background, the
// more rarely the less that brings. It ends once that has brought a good deal, or
// when not all sites in reach have told lately: what they tell after a silence says
// nothing of what became of tokens in between.
type drought struct {
	// since is when it began; 0 for no drought. shown is when an instance has last
	// shown it, also after the drought has ended.
	since, shown Tick
	// until is before when nobody is asked for a few tokens, and pause the length
	// of the present pause.
	until, pause Tick
	// refused is the largest acquire that was refused since others were asked last.
	refused Tokens
}

// droughtNow is what is believed: no drought, before there was one.
func (e *entity) droughtNow() drought {
	if e.drought == nil {
		return drought{}
	}
	return *e.drought
}

// itsDrought is what is believed, to be changed.
func (e *entity) itsDrought() *drought {
	if e.drought == nil {
		e.drought = new(drought)
	}
	return e.drought
}

// worth is how many tokens end a drought: a good deal more than lie about
// everywhere in one.
func worth(e *entity) Tokens { return max(1, min(worthMost, e.limit/50)) }

// worthMost is that, unless a fiftieth of the limit is less.
const worthMost = 40

// dry has the belief begin, or go on.
func (c *Core) dry(e *entity) {
	d := e.itsDrought()
	d.since = max(1, c.now.Tick)
	d.shown = d.since
	c.pauseDrought(d)
}

func (c *Core) pauseDrought(d *drought) {
	d.pause = min(max(2*d.pause, c.cfg.GiveUp), c.cfg.MaxGiveUp)
	d.until = c.now.Tick + d.pause
}

// came looks whether tokens that came from other sites end the drought: a
// fiftieth of the limit. That is more than what is worth a try, or it would end
// and begin again all the time, with acquires waiting in vain each time.
func (c *Core) came(e *entity, tokens Tokens) {
	if tokens >= max(worth(e), e.limit/50) {
		if d := e.drought; d != nil {
			*d = drought{shown: d.shown}
		}
	}
}

// dryAgain reports whether there is a drought again, after one that was shown not
// long ago: by what all the others tell, less is left than would end one.
func (c *Core) dryAgain(e *entity, s *Situation) bool {
	d := e.itsDrought()
	if d.shown == 0 || c.now.Tick > d.shown+memory || s.Elsewhere >= worth(e) || !c.hearsAll(e) {
		return false
	}
	shown := d.shown
	c.giveUp(e)
	d.shown = shown
	return true
}

// memory is how long after it was shown a drought may begin again on the word of
// others.
const memory = 60_000

// emptyFor is for how long it is believed, at least, that there are no tokens to
// be had elsewhere; 0 if that is not believed.
func (c *Core) emptyFor(e *entity) Tick {
	d := e.droughtNow()
	if d.since == 0 {
		return 0
	}
	if c.now.Tick < d.until {
		return d.until - c.now.Tick
	}
	if !c.hearsAll(e) {
		return 0
	}
	return c.cfg.Tell
}

// doubt ends a drought that others have not gone on telling of since it was shown.
// It is looked at before they are believed again: word that comes after a silence
// proves nothing.
func (c *Core) doubt(e *entity) {
	if d := e.drought; d != nil && d.since != 0 && c.now.Tick >= d.until && !c.heardAll(e, d.since) {
		d.since, d.refused = 0, 0
	}
}

// hearsAll reports whether all other sites in reach have told of the entity
// lately.
func (c *Core) hearsAll(e *entity) bool { return c.heardAll(e, 0) }

// heardAll reports whether all other sites in reach have told of the entity lately,
// or it was lately known what they have; 0 for never.
func (c *Core) heardAll(e *entity, known Tick) bool {
	for i, m := range c.cfg.Members {
		if m == c.cfg.Self || !c.seemsUp(m) {
			continue
		}
		at := known
		if e.views != nil {
			at = max(at, e.views[i].at)
		}
		if at == 0 || c.now.Tick > at+3*c.cfg.Tell {
			return false
		}
	}
	return true
}

// probe asks for tokens that others tell of in a drought, if it is time to.
func (c *Core) probe(e *entity, s *Situation) {
	d := e.itsDrought()
	var left, spare Tokens
	for i, m := range c.cfg.Members {
		if m != c.cfg.Self && c.seemsUp(m) && e.views != nil && e.views[i].at > d.since {
			left += max(0, e.views[i].left)
			spare += max(0, e.views[i].left-e.views[i].Median)
		}
	}
	switch {
	case d.refused == 0 || left == 0 || s.SinceTrigger < c.cfg.Tell:
		return
	case spare < worth(e) && c.now.Tick < d.until:
		return
	}
	// What lies about is less than sites keep unless they are pressed.
	e.hunt.press = avantan.PressAll
	c.pauseDrought(d)
	c.redistribute(e, s, droughtReason, false)
	d.refused = 0
}
