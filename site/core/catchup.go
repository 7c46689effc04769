package core

import (
	"github.com/samya-db/samya/avantan"
)

// asks paces, for each other member, this site's asks about the catalogue and its
// answers. An answer may be the whole catalogue, and any late message asks for an answer.
type asks map[SiteID]*askPace

type askPace struct {
	// asked is the time of the last ask to the member, askedAt the last instance applied
	// here at that time.
	asked   Tick
	askedAt avantan.Instance
	// answered is the time of the last answer to the member; since and until are the
	// instances that the answer spans.
	answered     Tick
	since, until avantan.Instance
}

func (a asks) of(site SiteID) *askPace {
	p := a[site]
	if p == nil {
		p = new(askPace)
		a[site] = p
	}
	return p
}

// mayAsk reports whether this site may ask a member for missed decisions, and notes the
// ask. Only a single ask is open at a time: another may follow once the answer was
// applied, or after a pause in which the answer should have come.
func (c *cataloguing) mayAsk(to SiteID) bool {
	p, applied := c.cat.asks.of(to), c.cat.protocol.State().Applied
	if p.asked != 0 && p.askedAt == applied && c.now.Tick < p.asked+2*c.cfg.Window {
		return false
	}
	p.asked, p.askedAt = max(1, c.now.Tick), applied
	return true
}

// answeredLately reports whether the answer to a message of the catalogue would repeat a
// catch-up sent just now. If a new answer will be sent, answeredLately notes it.
func (c *cataloguing) answeredLately(m *avantan.Message) bool {
	applied := c.cat.protocol.State().Applied
	since := m.Applied
	switch m.Kind {
	case avantan.CatchUpAsk:
	case avantan.Election, avantan.ElectionOk, avantan.Accept, avantan.Status:
		since = max(m.Instance, 1) - 1
	default:
		return false
	}
	if since >= applied || m.Validate() != nil {
		return false
	}
	p := c.cat.asks.of(m.From)
	if p.answered != 0 && p.since == since && p.until == applied && c.now.Tick < p.answered+c.cfg.Window {
		return true
	}
	p.answered, p.since, p.until = max(1, c.now.Tick), since, applied
	return false
}

// paced leaves out asks that must wait.
func (c *cataloguing) paced(messages []avantan.Message) []avantan.Message {
	kept := messages[:0]
	for _, m := range messages {
		if m.Kind != avantan.CatchUpAsk || c.mayAsk(m.To) {
			kept = append(kept, m)
		}
	}
	return kept
}
