package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

const (
	// forgiving is the number of rounds between two questions to a member that does not
	// seem to be up.
	forgiving = 10
	// pressing is the shortest pause, in milliseconds, between two questions to a member,
	// or between two answers that its run is not known.
	pressing Tick = 200
)

// fencing keeps a site from serving on data older than the data that it has served on,
// and remembers other sites' data for the same purpose.
type fencing struct {
	*common
	*forecasting
	*asking
	*cataloguing
	fence fence
}

// fence ensures that the site serves only on data that enough members vouch for. It also
// remembers the members' data, to vouch for it later.
type fence struct {
	// start is the mark of the data at the beginning of this run; without a Run there is
	// no guard.
	start   message.Mark
	commits message.Commits
	peers   []fencedPeer
	// remembered are the sites remembered from the disk.
	remembered []fencedPeer
	// need is the number of members that must vouch before the site serves. The site then
	// waits until waitUntil for the word of all others; 0 before the first step.
	need      int
	waitUntil Tick
	// members is the most members that this site's data or an answer tells.
	members int
	open    bool
	refused error
	// nextRound is the time to ask or tell members again; 0 for never.
	nextRound Tick
	// forgetful: some peer's memory is not handed over to become durable yet. It goes
	// with the next transaction, or by itself at flushAt or if flush is set.
	forgetful, flush bool
	flushAt          Tick
}

// fencedPeer is another member.
type fencedPeer struct {
	stored.Remembered
	// dirty: Remembered is not handed over yet.
	dirty bool
	// vouched: the member has vouched for this run. nothing: it remembers nothing of the
	// run, and its word does not count.
	vouched, nothing bool
	// inVain is the mark it asked about while this site's word did not count; zero for
	// none.
	inVain message.Mark
	// askedAt, repliedAt and toldAt are the times when this site last asked it, answered
	// it VouchWho, and sent it anything with a mark; told is the latest mark sent to it.
	askedAt, repliedAt, toldAt Tick
	// newcomer: the site is no member by this site's data. Its objection counts, and its
	// word for the data does not.
	newcomer bool
	// later: the member joined later, and has never heard of this site's data. Its word
	// for the data does not count, and nobody waits for it.
	later bool
	// out: the site has no place in the cluster any more, as another site has told.
	out  bool
	told message.Commits
}

func (c *fencing) startFence(from *stored.Restored) {
	g := &c.fence
	g.start = message.Mark{Incarnation: from.Incarnation, Run: c.cfg.Run, Commits: from.Commits}
	g.commits = from.Commits
	for _, r := range from.Remembered {
		g.remembered = append(g.remembered, fencedPeer{Remembered: r, told: from.Commits})
	}
	c.fenceMembers()
	g.nextRound = 0
	if g.start.Run == 0 {
		g.open = true
		return
	}
	g.members = c.roster.left()
	g.need = g.members / 2
	if len(g.peers) > 0 {
		g.nextRound = 1
	}
	if g.need == 0 || c.cfg.Unvouched {
		c.serve()
	}
}

// missing is the number of further members that must vouch before the site serves, at
// least 1 until it serves.
func (g *fence) missing() int {
	if g.open {
		return 0
	}
	vouched, _ := g.answered()
	return max(1, g.need-vouched)
}

// answered counts the members that have vouched for this run, and reports whether all
// members have told their memory of it.
func (g *fence) answered() (vouched int, all bool) {
	all = true
	for i := range g.peers {
		switch p := &g.peers[i]; {
		case !p.counts():
		case p.vouched:
			vouched++
		case !p.nothing:
			all = false
		}
	}
	return vouched, all
}

// serveVouched begins to serve if enough members have vouched, and all others have had
// the time to object.
func (c *fencing) serveVouched() {
	g := &c.fence
	vouched, all := g.answered()
	if g.open || vouched < g.need || !all && c.now.Tick < g.waitUntil {
		return
	}
	c.serve()
	for i := range g.peers {
		if p := &g.peers[i]; p.vouched {
			c.say(p.Site, message.Vouch{Kind: message.VouchTell})
		}
	}
}

