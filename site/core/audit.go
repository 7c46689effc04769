package core

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// auditing finds tokens that were released and never acquired.
type auditing struct {
	*common
	*peering
	*assessing
	// suspected is set once suspectRestored has looked at the restored entities.
	suspected  bool
	appraising appraising
}

// Plain releases are trusted, so clients can give back tokens that they never took. Then
// fewer than zero tokens are out in all, and the sites have more tokens left than the
// limit allows: a surplus. The sites' reports of their nets are of different times, and
// make an entity suspicious at most. An audit proves the surplus, and a change in the
// entity's own sequence sets it aside.
//
// An audit asks all other members to watch. Each answers with the id of its watch. Once
// all have answered, there is an instant at which all watch. The audit then asks each
// member, by that id, for the most tokens out during its watch. A site answers only if
// the watch of that id is still on; a restart, or another watch for the same auditor,
// ends it. So the tokens out in all at that instant were at most the sum of the answers,
// whatever clients did meanwhile. A client that acquires at one site and then releases at
// another is counted at the first before the second.
//
// A change of the entity's sequence may take tokens in use into the books of a single
// member, and out of those kept out of circulation. So an answer counts only once its site
// has applied the instances that the auditor had applied when the audit began.
//
// The tokens out include those of the entities below, and a change of the tree reaches
// the sites at different times. So such a change ends the watches, and an answer counts
// only if both sites have the same entities below.

const (
	// auditEvery is the least time between two audits of an entity by a site, auditTurn
	// the further wait of each next member before it audits too.
	auditEvery = 10_000
	auditTurn  = 3_000
	// auditFor bounds the duration of an audit, watchFor the duration of a watch.
	auditFor = 5_000
	watchFor = 60_000
)

// suspect checks whether fewer than zero tokens seem to be out. If all have told lately
// it begins an audit: the first member at once, later members if the suspicion lasts
// longer.
func (c *auditing) suspect(e *entity) {
	if !e.negative() {
		if e.audit != nil {
			e.audit.suspected = 0
			c.forgetAudit(e)
		}
		return
	}
	// All members tell until the suspicion is settled.
	c.peering.active(e)
	for i, m := range c.roster.others() {
		if e.views == nil || e.views[i].told == 0 || c.now.Tick > e.views[i].told+maxAge || !c.seemsUp(m) {
			return
		}
	}
	a := c.auditOf(e)
	if a.suspected == 0 {
		a.suspected = max(1, c.now.Tick)
	}
	rank := Tick(c.roster.rank())
	if c.now.Tick >= a.suspected+rank*auditTurn && (a.begun == 0 || c.now.Tick >= a.begun+auditEvery) {
		c.beginAudit(e)
	}
	c.assessing.schedule(e)
}

// mistrustReports forgets how many tokens are out at sites that run anew or have come up: their
// last reports may be lost. A site that runs anew tells by itself of negative nets alone. So
// this site has others told of each entity with a negative net that nothing else outweighs.
func (c *auditing) mistrustReports() {
	places := c.membersOf(c.mistrusted)
	c.mistrusted = c.mistrusted[:0]
	c.space.ascend("", func(e *entity) bool {
		for i := range e.views {
			if v := &e.views[i]; places.has(i) && v.Net > 0 {
				e.outside -= v.Net
				v.Net = 0
			}
		}
		if e.books.Net() < 0 && e.negative() {
			c.peering.active(e)
		}
		return true
	})
}

func (c *auditing) auditOf(e *entity) *audit {
	if e.audit == nil {
		e.audit = new(audit)
	}
	return e.audit
}

// watchNet begins a watch for an auditor, and replaces its earlier watch.
func (c *auditing) watchNet(e *entity, auditor SiteID) uint64 {
	a := c.auditOf(e)
	a.watches = slices.DeleteFunc(a.watches, func(w netWatch) bool { return w.auditor == auditor })
	w := netWatch{auditor: auditor, id: c.auditID(), most: e.books.Net(), until: c.now.Tick + watchFor, held: holdingOf(e)}
	a.watches = append(a.watches, w)
	return w.id
}

// auditID draws an id that no message of an earlier life has.
func (c *auditing) auditID() uint64 { return max(1, c.cfg.Rand.Uint64N(1<<63)) }

func (c *auditing) beginAudit(e *entity) {
	a := e.audit
	a.number, a.begun, a.version, a.applied, a.keptOut = c.auditID(), max(1, c.now.Tick), e.version, e.applied(), e.keptOut()
	a.members = make([]audited, c.roster.places())
	a.members[c.roster.home].watch = c.watchNet(e, c.cfg.Self)
	c.out.Events = append(c.out.Events, event.Event{Kind: event.AuditBegun, Entity: e.name})
	c.auditStep(e, message.AuditWatch)
	c.endAudit(e)
}

