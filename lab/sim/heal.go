package sim

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// heal ends all faults and lets the cluster come to rest.
func (s *sim) heal() {
	if s.violation != nil {
		return
	}
	s.healed, s.healedAt = true, s.now
	// The window of a leader must be above a round trip and its syncs.
	s.chances.sync = min(s.chances.sync, 20*millisecond)
	if s.tracing {
		s.note("healed")
	}
	for i := range s.cut {
		clear(s.cut[i])
		for j := range s.latency[i] {
			s.latency[i][j] /= s.chances.far
		}
	}
	for _, n := range s.nodes {
		n.fuse, n.tearAt, n.badSync, n.slowUntil, n.apart = 0, 0, false, 0, false
		n.kept.fill(false)
		if !n.up && !n.out {
			n.boot()
		}
	}
	s.upgrade.finish()
	for _, n := range s.nodes {
		n.hearsOfAll()
	}
	if s.report.Crowded > 0 {
		// No site can answer another's questions before there is room for the answers.
		s.runUntil(s.now + 2*retention)
	}
	s.runUntil(s.now + 20*second)
	s.leaveAll()
	remembered, aside := s.committed(), s.aside()
	s.runUntil(s.now + 20*second)
	for at := range s.atRest() {
		if aside[at] {
			s.fail(Liveness, "after healing, tokens stay set aside: %+v", at)
		}
	}
	if s.pending > 0 {
		s.fail(Liveness, "after healing, %d operations have no answer", s.pending)
	}
	s.agree()
	if s.switcher != nil {
		s.switcher.next()
	}
	// Every entity must still be able to decide.
	changed := make(map[string]bool)
	for _, name := range s.admin.names {
		if !s.existsAnywhere(name) {
			continue
		}
		s.issue(&op{
			kind: setLimit, entity: name, limit: core.Tokens(100 + s.r.IntN(100)), wait: 10 * second, site: -1,
			then: func(a *answer.Answer) { changed[name] = a.Code == answer.OK },
		})
	}
	s.runUntil(s.now + 20*second)
	if s.pending > 0 {
		s.fail(Liveness, "after healing, %d further limit changes have no answer", s.pending)
	}
	// Forgetting is stored with the next record of the entity only. The change of its
	// limit has brought this record, if there was room for another result.
	for at := range s.committed() {
		if remembered[at] && changed[at.id.entity] {
			s.fail(Liveness, "after healing, %s never forgets %v of %+v, which is committed", at.site, at.star, at.id)
		}
	}
	s.takeAll()
}

// hearsOfAll tells a site that all others can be reached.
func (n *node) hearsOfAll() {
	all := slices.DeleteFunc(slices.Clone(n.s.names), func(id core.SiteID) bool { return id == n.id })
	n.step(input.Reachable{Sites: all})
}

// committed names the star instances that are committed and that a site still
// remembers, for members that may not know.
func (s *sim) committed() map[asideAt]bool {
	set := make(map[asideAt]bool)
	for _, n := range s.inside() {
		for name, e := range n.drained.Entities {
			for _, sl := range e.Star.Slices {
				if sl.Committed {
					set[asideAt{site: n.id, id: sequenceID{name, e.Generation}, star: sl.ID}] = true
				}
			}
		}
	}
	return set
}

func (s *sim) existsAnywhere(name string) bool {
	return slices.ContainsFunc(s.inside(), func(n *node) bool { _, ok := n.drained.Entities[name]; return ok })
}

// idle checks that the cluster has come to rest and agrees.
func (s *sim) idle() {
	aside := s.aside()
	s.runUntil(s.now + 20*second)
	if s.violation != nil {
		return
	}
	s.rest()
	for at := range s.aside() {
		if aside[at] {
			s.fail(Liveness, "after healing, tokens stay set aside: %+v", at)
		}
	}
	s.agree()
	s.joined()
	s.appraised()
	s.upgrade.raised()
	s.denied()
	if owed := s.owed(); owed > 0 {
		s.fail(Liveness, "after healing, %d claims are not settled", owed)
	}
	s.observe.onceEach()
	s.observe.surplusFound()
	s.allHeard()
}

// agree checks that nothing waits at any site and that all have the same
// entities with the same limits.
func (s *sim) agree() {
	if s.violation != nil {
		return
	}
	first := s.inside()[0]
	for _, n := range s.inside() {
		if !n.vouchedFor() {
			return
		}
		if st := n.status; st.Waiting != 0 || st.Changes != 0 {
			s.fail(Liveness, "after healing, %s still has %+v", n.id, st)
		}
		if !maps.EqualFunc(n.drained.Entities, first.drained.Entities, sameEntity) {
			s.fail(Liveness, "after healing, %s has %+v, %s has %+v", n.id, n.drained.Entities, first.id, first.drained.Entities)
		}
		if catalogueApplied(n) != catalogueApplied(first) {
			s.fail(Liveness, "after healing, %s and %s have applied different parts of the catalogue", n.id, first.id)
		}
	}
	s.sameMode()
}

// catalogueApplied returns how far a site is, also if it never stored anything.
func catalogueApplied(n *node) avantan.Instance {
	if n.drained.Catalogue == nil {
		return 0
	}
	return n.drained.Catalogue.Protocol.Applied
}

func sameEntity(a, b stored.Entity) bool {
	return a.Generation == b.Generation && a.Limit == b.Limit && a.Version == b.Version && a.Parent == b.Parent &&
		slices.Equal(a.Results, b.Results)
}

// asideAt names tokens that a site has set aside: in an instance of the majority variant,
// by number, or in a star instance. Tokens of a direct transfer count until the receiver
// has them.
type asideAt struct {
	site core.SiteID
	id   sequenceID
	t    avantan.Instance
	star star.ID
	// to and seq name a direct transfer that is under way from the site.
	to  core.SiteID
	seq uint64
}

func (s *sim) aside() map[asideAt]bool {
	set := make(map[asideAt]bool)
	for _, n := range s.inside() {
		for name, e := range n.drained.Entities {
			id := sequenceID{name, e.Generation}
			if e.Protocol.Pledge != nil {
				set[asideAt{site: n.id, id: id, t: e.Protocol.Applied + 1}] = true
			}
			for _, sl := range e.Star.Slices {
				if !sl.Committed {
					set[asideAt{site: n.id, id: id, star: sl.ID}] = true
				}
			}
			for _, d := range e.Transfer.Debits {
				receiver := s.nodes[slices.Index(s.names, d.Receiver)]
				taken := creditOf(receiver.transfers(s.observe.sequence(id), false).Credits, n.id)
				if d.Amount > 0 && taken < d.Seq {
					set[asideAt{site: n.id, id: id, to: d.Receiver, seq: d.Seq}] = true
				}
			}
		}
	}
	return set
}

// denied fails if a change is decided although every attempt was told that nothing was
// done.
func (s *sim) denied() {
	if len(s.nodes) == 1 {
		return
	}
	// All that was ever decided, of each entity and of the catalogue.
	decided := make(map[string][]byte)
	for id, q := range s.observe.sequences {
		for _, v := range q.chosen {
			decided[id.entity] = append(decided[id.entity], v.Change...)
		}
	}
	for _, p := range s.changes {
		if p.maybe || p.decided || p.open > 0 {
			continue
		}
		id := fmt.Appendf(nil, "%q", p.requestID)
		if bytes.Contains(decided[""], id) || bytes.Contains(decided[p.entity], id) {
			s.fail(Answers, "%v was answered as not done, and is decided", p)
		}
	}
}
