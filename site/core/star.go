package core

import (
	"errors"
	"fmt"
	"math"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/policy"
)

// maxSlices bounds the star instances that an entity takes part in at once at this site.
// Only instances that wait for a member out of reach pile up.
const maxSlices = 32

// starProposal proposes an instance that its members decide.
func (c *rebalancing) starProposal(e *entity, s *policy.Situation) *star.Proposal {
	target, _ := c.mods.Want.Target(*s)
	short := max(1, c.mods.Want.Waiting(*s)+target-s.Left)
	if e.rebalance.press >= avantan.PressAll {
		// The site cannot know that there are no more tokens until all have answered.
		short = math.MaxInt64
	}
	e.rebalance.ledPress = e.rebalance.press
	return &star.Proposal{Policy: c.cfg.Policy, Press: e.rebalance.press, Short: short}
}

// stepStar hands an input to an entity's star machine.
func (c *rebalancing) stepStar(e *entity, in star.Input) {
	if e.star == nil {
		e.star = star.New(&c.starMachine, &starLedger{entityLedger{c: c, e: e}}, star.State{})
	}
	c.applied = nil
	usable := e.usable()
	out := e.star.Step(c.now.Tick, in)
	if out.Persist {
		c.dirtyRecord(e)
	}
	from := len(c.out.Messages)
	for i := range out.Messages {
		c.out.Messages = append(c.out.Messages, message.Envelope{
			Entity: e.name, Generation: e.generation, Star: &out.Messages[i],
		})
	}
	c.traceRound(e, from)
	stranger := errors.Is(out.Err, avantan.ErrStranger)
	if stranger && in.Receive != nil {
		// It has missed that a site joined, and asks for the catalogue.
		c.astray = in.Receive.From
	}
	if out.Err != nil && !stranger {
		c.out.Events = append(c.out.Events, event.Event{Kind: event.ProtocolFault, Entity: e.name, Err: out.Err})
	}
	nothing := c.applied == nil && out.Failed == star.FailedNothing
	dry := nothing && e.rebalance.ledPress >= avantan.PressAll
	if nothing && !dry {
		e.rebalance.press = avantan.PressAll
	}
	if out.Failed != star.FailedNot {
		c.out.Events = append(c.out.Events, event.Event{Kind: event.RedistributionFailed, Entity: e.name, Variant: policy.Star})
		c.endRound(e, "failed")
	}
	if in.Begin == nil || c.applied != nil || out.Failed != star.FailedNot || e.usable() > usable {
		c.consequences = append(c.consequences, consequence{of: e, applied: c.applied, dry: dry})
	}
}

// starLedger shows an entity's books to its star machine.
type starLedger struct{ entityLedger }

var _ star.Ledger = (*starLedger)(nil)

// Pledge implements star.Ledger.
func (l *starLedger) Pledge(id star.ID, press avantan.Press) (avantan.Contribution, bool) {
	if l.c.roster.leaves {
		return avantan.Contribution{}, false
	}
	s := l.c.assessing.situation(l.e)
	contribution := l.pledge(&s, press, false)
	l.c.assessing.keep(l.e)
	if id.Leader == l.c.cfg.Self {
		l.e.rebalance.led = l.c.assessing.counted(l.e, &s)
	}
	return contribution, contribution.Offered != 0 || contribution.Wanted != 0
}

// TakeBack implements star.Ledger.
func (l *starLedger) TakeBack(_ star.ID, pledge avantan.Contribution) { l.takeBack(pledge) }

// CanApply implements star.Ledger.
func (l *starLedger) CanApply(v *avantan.Value) error {
	if len(v.Change) > 0 {
		return fmt.Errorf("a change of %d bytes in an instance that no majority decides", len(v.Change))
	}
	if _, settles := policyOf(v); settles {
		return fmt.Errorf("a debt settled in an instance that no majority decides")
	}
	return l.entityLedger.CanApply(v)
}

// Apply implements star.Ledger.
func (l *starLedger) Apply(id star.ID, v *avantan.Value) {
	c, e := l.c, l.e
	o, err := l.outcome(v)
	if err != nil {
		panic(fmt.Sprintf("core: entity %q, instance %v: applying what CanApply found good: %v", e.name, id, err))
	}
	own, _ := v.Of(c.cfg.Self)
	c.keepWhole(e, e.books.Grant(own.Offered, o.grant))
	c.tallies.of(e).moved(answer.Move{Wall: c.now.Wall, Tokens: o.grant - own.Offered})
	c.lateFrom(e, o.grant-max(0, own.Offered), windowIn(v))
	e.moved++
	e.rebalance.lastGrant = e.books.Left()
	s := c.assessing.settledBy(v)
	s.moved = o.moved
	if id.Leader == c.cfg.Self {
		s.counted = e.rebalance.led
	}
	c.applied = s
	c.dirtyBooks(e)
	c.dirtyRecord(e)
}

// Conclude implements star.Ledger.
func (l *starLedger) Conclude(id star.ID, v *avantan.Value) {
	c, e := l.c, l.e
	o, err := l.outcome(v)
	if err != nil {
		panic(fmt.Sprintf("core: entity %q, instance %v: concluding what CanApply found good: %v", e.name, id, err))
	}
	own, _ := v.Of(c.cfg.Self)
	c.keepWhole(e, e.books.Grant(own.Offered, min(own.Offered, o.grant)))
	c.dirtyBooks(e)
	c.dirtyRecord(e)
}
