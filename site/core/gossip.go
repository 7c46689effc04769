package core

import (
	"slices"

	"github.com/samya-db/samya/avantan/transfer"
)

// Gossip tells another site about the sender's busy entities. It is a hint: no guarantee
// rests on it.
type Gossip struct {
	From, To  SiteID
	Summaries []Summary
}

// Summary is a site's report of an entity: the tokens it has, and its expected need.
type Summary struct {
	Entity     string
	Generation uint64
	// Left is the number of tokens that may be handed out now; negative in a debt.
	Left Tokens
	// Median is the site's expected need at even odds over the horizon of a
	// redistribution, waiting acquires included.
	Median Tokens
	// Target is the number of tokens the site wants to hold to be safe, waiting acquires
	// included.
	Target Tokens
	// Net and Offered are balances of the sender's books.
	Net, Offered Tokens
	// Busy says that the sender has demand of its own, beyond others' reports.
	Busy bool
}

const (
	// busyFor is the time in milliseconds for which a site tells of an entity after
	// demand for it, here or elsewhere. maxAge bounds the age in milliseconds of another
	// site's report.
	busyFor = 10_000
	maxAge  = 5_000
)

// gossip is the list of entities to tell other sites of.
type gossip struct {
	// busy are the entities to tell of, from next on.
	busy []*entity
	next int
	// wake is the time of the next round; 0 for never.
	wake Tick
	// lacking is the others' lack of the entity lackingOf, while the site looks at that
	// entity; see Situation.
	lacking   Tokens
	lackingOf *entity
}

// view is another site's report of an entity.
type view struct {
	// Left to Target are as reported; see Summary.
	Left, Offered, Net, Median, Target Tokens
	// told is the time of the report; 0 for never.
	told Tick
	// left is the number of tokens the other site is believed to have left, by later
	// knowledge too. at is the time of that knowledge; 0 for never.
	left Tokens
	at   Tick
}

// active has all sites tell of an entity for a while.
func (c *Core) active(e *entity) {
	e.demandUntil = c.now.Tick + busyFor
	c.isBusy(e)
}

// isBusy has this site tell others of an entity for a while.
func (c *Core) isBusy(e *entity) {
	e.busyUntil = c.now.Tick + busyFor
	if e.told {
		return
	}
	e.told = true
	c.gossip.busy = append(c.gossip.busy, e)
	if c.gossip.wake == 0 {
		// Not all sites at once.
		c.gossip.wake = c.now.Tick + 1 + Tick(c.cfg.Rand.Uint64N(uint64(c.cfg.Tell)))
	}
}

// tellBusy tells the other sites of the next busy entities, and forgets entities no
// longer busy.
func (c *Core) tellBusy() {
	g := &c.gossip
	var summaries []Summary
	for n := min(len(g.busy), c.cfg.MaxSummaries); n > 0; n-- {
		if g.next >= len(g.busy) {
			g.next = 0
		}
		e := g.busy[g.next]
		if e.busyUntil <= c.now.Tick || !c.serves(e) {
			last := len(g.busy) - 1
			g.busy[g.next], g.busy[last] = g.busy[last], nil
			g.busy = g.busy[:last]
			e.told = false
			continue
		}
		g.next++
		own := c.summary(e)
		summaries = append(summaries, own)
		c.hasTold(e, &own)
		g.lackingOf, g.lacking = e, c.lacking(e, &own)
		c.pursue(e)
		g.lackingOf = nil
		c.suspect(e)
	}
	g.wake = 0
	if len(g.busy) > 0 {
		g.wake = c.now.Tick + c.cfg.Tell
	}
	if len(summaries) == 0 {
		return
	}
	for _, m := range c.cfg.Members {
		if m != c.cfg.Self {
			c.out.Messages = append(c.out.Messages, Envelope{Gossip: &Gossip{From: c.cfg.Self, To: m, Summaries: summaries}})
		}
	}
}

// hasTold notes the report given to the others.
func (c *Core) hasTold(e *entity, s *Summary) {
	if e.views == nil {
		return
	}
	own := &e.views[slices.Index(c.cfg.Members, c.cfg.Self)]
	own.Left, own.Median, own.told = s.Left, s.Median, c.now.Tick
}

// tellGain tells the other sites ahead of time that the site has a good deal more left
// than they know, if all have little: they would otherwise go on refusing acquires.
func (c *Core) tellGain(e *entity) {
	if !c.gained(e, c.now.Tick) {
		return
	}
	own := &e.views[slices.Index(c.cfg.Members, c.cfg.Self)]
	if left, told := c.elsewhere(e); !told || left+own.Left >= e.limit/scarcePart {
		return
	}
	summaries := []Summary{c.summary(e)}
	c.hasTold(e, &summaries[0])
	for _, m := range c.cfg.Members {
		if m != c.cfg.Self {
			c.out.Messages = append(c.out.Messages, Envelope{Gossip: &Gossip{From: c.cfg.Self, To: m, Summaries: summaries}})
		}
	}
}

