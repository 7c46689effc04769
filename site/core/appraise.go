package core

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
)

// What a lost site held of an entity is known as the rest: the tokens in circulation, less
// what all others hold. Once the entity's voters leave the lost site out, nothing moves
// tokens to it or from it, so the rest stays as it is. An audit finds it: there is an
// instant at which all members watch. If nothing moves tokens between members while they
// watch, what each holds is what it held at that instant. The rest is then decided in the
// entity's own sequence as written off, once for each loss. Nothing moves.

// loss is the part of a limitChange that writes tokens off: with all sites that were lost
// up to a version of the roster.
type loss struct {
	Tokens  Tokens `json:"tokens"`
	Version uint16 `json:"version"`
}

// mostLost bounds the tokens of a loss, above and below zero.
const mostLost Tokens = 1 << 56

// holding is what a site holds of an entity.
type holding struct {
	// still says that nothing is under way that moves tokens between sites.
	still bool
	// escrow is the site's escrow, applied the last instance applied.
	escrow  Tokens
	applied avantan.Instance
	// moves grows with each move of tokens between sites.
	moves uint64
}

// holdingOf is what this site holds of an entity now.
func holdingOf(e *entity) holding {
	h := holding{still: true, escrow: e.books.Escrow(), applied: e.applied(), moves: e.moved + e.fetches}
	if e.star != nil {
		slices := e.star.State().Slices
		for i := range slices {
			h.still = h.still && slices[i].Committed
		}
	}
	if e.transfer != nil {
		st := e.transfer.State()
		h.still = h.still && st.InFlight() == 0
		for _, d := range st.Debits {
			h.moves += d.Seq
		}
		for _, c := range st.Credits {
			h.moves += c.Seq
		}
	}
	if m := e.handoff(); m != nil {
		h.still = h.still && !m.Open()
		for _, g := range m.State().Given {
			h.moves += g.Number
		}
		for _, t := range m.State().Taken {
			h.moves += t.Number
		}
	}
	return h
}

// held is what the site held when a watch began.
func (a *audit) held(auditor SiteID, id uint64) holding {
	for i := range a.watches {
		if w := &a.watches[i]; w.auditor == auditor && w.id == id {
			return w.held
		}
	}
	return holding{}
}

// sumOf begins a sum of holdings; still says that the first one has not changed.
func sumOf(h holding, still bool) holding {
	h.still = h.still && still
	return h
}

// add adds another site's holding. All must have applied the same instances.
func (h *holding) add(other holding) {
	h.still = h.still && other.still && other.applied == h.applied
	h.escrow += other.escrow
}

// appraise proposes to write off what lost sites held, if all members' holdings are of one
// instant.
func (c *auditing) appraise(e *entity, all holding) {
	version := e.voters
	if !all.still || version < c.roster.Losses || all.applied != e.applied() {
		return
	}
	rest := e.limit - e.keptOut() + e.owed() - all.escrow
	c.propose(e, fmt.Sprintf("lost\x00%d\x00%d", version, e.version), limitChange{
		Surplus: notSurplus, Lost: &loss{Tokens: rest, Version: version},
	})
}

// appraising is a site's progress through the entities of which a lost site's tokens are
// not written off yet. It is like adopting.
type appraising struct {
	wake  Tick
	after string
	round uint64
	// found says that the round under way has found such an entity.
	found bool
}

// appraiseSoon looks for entities to appraise.
func (c *auditing) appraiseSoon() {
	if c.roster.Losses > 0 && c.appraising.wake == 0 {
		c.appraising.wake = c.now.Tick + adoptPause
	}
}

// appraiseNext begins the audits of the next batch. Rounds end once a round finds nothing
// to appraise.
func (c *auditing) appraiseNext() {
	a := &c.appraising
	if a.wake == 0 || a.wake > c.now.Tick {
		return
	}
	begun, visited, after, ended := 0, 0, a.after, true
	size := c.adoptBatch()
	c.space.ascend(after, func(e *entity) bool {
		if e.name == after {
			return true
		}
		if begun == size || visited == maxVisited {
			ended = false
			return false
		}
		visited++
		a.after = e.name
		if !c.serves(e) || !c.unappraised(e) {
			return true
		}
		a.found = true
		if e.voters >= c.roster.Losses && c.roster.turn(e, c.appraising.round) == c.cfg.Self {
			if s := c.auditOf(e); s.number == 0 || c.now.Tick > s.begun+auditFor {
				c.beginAudit(e)
				begun++
			}
		}
		return true
	})
	switch {
	case !ended:
		a.wake = c.now.Tick + adoptPause
	case a.found:
		*a = appraising{wake: c.now.Tick + c.cfg.Patience, round: a.round + 1}
	default:
		*a = appraising{}
	}
}