// serve begins to serve. From now on the site's word counts.
func (c *fencing) serve() {
	g := &c.fence
	g.open = true
	if c.settledIn {
		c.out.Events = append(c.out.Events, event.Event{Kind: event.Serving})
	}
	for i := range g.peers {
		if p := &g.peers[i]; p.inVain != (message.Mark{}) {
			c.answerAsk(p, p.inVain)
		}
	}
}

// Refused returns the reason why the site must stop at once, a [StaleError]; nil if it
// need not. Drain hands over no effects gathered before.
func (c *fencing) Refused() error { return c.fence.refused }

// disown ends this run.
func (c *fencing) disown(err error) {
	c.fence = fence{start: c.fence.start, refused: err, need: max(1, c.fence.missing())}
	c.out.Reset()
	clear(c.touched)
	c.touched, c.cat.dirty, c.forecasts.pressing = c.touched[:0], false, false
}

// stepFenced handles an input while nobody may be served.
func (c *fencing) stepFenced(in input.Input) {
	c.refuse(in, answer.Answer{Code: answer.Unvouched, Missing: c.fence.missing()})
	if _, stops := in.(input.Stop); stops {
		c.stopping = true
	}
	if c.fence.refused != nil {
		return
	}
	if c.fence.waitUntil == 0 {
		c.fence.waitUntil = c.now.Tick + c.cfg.VouchWait
	}
	switch in := in.(type) {
	case input.Deliver:
		for i := range in.Messages {
			e := &in.Messages[i]
			if e.Leave != nil && e.Leave.Kind == message.LeaveOut && e.From() == in.From && e.To() == c.cfg.Self {
				c.disown(&OutError{Site: c.cfg.Self, By: in.From})
				return
			}
			if e.Vouch != nil && e.From() == in.From && e.To() == c.cfg.Self {
				c.vouch(in.From, e)
			}
		}
	case input.Reachable:
		c.reach(in.Sites)
	case input.Speaks:
		c.speaks(in)
	case input.Wake:
		c.wakeFence()
	}
}

// refuse gives a caller an answer, and reports whether there is a caller.
func (c *fencing) refuse(in input.Input, no answer.Answer) bool {
	switch in := in.(type) {
	case *input.Acquire:
		c.reply(in.Call, no)
	case *input.AcquireAll:
		c.reply(in.Call, no)
	case *input.Release:
		c.reply(in.Call, no)
	case *input.Read:
		c.reply(in.Call, no)
	case *input.ReadMode:
		c.reply(in.Call, no)
	case *input.ReadMembers:
		c.reply(in.Call, no)
	case *input.SetForecast:
		c.reply(in.Call, no)
	case *input.ReadForecast:
		c.reply(in.Call, no)
	case *input.List:
		c.reply(in.Call, no)
	case *input.Observe:
		c.reply(in.Call, no)
	case *input.Watch:
		c.reply(in.Call, no)
	case *input.Reset:
		c.reply(in.Call, no)
	case *input.Change:
		c.reply(in.Call, no)
	case *input.RenewLease:
		c.reply(in.Call, no)
	case *input.CommitLease:
		c.reply(in.Call, no)
	case *input.ListLeases:
		c.reply(in.Call, no)
	default:
		return false
	}
	return true
}

// reach notes the sites that are up, and asks the sites that came up.
func (c *fencing) reach(sites []SiteID) {
	c.meet(sites)
	c.asking.cameUp(sites)
	for _, s := range sites {
		if !c.seemsUp(s) {
			c.mistrust(s)
		}
		c.newcomer(s)
	}
	c.reachable = append([]SiteID{}, sites...)
	for i := range c.fence.peers {
		if p := &c.fence.peers[i]; c.fence.nextRound != 0 && c.seemsUp(p.Site) {
			c.ask(p)
		}
	}
}

