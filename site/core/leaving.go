package core

import (
	"fmt"

	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// leaving has this site leave the cluster, once the catalogue has decided so, and helps
// other sites to leave. A site that leaves takes no new requests. It gives its heir,
// entity by entity, the tokens left, the tokens out through it, and its leases. It stays
// to answer questions about its requests, until it has forgotten all of them. Then it asks
// each other member whether anything is under way with it. If not, the members retire it.
type leaving struct {
	*common
	*peering
	*charging
	*remembering
	*asking
	*leasing
	*limiting
	*rebalancing
	*cataloguing
	leave leave
}

const (
	// leavePause is the time in milliseconds between two batches of entities to hand over
	// or to look at, leaveBatch the number of entities handed over in a batch.
	leavePause = 20
	leaveBatch = 64
)

// leave is a site's progress in leaving, or in making sure that another site can.
type leave struct {
	// wake is the time of the next batch; 0 for never.
	wake Tick
	// round is the round through the entities under way.
	round leaveRound
	// of and since are the site that leaves and the instance that decided so.
	of    SiteID
	since uint64
	// clear are the members with nothing under way with this site, asked the time of the
	// last question to them; this site leaves.
	clear members
	asked Tick
	// answers says that the site that leaves has asked this one.
	answers bool
	// rests is what the last round has found.
	rests answer.Drain
	// told is the time at which a site that is out was last told so.
	told Tick
	// emptied says that this site has told others that it holds nothing.
	emptied bool
	// machine configures the handoffs of all entities.
	machine handoff.Config
}

// leaveRound is a round through all entities.
type leaveRound struct {
	// after is the last entity looked at.
	after string
	// quiet says that the site had nothing to answer for when the round began.
	quiet bool
	// rests adds up what is found.
	rests answer.Drain
}

// departs takes up a new roster.
func (c *leaving) departs() {
	l := &c.leave
	var of SiteID
	var since uint64
	for i := range c.roster.Seats {
		if s := &c.roster.Seats[i]; c.roster.draining(s.Site) {
			of, since = s.Site, uint64(s.Since)
		}
	}
	if of != l.of || since != l.since {
		*l = leave{of: of, since: since, machine: l.machine}
	}
	if c.roster.leaves {
		l.wake = c.now.Tick + leavePause
		c.refuseWaiting()
	}
	if c.unsettled() != nil {
		l.wake = c.now.Tick + leavePause
	}
	for _, m := range c.roster.names {
		if c.roster.out(m) {
			c.dismiss(m)
		}
	}
}

// refuseWaiting answers the callers that wait at a site that leaves. The site has done
// nothing for them.
func (c *leaving) refuseWaiting() {
	c.space.ascend("", func(e *entity) bool {
		for _, w := range e.queue.take(func(*waiting) bool { return true }) {
			c.remembering.ended(w, answer.Answer{Code: answer.Draining, Left: e.usable()})
		}
		c.limiting.endAcks(e)
		return true
	})
}

// wakeLeave goes on with the round under way.
func (c *leaving) wakeLeave() {
	l := &c.leave
	if l.wake == 0 || l.wake > c.now.Tick {
		return
	}
	l.wake = 0
	if c.unsettled() == nil && (l.of == "" || l.of != c.cfg.Self && !l.answers) {
		return
	}
	if l.round.after == "" {
		l.round = leaveRound{quiet: c.quiet()}
	}
	after, ended := l.round.after, true
	visited, handed := 0, 0
	c.space.ascend(after, func(e *entity) bool {
		if e.name == after {
			return true
		}
		if visited == maxVisited || handed == leaveBatch {
			ended = false
			return false
		}
		visited++
		l.round.after = e.name
		if c.look(e) {
			handed++
		}
		return true
	})
	if !ended {
		l.wake = c.now.Tick + leavePause
		return
	}
	l.round.after = ""
	l.rests = l.round.rests
	c.looked()
}

// quiet reports whether this site has no requests to answer for, and nothing to ask.
func (c *leaving) quiet() bool {
	return c.requests.len() == 0 && c.queries.open == 0 && len(c.leases.byKey) == 0 && c.roster.behind == 0
}

// look looks at an entity in a round. It reports whether it had work to do.
func (c *leaving) look(e *entity) bool {
	if !c.serves(e) {
		// A halted entity keeps its tokens: an operator has to look at it.
		c.leave.round.rests.Entities++
		return false
	}
	if c.roster.leaves {
		return c.handOver(e)
	}
	if c.underWay(e) || c.unsettled() != nil && e.handoff() != nil && e.handoff().Open() {
		c.leave.round.rests.Entities++
	}
	return false
}

// unsettled is this site's seat if its drain was cancelled and a bequest may be open; else
// nil.
func (c *leaving) unsettled() *stored.Seat {
	if s := c.roster.Seat(c.cfg.Self); s != nil && s.Unsettled {
		return s
	}
	return nil
}

// looked ends a round.
func (c *leaving) looked() {
	l := &c.leave
	l.wake = c.now.Tick + c.cfg.Tell
	if s := c.unsettled(); s != nil {
		if l.rests.Entities == 0 {
			c.cataloguing.change(&input.Change{
				Kind: input.SettleSite, Name: string(s.Site), Expected: uint64(s.Since), RequestID: settleID(s), Wait: c.cfg.Sync,
			})
		}
		return
	}
	if !c.roster.leaves {
		// A member that has not settled in may have heard of no other member but the one that
		// leaves: nobody else would vouch for their data.
		if l.rests.Entities == 0 && c.queries.openOn(l.of) == 0 && c.roster.behind == 0 && c.settledIn {
			c.tellLeave(l.of, message.LeaveClear)
			l.answers, l.wake = false, 0
		}
		return
	}
	if l.rests.Entities > 0 || !l.round.quiet {
		l.clear, l.emptied = 0, false
		return
	}
	if missing := c.peers() &^ l.clear; missing != 0 {
		// An answer is good for a short time: the site knows when it had no requests left.
		if l.asked == 0 || c.now.Tick >= l.asked+c.cfg.Patience {
			l.asked = c.now.Tick
			for _, m := range c.namesOf(missing) {
				c.tellLeave(m, message.LeaveAsk)
			}
		}
		return
	}
	l.emptied = true
	for m := range c.roster.peers() {
		c.tellLeave(m, message.LeaveEmpty)
	}
	l.wake = c.now.Tick + c.cfg.Sync
}

func (c *leaving) tellLeave(to SiteID, kind message.LeaveKind) {
	m := &message.Leave{Kind: kind, From: c.cfg.Self, To: to}
	if s := c.roster.Seat(c.leave.of); s != nil {
		m.Since = s.Since
	}
	if s := c.roster.Seat(to); kind == message.LeaveOut && s != nil {
		m.Since = s.Since
	}
	c.out.Messages = append(c.out.Messages, message.Envelope{Leave: m})
}

// left handles a message about a site that leaves.
func (c *leaving) left(m *message.Leave) {
	l := &c.leave
	if l.of == "" || uint64(m.Since) != l.since {
		return
	}
	switch {
	case m.Kind == message.LeaveAsk && m.From == l.of && !l.answers:
		l.answers, l.wake, l.round = true, max(1, c.now.Tick), leaveRound{}
	case m.Kind == message.LeaveEmpty && m.From == l.of:
		c.retireSite(l.of)
	case m.Kind == message.LeaveClear && c.roster.leaves:
		if i := c.roster.place(m.From); i >= 0 {
			l.clear |= 1 << i
		}
		if c.peers()&^l.clear == 0 {
			l.wake = max(1, c.now.Tick)
		}
	}
}

// retireSite proposes to end a drain: the site holds nothing. Any member may propose it:
// the request id is the same.
func (c *leaving) retireSite(site SiteID) {
	c.cataloguing.change(&input.Change{
		Kind: input.RetireSite, Name: string(site), Expected: uint64(c.roster.Version),
		RequestID: retireID(site, c.leave.since, c.roster.Version), Wait: c.cfg.Sync,
	})
}

// outside handles a message of a site that has no place in the cluster any more. It
// reports whether it did: the message has no effect then. The site is told, and may ask
// for the catalogue, which says so too.
func (c *leaving) outside(from SiteID, e *message.Envelope) bool {
	if !c.roster.banned(from) {
		return false
	}
	catalogue := e.Entity == "" && e.Gossip == nil && e.Claims == nil && e.Vouch == nil && e.Leave == nil
	if catalogue {
		c.tellCatalogue(from)
	}
	if c.leave.told == 0 || c.now.Tick >= c.leave.told+pressing {
		c.leave.told = c.now.Tick
		c.tellLeave(from, message.LeaveOut)
	}
	return true
}

// changeHere is change, unless this site leaves: it votes on nothing.
func (c *leaving) changeHere(ch *input.Change) {
	if c.roster.leaves {
		c.reply(ch.Call, answer.Answer{Code: answer.Draining})
		return
	}
	c.cataloguing.change(ch)
}

// members are the sites of the cluster, with the progress of this site's drain.
func (c *leaving) members() answer.Members {
	m := c.cataloguing.membersNow()
	for i := range m.Sites {
		if m.Sites[i].Site == c.cfg.Self {
			m.Sites[i].Drain = c.drainNow()
		}
	}
	return m
}

// drainNow is the progress of a site that leaves; nil for any other site.
func (c *leaving) drainNow() *answer.Drain {
	if !c.roster.leaves {
		return nil
	}
	d := c.leave.rests
	d.Leases, d.Claims, d.Emptied = len(c.leases.byKey), c.queries.open, c.leave.emptied
	if c.requests.len() > 0 {
		d.Records = c.requests.lasts(c.now.Tick, Tick(c.cfg.Retention))
	}
	d.Unclear = c.namesOf(c.peers() &^ c.leave.clear)
	return &d
}

// settleID is the request id of the end of a cancelled drain.
func settleID(s *stored.Seat) string { return fmt.Sprintf("settle\x00%s\x00%d", s.Site, s.Since) }

// retireID is the request id of the end of a drain, as proposed for the voters of a
// version. Once others vote, the change has to be proposed again.
func retireID(site SiteID, since uint64, version uint16) string {
	return fmt.Sprintf("retire\x00%s\x00%d\x00%d", site, since, version)
}
