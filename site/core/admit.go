package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/policy"
)

// admitting decides about acquires and releases.
type admitting struct {
	*common
	*forecasting
	*charging
	*assessing
	*remembering
	*asking
	*leasing
	*repeating
	*keying
}

// waits implements till: it asks the admission module, unless the window ends in time.
func (c *admitting) waits(e *entity, tokens Tokens, until Tick) bool {
	return c.endsBy(e, tokens, until) || c.mods.Admission.Short(c.assessing.situation(e), tokens, c.assessing.refusesFor(e, tokens)) != policy.RefuseNow
}

// begun grants or refuses an acquire seen for the first time, or lets it wait. A dry run is
// told how many tokens it would get now if it did not wait.
func (c *admitting) begun(call input.Call, r *request, ch charge, t *turn, dry bool) {
	for i := range ch {
		if plain(ch[i].of) {
			continue
		}
		// An acquire of more than a limit leaves no trace.
		if e := ch[i].of; !dry && c.replenishes(e) && ch.exceeds(r) == nil {
			c.replenish(e)
			c.serveQueue(e)
		}
		if e := ch[i].of; !dry && e.queue.holdIsOver(c.now.Tick) && ch.exceeds(r) == nil {
			c.endHold(e)
		}
	}
	t.mayWait = t.mayWait && !dry && !c.stopping
	switch v := decide(c, r, ch, t); {
	case v.waits != nil:
		c.enqueue(call, r, ch, v.waits, t.until)
	case dry:
		c.reply(call, c.tells(&v, r, ch))
	case v.refusing != nil && c.stopping:
		c.reply(call, answer.Answer{Code: answer.Stopping, Left: v.refusing.of.usable()})
	default:
		c.reply(call, c.conclude(&v, r, ch))
		if v.refusing != nil {
			c.demandRefused(v.refusing)
		}
		if v.granted() && !v.crowded {
			for i := range ch {
				c.assessing.checkTrigger(ch[i].of)
			}
		}
	}
}