// ask asks a member that has not vouched to do so, but not too often.
func (c *fencing) ask(p *fencedPeer) {
	if p.vouched || p.out || p.askedAt != 0 && c.now.Tick < p.askedAt+pressing {
		return
	}
	c.askAgain(p)
}

// askAgain asks a member that may have vouched.
func (c *fencing) askAgain(p *fencedPeer) {
	p.askedAt = c.now.Tick
	c.say(p.Site, message.Vouch{Kind: message.VouchAsk, Asked: c.fence.start})
}

// vouch handles a message about data. Nobody vouches for a site that is out, also while
// this site is not vouched for itself.
func (c *fencing) vouch(from SiteID, e *message.Envelope) {
	if c.roster.banned(from) {
		return
	}
	c.meet([]SiteID{from})
	c.newcomer(from)
	g, v, p := &c.fence, e.Vouch, c.fenced(from)
	if p == nil || g.start.Run == 0 {
		return
	}
	switch v.Kind {
	case message.VouchAsk:
		c.answerAsk(p, v.Asked)
	case message.VouchYes:
		// An answer to another run says nothing about this run.
		if v.Asked != g.start || p.vouched && g.open {
			return
		}
		p.vouched, p.later = true, false
		c.count(v)
		if g.open {
			c.say(p.Site, message.Vouch{Kind: message.VouchTell})
			return
		}
		c.serveVouched()
	case message.VouchNothing:
		if v.Asked != g.start || p.vouched {
			return
		}
		p.nothing, p.later = true, v.Members > 1 || v.Members == 1 && c.admitted(e)
		if p.later {
			c.count(v)
		}
		c.serveVouched()
	case message.VouchNo:
		if v.Asked == g.start && (v.Known.Incarnation != g.start.Incarnation || v.Known.Commits > g.start.Commits) {
			c.disown(&StaleError{By: from, Mine: g.start, Known: v.Known})
		}
	case message.VouchWho:
		if v.Asked.Run == g.start.Run && p.vouched {
			// The member has lost its memory of this run.
			p.vouched = false
			g.nextRound = max(1, c.now.Tick)
		}
		c.ask(p)
	case message.VouchTell:
		c.heard(p, e.Mark)
	}
}

// resume has the guard wait for no site that is destroyed.
func (c *fencing) resume() {
	g := &c.fence
	c.fenceMembers()
	if !g.open {
		g.members = c.roster.left()
		g.need = min(g.members/2, g.standing())
		c.serveVouched()
	}
}

// wakeAt is the next time for the guard to do something; 0 for never.
func (g *fence) wakeAt() Tick {
	at := earlier(g.nextRound, g.flushAt)
	if g.open || g.refused != nil {
		return at
	}
	if vouched, _ := g.answered(); vouched >= g.need {
		at = earlier(at, g.waitUntil)
	}
	return at
}

// wakeFence asks the members that have not vouched. It tells the others the present mark
// of this site's data if they do not know it.
func (c *fencing) wakeFence() {
	g := &c.fence
	if g.flushAt != 0 && g.flushAt <= c.now.Tick {
		g.flush, g.flushAt = true, 0
	}
	c.serveVouched()
	if g.nextRound == 0 || g.nextRound > c.now.Tick {
		return
	}
	g.nextRound = 0
	for i := range g.peers {
		p := &g.peers[i]
		switch up := c.seemsUp(p.Site); {
		case p.out:
			continue
		case !p.vouched:
			if up || p.askedAt == 0 || c.now.Tick >= p.askedAt+forgiving*c.cfg.Tell {
				c.ask(p)
			}
		case !g.open:
			// A site that it waits for may have been written off since the answer.
			if up && c.now.Tick >= p.askedAt+forgiving*c.cfg.Tell {
				c.askAgain(p)
			}
		case p.told == g.commits:
			continue
		case up && c.now.Tick >= p.toldAt+c.cfg.Tell:
			c.say(p.Site, message.Vouch{Kind: message.VouchTell})
		}
		g.nextRound = c.now.Tick + c.cfg.Tell
	}
}
