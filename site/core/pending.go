package core

import (
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// pendingChange is an administrative change asked for at this site and not yet decided.
type pendingChange struct {
	requestID string
	body      uint64
	until     Tick
	// times bound the change's life; dies is its end in this site's ticks.
	times stored.ChangeTimes
	dies  Tick
	// encoded is the change as proposed in an entity's own sequence.
	encoded []byte
	// catalogue is the change as proposed in the catalogue's sequence.
	catalogue stored.CatalogueChange
	// proposed is set while the protocol may hold the change, built once it may be part
	// of a value: the sites may then decide it whatever happens here.
	proposed, built bool
	// late is set once its time is up; it is not proposed any more.
	late    bool
	callers []changeCaller
}

// changeCaller waits for the answer to a change.
type changeCaller struct {
	call input.Call
	// until is the time at which the caller wants an answer. applied says that the caller
	// waits for all members to apply the change.
	until   Tick
	applied bool
}

// answerAll answers all callers that wait for a change.
func (c *common) answerAll(p *pendingChange, a answer.Answer) {
	for _, caller := range p.callers {
		c.reply(caller.call, a)
	}
}

// joinPending lets a repeat of a pending change wait with the first caller.
func joinPending(c *common, pending []*pendingChange, p *pendingChange) bool {
	i := slices.IndexFunc(pending, func(q *pendingChange) bool { return q.requestID == p.requestID })
	if i < 0 {
		return false
	}
	switch q := pending[i]; {
	case q.body != p.body:
		c.answerAll(p, answer.Answer{Code: answer.Reused})
	case len(q.callers) >= MaxCallers:
		// Not Overloaded: the change may be decided.
		c.answerAll(p, answer.Answer{Code: answer.Unknown})
	default:
		q.callers = append(q.callers, p.callers...)
		if until := min(p.until, q.dies); until > q.until {
			q.until, q.late = until, false
		}
	}
	return true
}

// expireChanges answers the changes that are late; protocol is nil before the first
// instance. A change that the protocol may still build into a value gets the time of a
// first phase more. The answer can then mostly be that nothing was done.
func (c *common) expireChanges(pending []*pendingChange, protocol *avantan.Machine) []*pendingChange {
	return slices.DeleteFunc(pending, func(p *pendingChange) bool {
		if p.until > c.now.Tick {
			return false
		}
		held := p.proposed && protocol != nil && (protocol.Open() || protocol.Waits())
		if held && !p.built && !p.late {
			p.late, p.until = true, c.now.Tick+c.cfg.Window+1
			return false
		}
		code := answer.NoQuorum
		if p.built || held {
			code = answer.Unknown
		}
		c.answerAll(p, answer.Answer{Code: code, RetryAfter: 1000})
		return true
	})
}

// firstDue returns the first change that may be proposed, or nil.
func firstDue(pending []*pendingChange) *pendingChange {
	i := slices.IndexFunc(pending, func(p *pendingChange) bool { return !p.late })
	if i < 0 {
		return nil
	}
	return pending[i]
}

// overdue reports whether the protocol holds, for the time after a back-off, a change
// whose time is up. Begun anew, the instance will be without the change.
func overdue(pending []*pendingChange, protocol *avantan.Machine) bool {
	return protocol.Waits() && !protocol.Open() &&
		slices.ContainsFunc(pending, func(p *pendingChange) bool { return p.late && p.proposed })
}

func notProposed(pending []*pendingChange) {
	for _, p := range pending {
		p.proposed = false
	}
}

// undecided answers a pending change without a result that will never have an effect, and
// reports whether it did: its time is over, or earlier results have a gap. If a value
// with the change may have been built, the change may have been decided, and its result
// forgotten.
func (c *common) undecided(p *pendingChange, clock int64, gap bool) bool {
	if !p.times.Dead(clock) && (!gap || !p.built) {
		return false
	}
	code := answer.Expired
	if p.built {
		code = answer.Unknown
	}
	c.answerAll(p, answer.Answer{Code: code, RetryAfter: 1000})
	return true
}

// proposal proposes an instance, with the first change that waits. If the change lowers the
// limit, or there is a debt, it asks sites for all their tokens, and to stand still: a site
// could still grant the tokens it keeps, while more is out than the limit.
func (c *rebalancing) proposal(e *entity, press avantan.Press) *avantan.Proposal {
	p := &avantan.Proposal{Policy: c.cfg.Policy, Press: press}
	settles := e.owed() > 0 || e.owes()
	notProposed(e.limitChanges())
	if ch := firstDue(e.limitChanges()); ch != nil {
		p.Change = ch.encoded
		ch.proposed = true
		if r, err := e.classify(ch.encoded); err == nil && r.delta(e) < 0 {
			settles = true
		}
	} else if e.voters < c.roster.Version {
		p.Change = adoption(c.roster.Version)
	}
	if settles {
		p.Policy, p.Press = settling+c.cfg.Policy, avantan.PressHold
	}
	return p
}
