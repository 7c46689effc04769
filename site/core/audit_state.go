package core

import (
	"github.com/samya-db/samya/avantan"
)

// audit is a site's record of an entity that is, or was lately, suspicious.
type audit struct {
	watches []netWatch
	// number is the number of the audit under way here; 0 for none.
	number uint64
	// begun is the beginning of the last audit here, suspected the time since which the
	// entity is suspicious; 0 for never.
	begun, suspected Tick
	// version, applied and keptOut are the entity's at the beginning of the audit.
	version uint64
	applied avantan.Instance
	keptOut Tokens
	// members holds the progress of the others, in the order of the members.
	members []audited
}

// netWatch is the watch for one auditor.
type netWatch struct {
	auditor SiteID
	id      uint64
	// most is the largest net since the watch began.
	most  Tokens
	until Tick
	// held is what the site held when the watch began.
	held holding
}

// audited is the progress of a member in an audit: first it watches, then it has told.
type audited struct {
	watch uint64
	told  bool
	net   Tokens
	held  holding
}

// note raises the watches' most to the net.
func (a *audit) note(net Tokens) {
	for i := range a.watches {
		a.watches[i].most = max(a.watches[i].most, net)
	}
}

// negative reports whether fewer than zero tokens seem to be out, beyond the tokens kept
// out of circulation, by the reports of others at any time.
func (e *entity) negative() bool { return e.books.Net()+e.outside+e.keptOut() < 0 }

// most is the most tokens out during a watch, if the watch is still on.
func (a *audit) most(auditor SiteID, id uint64) (Tokens, bool) {
	for i := range a.watches {
		if w := &a.watches[i]; w.auditor == auditor && w.id == id {
			return w.most, true
		}
	}
	return 0, false
}

// endAudits ends the audits of an entity under way, here and for others.
func (e *entity) endAudits() {
	if e.audit != nil {
		e.audit.watches, e.audit.number, e.audit.members = nil, 0, nil
	}
}

// shape is the number of the last change of the catalogue after which the tokens out of
// an entity have to be counted anew: it moved tokens of entities below, or members.
func (c *common) shape(e *entity) uint64 { return max(c.space.shapes[e], c.roster.Changed) }
