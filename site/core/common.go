package core

import (
	"errors"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/policy"
)

// common is what all machines of a core share: its configuration, the time, the
// entities, and the effects gathered. A machine of the core handles one part of the
// core's work, and owns the state of that part. It embeds the machines that it builds on,
// and calls no others. It marks the entities that it has changed; settle looks at them as
// the step ends.
type common struct {
	cfg  Config
	mods policy.Modules
	// roster is the sites of the cluster.
	roster roster
	// reseated says that the catalogue has decided a roster that the machines do not go by
	// yet. settledIn says that all members know of this site.
	reseated, settledIn bool
	// fresh says that this site joins and knows of no roster yet.
	fresh bool

	space space
	// tallies are the entities that somebody observes.
	tallies tallies
	// timers holds the entities that wait for a time.
	timers calendar[*entity]
	// reachable are the sites that seem to be up; nil if unknown.
	reachable []SiteID
	// mistrusted are the sites that run anew or have come up: their last reports may be lost.
	mistrusted []SiteID
	halt       halt
	// mode is the last mode decided.
	mode answer.DecidedMode
	// versions is what the site tells of its versions.
	versions versions.Speaker
	// learnt: the version of the cluster is not handed over to become durable yet.
	learnt bool
	// surplus is the number of tokens kept out of circulation, of all entities.
	surplus Tokens
	// writtenOff is the number of tokens written off, of all entities.
	writtenOff Tokens

	now input.Now
	out Effects
	// spans counts the spans made for traces that are recorded, and heard is the work for the
	// message being delivered; nil unless the message belongs to such a trace.
	spans uint64
	heard *heard
	// incoming is the window that the message being delivered was sent in; 0 for none.
	incoming int64
	// stopping is set once no acquire may wait any more.
	stopping bool
	// touched are the entities with something to persist.
	touched []*entity
	// due are the marked entities, to be settled before the step ends.
	due []*entity
}

// membersOf is the set of the named members; other names are left out.
func (c *common) membersOf(names []SiteID) members {
	var set members
	for _, name := range names {
		if i := c.roster.place(name); i >= 0 {
			set |= 1 << i
		}
	}
	return set
}

// peers is the set of all members but this site.
func (c *common) peers() members {
	return c.roster.serving &^ (1 << c.roster.home)
}

// namesOf are the members of a set, in their order; nil for none.
func (c *common) namesOf(set members) []SiteID {
	var names []SiteID
	for i, name := range c.roster.all() {
		if set.has(i) {
			names = append(names, name)
		}
	}
	return names
}

// heardBy are the members that go by a debt; nil for no debt.
func (c *common) heardBy(d *debt) []SiteID {
	if d.amount == 0 {
		return nil
	}
	return c.namesOf(c.roster.serving &^ d.unheard)
}

// freed marks an entity and its ancestors, after tokens were returned to them.
func (c *common) freed(e *entity) {
	for ; e != nil; e = e.parent() {
		c.later(e)
	}
}

// later marks an entity whose tokens or queue have changed. The settling at the end of
// the step serves the queue, and does all that check asks for. The work that changed the
// entity may not be finished, and relies on the tokens left.
func (c *common) later(e *entity) {
	e.changed = true
	c.check(e)
}

// check marks an entity. The settling at the end of the step looks whether to ask other
// sites for tokens, and when to look at the entity again.
func (c *common) check(e *entity) {
	if !e.due {
		e.due = true
		c.due = append(c.due, e)
	}
}

// reply answers a call; nil is the site itself, which does not wait for an answer.
func (c *common) reply(call input.Call, a answer.Answer) {
	if call == nil {
		return
	}
	c.out.Replies = append(c.out.Replies, Reply{Call: call, Answer: a})
}

func (c *common) send(entity string, generation uint64, messages []avantan.Message) {
	for _, m := range messages {
		c.out.Messages = append(c.out.Messages, message.Envelope{Entity: entity, Generation: generation, Message: m})
	}
}

func (c *common) touch(e *entity) {
	if !e.listed {
		e.listed = true
		c.touched = append(c.touched, e)
	}
}

func (c *common) dirtyBooks(e *entity) {
	e.dirtyBooks = true
	c.touchBooks(e)
}

// touchBooks follows up on changed books.
func (c *common) touchBooks(e *entity) {
	if e.audit != nil {
		e.audit.note(e.books.Net())
	}
	if r := rateOf(e); r != nil {
		r.pass(e, c.now.Tick)
	}
	c.touch(e)
}

func (c *common) dirtyRecord(e *entity) {
	e.dirtyRecord = true
	c.touch(e)
}

func (c *common) exists(e *entity) bool { return !e.removed }

// serves reports whether the site has an entity, and serves it.
func (c *common) serves(e *entity) bool { return !e.removed && !e.halted() }

// lossesSince reports whether a site was written off since an entity was created.
func (c *common) lossesSince(e *entity) bool { return e.born < c.roster.Losses }

// unappraised reports whether tokens of a lost site are not written off yet.
func (c *common) unappraised(e *entity) bool { return max(e.born, e.appraised) < c.roster.Losses }

// seemsUp reports whether a site may be reachable.
func (c *common) seemsUp(site SiteID) bool {
	return c.reachable == nil || slices.Contains(c.reachable, site)
}

// mistrust notes that the last reports of a site may be lost.
func (c *common) mistrust(site SiteID) {
	if !slices.Contains(c.mistrusted, site) {
		c.mistrusted = append(c.mistrusted, site)
	}
}

// majorityThere reports whether a majority seems to be reachable: enough sites are up,
// and none has just been waited for in vain.
func (c *common) majorityThere(e *entity) bool {
	up, voters := 0, c.roster.view(e.voters)
	destroyed := 0
	for _, m := range voters {
		switch {
		case c.roster.destroyed(m):
			destroyed++
		case m == c.cfg.Self || c.seemsUp(m):
			up++
		}
	}
	enough := len(voters)/2 + 1
	if destroyed > 0 {
		enough = len(voters) - destroyed
	}
	return up >= enough && c.now.Tick >= e.rebalance.noQuorum
}

func (c *common) protocolEvents(name string, out *avantan.Output) {
	// A site that has missed a change of the members asks for the catalogue: that is no
	// fault.
	if out.Err != nil && !errors.Is(out.Err, errView) && !errors.Is(out.Err, avantan.ErrStranger) {
		c.out.Events = append(c.out.Events, event.Event{Kind: event.ProtocolFault, Entity: name, Err: out.Err})
	}
	if out.Failed != avantan.FailedNot {
		c.out.Events = append(c.out.Events, event.Event{Kind: event.RedistributionFailed, Entity: name})
	}
}

// sleepUntil sets the time at which the core looks at an entity again; 0 for never.
func (c *common) sleepUntil(e *entity, wake Tick) {
	switch {
	case wake == 0:
		c.timers.remove(e)
	case wake != e.wake || e.heapAt < 0:
		e.wake = wake
		c.timers.add(e)
	}
}
