package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// An entity that somebody observes has a tally: what was asked of it here since the last look,
// and which tokens moved between sites. Other entities pay nothing for it.

// maxMoves bounds the moves of tokens of an entity between two looks. Further ones are
// counted together with the last.
const maxMoves = 64

// tally counts for the observer of an entity.
type tally struct {
	answer.Tally
	// at is the time of the last look.
	at Tick
}

// tallyTime is how long an entity is tallied after the last look, in milliseconds.
const tallyTime Tick = 60_000

// maxTallies bounds the entities that are tallied.
const maxTallies = 256

// tallies are the entities that somebody observes. The core changes the map while no shard
// runs; shards read the map, and write the tallies of their own entities.
type tallies map[*entity]*tally

// of is the tally of an observed entity; nil for others.
func (t tallies) of(e *entity) *tally {
	if len(t) == 0 {
		return nil
	}
	return t[e]
}

// sweep drops the tallies that nobody has looked at for long.
func (t tallies) sweep(now Tick) {
	for e, one := range t {
		if now > one.at+tallyTime {
			delete(t, e)
		}
	}
}

// observe answers with the state of an entity and its tally since the last look. The first
// look begins the tally.
func (c *Core) observe(o *input.Observe) {
	c.space.Execute([]string{o.Entity}, func(es []*entity) {
		e := es[0]
		if e == nil {
			c.reply(o.Call, answer.Answer{Code: answer.NotFound})
			return
		}
		d := &answer.Details{View: e.view(), Observed: answer.Observed{Horizon: c.cfg.Bin * Tick(c.cfg.Horizon)}}
		if c.showRate(e, &d.View); e.demand.model != nil {
			f := c.forecasting.forecast(e)
			d.Observed.Forecast, d.Observed.Forecasts = answer.Forecast{Expected: f.Expected, Median: f.Median, High: f.High}, true
		}
		c.tallies.sweep(c.now.Tick)
		if o.End {
			delete(c.tallies, e)
			c.reply(o.Call, answer.Answer{Details: d})
			return
		}
		if t := c.tallies.of(e); t != nil {
			d.Observed.Tally, d.Observed.Since = t.Tally, c.now.Tick-t.at
		}
		if c.tallies == nil {
			c.tallies = make(tallies)
		}
		if c.tallies.of(e) != nil || len(c.tallies) < maxTallies {
			c.tallies[e] = &tally{at: c.now.Tick}
		}
		c.reply(o.Call, answer.Answer{Details: d})
	})
}

// granted counts tokens of granted acquires.
func (t *tally) granted(tokens Tokens) {
	if t != nil {
		t.Granted += tokens
	}
}

// released counts tokens that came back.
func (t *tally) released(tokens Tokens) {
	if t != nil {
		t.Released += tokens
	}
}

// refused counts the tokens of an acquire that was refused.
func (c *admitting) refused(ch charge) {
	for i := range ch {
		if t := c.tallies.of(ch[i].of); t != nil {
			t.Refused += ch[i].tokens
		}
	}
}

// moved counts a move of tokens between sites; without names it is of an instance.
func (t *tally) moved(m answer.Move) {
	if t == nil || m.Tokens == 0 {
		return
	}
	if n := len(t.Moves); n == maxMoves {
		t.Moves[n-1].Tokens += m.Tokens
		return
	}
	t.Moves = append(t.Moves, m)
}