// auditStep asks all other members for a step.
func (c *auditing) auditStep(e *entity, step message.AuditStep) {
	for i, m := range c.roster.others() {
		c.sendAudit(e, message.Audit{To: m, Number: e.audit.number, Step: step, Watch: e.audit.members[i].watch})
	}
}

func (c *auditing) sendAudit(e *entity, m message.Audit) {
	m.From = c.cfg.Self
	c.out.Messages = append(c.out.Messages, message.Envelope{Entity: e.name, Generation: e.generation, Audit: &m})
}

// audited handles a step of an audit.
func (c *auditing) audited(e *entity, m *message.Audit) {
	from := c.roster.place(m.From)
	if from < 0 || m.Number == 0 {
		return
	}
	switch m.Step {
	case message.AuditWatch:
		c.sendAudit(e, message.Audit{To: m.From, Number: m.Number, Step: message.AuditWatching, Watch: c.watchNet(e, m.From)})
		c.assessing.schedule(e)
	case message.AuditRead:
		if e.audit == nil {
			return
		}
		if most, on := e.audit.most(m.From, m.Watch); on {
			told := message.Audit{To: m.From, Number: m.Number, Step: message.AuditTell, Net: most, Shape: c.shape(e), Applied: e.applied()}
			if held := e.audit.held(m.From, m.Watch); held.still && held == holdingOf(e) {
				told.Still, told.Held = true, held.escrow
			}
			c.sendAudit(e, told)
		}
	case message.AuditWatching, message.AuditTell:
		if e.audit == nil || e.audit.number != m.Number || c.now.Tick > e.audit.begun+auditFor {
			return
		}
		c.auditAnswer(e, &e.audit.members[from], m)
	}
}

// auditAnswer handles a member's answer to this site's audit.
func (c *auditing) auditAnswer(e *entity, member *audited, m *message.Audit) {
	if m.Step == message.AuditTell {
		if member.watch != 0 && !member.told && m.Shape == c.shape(e) {
			member.told, member.net = true, m.Net
			member.held = holding{still: m.Still, escrow: m.Held, applied: m.Applied}
			c.endAudit(e)
		}
		return
	}
	if member.watch != 0 || m.Watch == 0 {
		return
	}
	member.watch = m.Watch
	for i := range c.roster.all() {
		if e.audit.members[i].watch == 0 {
			return
		}
	}
	c.auditStep(e, message.AuditRead)
}

// endAudit ends this site's audit once all others have told, and sets a surplus aside if
// there is one.
func (c *auditing) endAudit(e *entity) {
	a := e.audit
	own := a.members[c.roster.home].watch
	out, on := a.most(c.cfg.Self, own)
	held := a.held(c.cfg.Self, own)
	all := sumOf(held, held == holdingOf(e))
	behind := false
	for i := range c.roster.others() {
		if !a.members[i].told {
			return
		}
		out += a.members[i].net
		all.add(a.members[i].held)
		behind = behind || c.can(versions.Members) && a.members[i].held.applied < a.applied
	}
	a.number, a.members = 0, nil
	a.watches = slices.DeleteFunc(a.watches, func(w netWatch) bool { return w.auditor == c.cfg.Self })
	if c.unappraised(e) {
		// Releases of what a lost site granted are no surplus.
		c.appraise(e, all)
		return
	}
	if surplus := -(out + a.keptOut); on && surplus > 0 && !behind && e.version == a.version {
		c.out.Events = append(c.out.Events, event.Event{Kind: event.SurplusFound, Entity: e.name})
		c.setAside(e, min(surplus, input.MaxTokens))
	}
}

// setAside proposes to set a surplus aside. Only a single such change can follow a
// version, so only one of two simultaneous audits counts.
func (c *auditing) setAside(e *entity, surplus Tokens) {
	c.propose(e, fmt.Sprintf("surplus\x00%d", e.version), limitChange{Surplus: surplus})
}

// propose proposes a change of an entity at its present version, unless this site has
// proposed it already.
func (c *auditing) propose(e *entity, id string, ch limitChange) {
	if len(e.limitChanges()) >= c.cfg.MaxChanges || slices.ContainsFunc(e.limitChanges(), func(p *pendingChange) bool { return p.requestID == id }) {
		return
	}
	times, _ := c.changeTimes(&input.Change{}, e.clock())
	ch.RequestID, ch.Expected, ch.ChangeTimes = id, e.version, times
	encoded, err := json.Marshal(ch)
	if err != nil {
		panic(fmt.Sprintf("core: plain data does not marshal: %v", err))
	}
	e.setLimitChanges(append(e.limitChanges(), &pendingChange{
		requestID: id, until: c.now.Tick + auditFor, dies: c.now.Tick + auditFor, encoded: encoded, times: times,
	}))
	c.check(e)
}

// forgetAudit forgets an audit that nobody will ask about any more.
func (c *auditing) forgetAudit(e *entity) {
	if e.audit != nil && e.auditWake() <= c.now.Tick {
		e.audit = nil
	}
}
