package core

import (
	"slices"
	"strings"

	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// peering keeps what other sites have told of their tokens, and the entities to tell
// other sites of.
type peering struct {
	*common
	gossip gossip
}

// isShort reports whether another site has told lately that it expects at even odds to
// need more than it has.
func (c *peering) isShort(e *entity, i int) bool {
	v := &e.views[i]
	return i != c.roster.home && v.at != 0 && c.now.Tick <= v.at+maxAge && v.left < v.Median && c.seemsUp(c.roster.names[i])
}

// hearsAll reports whether all other sites in reach have reported the entity lately.
func (c *peering) hearsAll(e *entity) bool { return c.heardAll(e, 0) }

// heardAll reports whether all other sites in reach have reported the entity lately.
// known is a time at which the site knew the tokens of all of them; 0 for never.
func (c *peering) heardAll(e *entity, known Tick) bool {
	for i, m := range c.roster.partners() {
		if !c.seemsUp(m) {
			continue
		}
		at := known
		if e.views != nil {
			at = max(at, e.views[i].at)
		}
		if at == 0 || c.now.Tick > at+3*c.cfg.Tell {
			return false
		}
	}
	return true
}

// toldSince adds up the tokens left at the sites in reach that have reported since a
// tick. Of these tokens, spare is the part that the sites do not expect to need.
func (c *peering) toldSince(e *entity, since Tick) (left, spare Tokens) {
	for i, m := range c.roster.partners() {
		if c.seemsUp(m) && e.views != nil && e.views[i].at > since {
			left += max(0, e.views[i].left)
			spare += max(0, e.views[i].left-e.views[i].Median)
		}
	}
	return left, spare
}

// tellReturn has the site tell others of an entity to which tokens came back. Others may
// overestimate the tokens out here, and take a surplus for tokens out.
func (c *peering) tellReturn(e *entity) {
	if !c.roster.alone() {
		c.isBusy(e)
	}
}

// gossip is the list of entities to tell other sites of.
type gossip struct {
	// busy are the entities to tell of, from next on.
	busy []*entity
	next int
	// wake is the time of the next round; 0 for never.
	wake Tick
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
func (c *peering) active(e *entity) {
	e.demandUntil = c.now.Tick + busyFor
	c.isBusy(e)
}

// isBusy has this site tell others of an entity for a while.
func (c *peering) isBusy(e *entity) {
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

// hasTold notes the report given to the others.
func (c *peering) hasTold(e *entity, s *message.Summary) {
	if e.views == nil {
		return
	}
	own := &e.views[c.roster.home]
	own.Left, own.Median, own.told = s.Left, s.Median, c.now.Tick
}

// gained reports whether the site has a good deal more left than it last reported, and
// may report again.
func (c *peering) gained(e *entity, now Tick) bool {
	if e.views == nil || !e.told || e.debt() != nil || !c.mods.Admission.Patient() {
		return false
	}
	own := &e.views[c.roster.home]
	return e.books.Left() >= own.Left+max(1, e.limit/gainPart) && now >= own.told+gainPause
}

// tellAll sends reports to all other members.
func (c *peering) tellAll(summaries []message.Summary) {
	for _, m := range c.roster.others() {
		c.out.Messages = append(c.out.Messages, message.Envelope{Gossip: &message.Gossip{From: c.cfg.Self, To: m, Summaries: summaries}})
	}
}

// viewsOf are the reports of an entity by place, empty before the first.
func (c *peering) viewsOf(e *entity) []view {
	if n := c.roster.places(); len(e.views) < n {
		e.views = append(e.views, make([]view, n-len(e.views))...)
	}
	return e.views
}

// forgetViews forgets the reports of sites that are out. Their nets count no more: an heir
// has told of them since, or they are written off.
func (c *peering) forgetViews(e *entity) {
	if e.views == nil {
		return
	}
	for i, v := range c.viewsOf(e) {
		if c.roster.out(c.roster.names[i]) {
			e.outside -= v.Net
			e.views[i] = view{}
		}
	}
}

// spent notes that a site has given tokens away, until its next report.
func (c *peering) spent(e *entity, site SiteID, amount Tokens) {
	if i := c.roster.place(site); i >= 0 && e.views != nil {
		e.views[i].left -= amount
	}
}

// told notes the number of tokens that a site had left when it refused any.
func (c *peering) told(e *entity, m *transfer.Message) {
	i := c.roster.place(m.From)
	if m.Kind == transfer.Refuse && i >= 0 && e.views != nil && e.views[i].at != 0 {
		e.views[i].left, e.views[i].at = m.Left, max(1, c.now.Tick)
	}
}

// heldBy is the number of tokens that another site is believed to have left, and whether
// the site has told lately. Before its first report, and long after its last, the site is
// believed to have its share of the limit.
func (c *peering) heldBy(e *entity, i int) (left Tokens, told bool) {
	if e.views != nil {
		if v := &e.views[i]; v.at != 0 && c.now.Tick <= v.at+maxAge {
			if e.debt() != nil {
				// The tokens pay the debt, if the other site has them at all.
				return 0, true
			}
			return max(0, v.left), true
		}
	}
	return max(1, shareOf(e.limit, c.roster.view(e.voters), c.roster.names[i])), false
}

// elsewhere is the number of tokens that the other sites in reach are believed to have
// left, and whether all of them have told lately.
func (c *peering) elsewhere(e *entity) (left Tokens, told bool) {
	told = true
	for i, m := range c.roster.partners() {
		if c.seemsUp(m) {
			l, t := c.heldBy(e, i)
			left += l
			told = told && t
		}
	}
	return left, told
}

// donors are the sites in reach that are believed to have tokens left.
func (c *peering) donors(e *entity) []transfer.Donor {
	var donors []transfer.Donor
	for i, m := range c.roster.partners() {
		if c.seemsUp(m) {
			if left, _ := c.heldBy(e, i); left > 0 {
				donors = append(donors, transfer.Donor{Site: m, Left: min(left, input.MaxTokens)})
			}
		}
	}
	slices.SortFunc(donors, func(a, b transfer.Donor) int { return strings.Compare(string(a.Site), string(b.Site)) })
	return donors
}

// lacking is the number of tokens that the other sites lack of their medians. It is 0
// unless this site has more to spare beyond its own target than any other, and enough. It
// is also 0 unless all have told: else two sites might provide the tokens.
func (c *peering) lacking(e *entity, own *message.Summary) Tokens {
	if !c.hearsAll(e) {
		return 0
	}
	spare := own.Left - own.Target
	var lack Tokens
	for i, m := range c.roster.partners() {
		if !c.seemsUp(m) {
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

// others are the other members' reports of the entity.
func (c *peering) others(e *entity) []answer.OtherView {
	var others []answer.OtherView
	for i, m := range c.roster.others() {
		o := answer.OtherView{Site: m, Age: answer.Never}
		if e.views != nil && e.views[i].told != 0 {
			v := &e.views[i]
			o = answer.OtherView{Site: m, Left: v.Left, Offered: v.Offered, Net: v.Net, Age: c.now.Tick - v.told}
		}
		others = append(others, o)
	}
	return others
}
