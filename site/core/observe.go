package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// An entity that somebody observes has a tally: what was asked of it here since the last look,
// and which tokens moved between sites. Other entities pay for observers with a pointer.

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

// tallied is the tally of an entity that is observed; nil for others.
func (e *entity) tallied(now Tick) *tally {
	if e.tally != nil && now > e.tally.at+tallyTime {
		e.tally = nil
	}
	return e.tally
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
		if t := e.tallied(c.now.Tick); t != nil {
			d.Observed.Tally, d.Observed.Since = t.Tally, c.now.Tick-t.at
		}
		e.tally = &tally{at: c.now.Tick}
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
		if t := ch[i].of.tallied(c.now.Tick); t != nil {
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
