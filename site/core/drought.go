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
// nothing of what became of tokens in between. Where they tell of many it is not
// believed, and acquires wait.
//
// Many droughts last seconds. While one is young small acquires wait a moment, no
// more of them than are asked for in a second, and tokens are looked for more often.
type drought struct {
	// since is when it began; 0 for no drought. shown is when an instance has last
	// shown it, also after the drought has ended.
	since, shown Tick
	// ended is when the last one did; 0 for never.
	ended Tick
	// began is when the first instance has shown it.
	began Tick
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
	if d.since == 0 {
		d.began = c.now.Tick
		if d.ended != 0 && c.now.Tick < d.ended+calm {
			d.began -= youngDrought
		}
	}
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
			*d = drought{shown: d.shown, ended: c.now.Tick}
		}
	}
}

// dryAgain reports whether a drought that was shown lately has come back: the other
// sites together tell of fewer tokens than would end a drought, and of fewer than this
// site lacks.
func (c *Core) dryAgain(e *entity, s *Situation) bool {
	d := e.itsDrought()
	enough := min(worth(e), e.lacks())
	if d.shown == 0 || c.now.Tick > d.shown+memory || s.Elsewhere >= enough || !c.hearsAll(e) {
		return false
	}
	shown := d.shown
	c.giveUp(e)
	d.shown = shown
	return true
}

// lacks is how many more tokens would serve the smallest waiting acquire. If no acquire
// waits, lacks is how many tokens would pay the debt.
func (e *entity) lacks() Tokens {
	if e.queue.len() == 0 {
		return max(1, -e.books.Left())
	}
	return max(1, e.queue.fewest()-e.usable())
}

// memory is how long after it was shown a drought may begin again on the word of
// others.
const memory = 60_000

// emptyFor is for how long it is believed, at least, that there are no tokens to
// be had elsewhere; 0 if that is not believed.
func (c *Core) emptyFor(e *entity) Tick {
	d := e.droughtNow()
	if d.since == 0 || c.mods.admission.Patient() && c.toldOfMany(e) {
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

// toldOfMany reports whether others tell of so many tokens that nobody need be
// refused: a fiftieth of the limit. What becomes free before that is told is less
// than as much again.
func (c *Core) toldOfMany(e *entity) bool {
	left, told := c.elsewhere(e)
	return told && left >= max(1, e.limit/manyPart)
}

const (
	// manyPart is of which part of the limit that is told, and fewPart of which it is
	// worth while to look for tokens for those that wait in a drought.
	manyPart, fewPart = 50, 100
	// youngDrought is for how many milliseconds a drought is young, and keepWaiting for
	// how many an acquire waits in one.
	youngDrought, keepWaiting = 5000, 2500
	// smallPart is of which part of the limit releases bring enough within that.
	smallPart = 1000
)

// calm is how long after a drought another one is young again: where they come one after
// the other, waiting does not see them over.
const calm = 30_000

// small is the largest acquire that waits in a drought.
func small(e *entity) Tokens { return max(1, e.limit/smallPart) }

// refusesFor is for how long it is believed that an acquire would wait in vain; 0 if
// it may wait. Without a majority any may, as long as its client lets it. A small one
// may in a young drought, as many are over within seconds, behind no more than are
// asked for in one.
func (c *Core) refusesFor(e *entity, tokens Tokens) Tick {
	if e.apart() {
		return 0
	}
	empty := c.emptyFor(e)
	if empty > 0 && c.mods.admission.Patient() && c.now.Tick < e.droughtNow().began+youngDrought && tokens <= small(e) &&
		float64(e.queue.asked()) < max(1, e.demand.rateAt(c.now.Tick)) {
		return 0
	}
	return empty
}

// doubt ends a drought that others have not gone on telling of since it was shown.
// It is looked at before they are believed again: word that comes after a silence
// proves nothing.
func (c *Core) doubt(e *entity) {
	if d := e.drought; d != nil && d.since != 0 && c.now.Tick >= d.until && !c.heardAll(e, d.since) {
		d.since, d.refused, d.ended = 0, 0, c.now.Tick
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

// toldSince is what the other sites in reach that have told since then have left, and
// what of that they do not expect to need.
func (c *Core) toldSince(e *entity, since Tick) (left, spare Tokens) {
	for i, m := range c.cfg.Members {
		if m != c.cfg.Self && c.seemsUp(m) && e.views != nil && e.views[i].at > since {
			left += max(0, e.views[i].left)
			spare += max(0, e.views[i].left-e.views[i].Median)
		}
	}
	return left, spare
}

// debtDue reports whether a debt is to be looked at again although there seemed to be
// nothing to pay it with: nobody is refused who would have others asked. It is when the
// pause is over, and once others tell that they can pay it all.
func (c *Core) debtDue(e *entity) bool {
	if e.books.Left() >= 0 {
		return false
	}
	d := e.droughtNow()
	left, _ := c.toldSince(e, d.since)
	return c.now.Tick >= d.until || left >= -e.books.Left() && c.now.Tick >= e.hunt.triggered+c.cfg.Tell
}

// probe asks for tokens that others tell of in a drought, if it is time to.
func (c *Core) probe(e *entity, s *Situation) {
	d := e.itsDrought()
	left, spare := c.toldSince(e, d.since)
	waits := e.queue.len() > 0 && (e.apart() || c.now.Tick < d.began+youngDrought+keepWaiting)
	if waits && left >= max(1, e.limit/fewPart) && s.SinceTrigger >= c.cfg.Tell/2 {
		e.hunt.short = false
		c.redistribute(e, s, droughtReason, false)
		return
	}
	switch {
	case waits && !e.apart():
		return
	case d.refused == 0 && !waits || left == 0 || s.SinceTrigger < c.cfg.Tell:
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