// gained reports whether the site has a good deal more left than it last reported, and
// may report again.
func (c *Core) gained(e *entity, now Tick) bool {
	if e.views == nil || !e.told || e.debt() != nil || !c.mods.admission.Patient() {
		return false
	}
	own := &e.views[slices.Index(c.cfg.Members, c.cfg.Self)]
	return e.books.Left() >= own.Left+max(1, e.limit/gainPart) && now >= own.told+gainPause
}

const (
	// A gainPart-th of the limit is a good deal more, and less than a scarcePart-th is
	// little. gainPause is the time in milliseconds after a report in which the site does
	// not tell of the entity ahead of time.
	gainPart, scarcePart, gainPause = 100, 10, 100
)

func (c *Core) summary(e *entity) Summary {
	s := c.situation(e)
	target, median := c.mods.want.Target(s)
	return Summary{
		Entity: e.name, Generation: e.generation, Left: e.books.Left(), Net: e.books.Net(), Offered: e.offered(),
		Median: s.Queued + median, Target: s.Queued + target, Busy: e.demandUntil > c.now.Tick,
	}
}

// hear takes in another site's gossip.
func (c *Core) hear(g *Gossip) {
	from := slices.Index(c.cfg.Members, g.From)
	for i := range g.Summaries {
		s := &g.Summaries[i]
		e := c.space.find(s.Entity)
		if e == nil || e.generation != s.Generation || s.Median < 0 || s.Target < 0 {
			continue
		}
		if e.views == nil {
			e.views = make([]view, len(c.cfg.Members))
		}
		c.doubt(e)
		now := max(1, c.now.Tick)
		e.outside += s.Net - e.views[from].Net
		e.views[from] = view{
			Left: s.Left, Offered: s.Offered, Net: s.Net, Median: s.Median, Target: s.Target,
			told: now, left: s.Left, at: now,
		}
		if s.Busy {
			c.isBusy(e)
		}
		if !e.told && e.negative() {
			c.active(e)
		}
		if e.droughtNow().since != 0 {
			c.check(e)
		}
	}
}

// spent notes that a site has given tokens away, until its next report.
func (c *Core) spent(e *entity, site SiteID, amount Tokens) {
	if i := slices.Index(c.cfg.Members, site); i >= 0 && e.views != nil {
		e.views[i].left -= amount
	}
}

// refused notes how many tokens a site had left when it gave none.
func (c *Core) refused(e *entity, site SiteID, left Tokens) {
	if i := slices.Index(c.cfg.Members, site); i >= 0 && e.views != nil && e.views[i].at != 0 {
		e.views[i].left, e.views[i].at = left, max(1, c.now.Tick)
	}
}

// heldBy is the number of tokens that another site is believed to have left, and whether
// the site has told lately. Before its first report, and long after its last, the site is
// believed to have its share of the limit.
func (c *Core) heldBy(e *entity, i int) (left Tokens, told bool) {
	if e.views != nil {
		if v := &e.views[i]; v.at != 0 && c.now.Tick <= v.at+maxAge {
			if e.debt() != nil {
				// The tokens pay the debt, if the other site has them at all.
				return 0, true
			}
			return max(0, v.left), true
		}
	}
	return max(1, shareOf(e.limit, c.cfg.Members, c.cfg.Members[i])), false
}

// elsewhere is the number of tokens that the other sites in reach are believed to have
// left, and whether all of them have told lately.
func (c *Core) elsewhere(e *entity) (left Tokens, told bool) {
	told = true
	for i, m := range c.cfg.Members {
		if m != c.cfg.Self && c.seemsUp(m) {
			l, t := c.heldBy(e, i)
			left += l
			told = told && t
		}
	}
	return left, told
}

// donors are the sites in reach that are believed to have tokens left.
func (c *Core) donors(e *entity) []transfer.Donor {
	var donors []transfer.Donor
	for i, m := range c.cfg.Members {
		if m != c.cfg.Self && c.seemsUp(m) {
			if left, _ := c.heldBy(e, i); left > 0 {
				donors = append(donors, transfer.Donor{Site: m, Left: min(left, MaxTokens)})
			}
		}
	}
	return donors
}

// lacking is the number of tokens that the other sites lack of their medians. It is 0
// unless this site has more to spare beyond its own target than any other, and enough. It
// is also 0 unless all have told: else two sites might provide the tokens.
func (c *Core) lacking(e *entity, own *Summary) Tokens {
	if !c.hearsAll(e) {
		return 0
	}
	spare := own.Left - own.Target
	var lack Tokens
	for i, m := range c.cfg.Members {
		if m == c.cfg.Self || !c.seemsUp(m) {
			continue
		}
		v := &e.views[i]
		lack += max(0, v.Median-v.left)
		if theirs := v.left - v.Target; theirs > spare || theirs == spare && m < c.cfg.Self {
			return 0
		}
	}
	if lack > spare {
		return 0
	}
	return lack
}
