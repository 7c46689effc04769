package core

// exhaustion is a site's belief that other sites have no tokens of an entity. An instance
// has shown it: nobody in reach had any tokens. The site then refuses at once every
// acquire that its own tokens cannot serve, and begins no further redistribution that would end
// like the last one. The belief rests on a proof at its beginning, and on the reports of
// others since.
//
// During an exhaustion the site asks in the background for tokens that others report. The
// less that brings, the more rarely it asks. The exhaustion ends once a good deal of tokens
// has come, or if some site in reach has not reported lately: a report after a silence
// says nothing about tokens moved in between. While others report many tokens the site
// does not believe in the exhaustion, and acquires wait.
//
// Many exhaustions last seconds. In a young exhaustion small acquires wait a moment, up to the
// number of tokens asked for in a second. The site also looks for tokens more often.
type exhaustion struct {
	// since is the beginning; 0 for no exhaustion. shown is the last time an instance showed
	// the exhaustion, kept after its end.
	since, shown Tick
	// ended is the end of the last exhaustion; 0 for never.
	ended Tick
	// began is the time when the first instance showed the exhaustion.
	began Tick
	// until is the tick before which the site asks nobody for a few tokens; pause is the
	// length of the current pause.
	until, pause Tick
	// refused is the largest acquire refused since the site last asked others.
	refused Tokens
}

// worth is the number of tokens that ends an exhaustion: a good deal more than the tokens
// that lie about everywhere in an exhaustion.
func worth(e *entity) Tokens { return max(1, min(worthMost, e.limit/50)) }

// worthMost bounds worth, in tokens, where a fiftieth of the limit is more.
const worthMost = 40

// dry begins the exhaustion, or goes on with it.
func (c *assessing) dry(e *entity) {
	d := e.itsExhaustion()
	if d.since == 0 {
		d.began = c.now.Tick
		if d.ended != 0 && c.now.Tick < d.ended+calm {
			d.began -= youngExhaustion
		}
	}
	d.since = max(1, c.now.Tick)
	d.shown = d.since
	c.pauseExhaustion(d)
}

func (c *assessing) pauseExhaustion(d *exhaustion) {
	d.pause = min(max(2*d.pause, c.cfg.GiveUp), c.cfg.MaxGiveUp)
	d.until = c.now.Tick + d.pause
}

// came ends the exhaustion if enough tokens came from other sites: a fiftieth of the limit.
// That is more than the amount worth a try. Otherwise exhaustions would end and begin again
// all the time, with acquires waiting in vain.
func (c *assessing) came(e *entity, tokens Tokens) {
	if tokens >= max(worth(e), e.limit/50) {
		if d := e.exhaustion; d != nil {
			*d = exhaustion{shown: d.shown, ended: c.now.Tick}
		}
	}
}

// lacks is the number of further tokens that would serve the smallest waiting acquire. If
// no acquire waits, lacks is the number that would pay the debt.
func (e *entity) lacks() Tokens {
	if e.queue.len() == 0 {
		return max(1, -e.books.Left())
	}
	return max(1, e.queue.fewest()-e.usable())
}

// memory is the time in milliseconds after which an exhaustion can no longer begin again on
// the word of others.
const memory = 60_000

// emptyFor is the least time for which the site goes on believing that others have no
// tokens; 0 if it does not believe so.
func (c *assessing) emptyFor(e *entity) Tick {
	d := e.exhaustionNow()
	if d.since == 0 || c.mods.Admission.Patient() && c.toldOfMany(e) {
		return 0
	}
	if c.now.Tick < d.until {
		return d.until - c.now.Tick
	}
	if !c.peering.hearsAll(e) {
		return 0
	}
	return c.cfg.Tell
}

// toldOfMany reports whether others report so many tokens that nobody need be refused: a
// fiftieth of the limit. Less than as much again becomes free before the next report.
func (c *assessing) toldOfMany(e *entity) bool {
	left, told := c.peering.elsewhere(e)
	return told && left >= max(1, e.limit/manyPart)
}

const (
	// A site need refuse nobody if others report a manyPart-th of the limit. For acquires
	// that wait in an exhaustion, a fewPart-th is worth looking for.
	manyPart, fewPart = 50, 100
	// youngExhaustion is the time in milliseconds for which an exhaustion is young, keepWaiting
	// the time for which an acquire waits in an exhaustion.
	youngExhaustion, keepWaiting = 5000, 2500
	// smallPart: releases bring a smallPart-th of the limit within keepWaiting.
	smallPart = 1000
)

// calm is the time in milliseconds after an exhaustion in which the next is not young: where
// exhaustions follow each other, waiting does not outlast them.
const calm = 30_000

// small is the largest acquire that waits in an exhaustion.
func small(e *entity) Tokens { return max(1, e.limit/smallPart) }

// patient reports whether small acquires wait a moment for releases in an exhaustion. Tokens
// of a rate quota are not released.
func (c *assessing) patient(e *entity) bool { return c.mods.Admission.Patient() && rateOf(e) == nil }

// refusesFor is the time for which the site believes that an acquire would wait in vain;
// 0 if it may wait. Without a majority any acquire may wait, as long as its client lets
// it. A small acquire may wait in a young exhaustion, as many end within seconds, unless
// more tokens already wait than are asked for in a second.
func (c *assessing) refusesFor(e *entity, tokens Tokens) Tick {
	if e.noQuorum() {
		return 0
	}
	empty := c.emptyFor(e)
	if empty > 0 && c.patient(e) && c.now.Tick < e.exhaustionNow().began+youngExhaustion && tokens <= small(e) &&
		float64(e.queue.asked()) < max(1, e.demand.rateAt(c.now.Tick)) {
		return 0
	}
	return empty
}

// doubt ends an exhaustion if others have not kept reporting since it was shown. The core
// calls doubt before it believes a new report: a report after a silence proves nothing.
func (c *assessing) doubt(e *entity) {
	if d := e.exhaustion; d != nil && d.since != 0 && c.now.Tick >= d.until && !c.peering.heardAll(e, d.since) {
		d.since, d.refused, d.ended = 0, 0, c.now.Tick
	}
}

// debtDue reports whether the site looks at a debt again although nothing seemed left to
// pay it: no acquire is refused that would have others asked. It does so when the pause
// is over, and once others report enough to pay it all. left is the number of tokens
// reported since the exhaustion began.
func (c *assessing) debtDue(e *entity, left Tokens) bool {
	if e.books.Left() >= 0 {
		return false
	}
	return c.now.Tick >= e.exhaustionNow().until || left >= -e.books.Left() && c.now.Tick >= e.rebalance.triggered+c.cfg.Tell
}
