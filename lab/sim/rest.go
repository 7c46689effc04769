package sim

import (
	"slices"

	"github.com/samya-db/samya/redistribute"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/stored"
)

// atRest names the tokens set aside, and looks for debts that nobody pays: where the
// sites together have tokens, no site is in debt once nothing fails.
func (s *sim) atRest() map[asideAt]bool {
	s.rest()
	for _, name := range s.admin.names {
		free, everywhere := s.free(name)
		if free < 0 || !everywhere {
			continue
		}
		if owed := s.latest(name).Debt; s.payable(name) {
			s.fail(Liveness, "after healing, %d of %q are owed, the sites together have %d more", owed, name, free)
		}
		if n := s.owing(name); n != nil {
			s.fail(Liveness, "after healing, %s stays %d in debt of %q, the sites together have %d", n.id, -n.drained.Books[name].Left, name, free)
		}
	}
	return s.aside()
}

// rest lets work under way come to an end. Tokens come back at any time, as leases end,
// and pay debts. Tokens that nobody acquired are found and set aside. Each entity has
// ten seconds from the moment at which its work begins, whatever others do.
func (s *sim) rest() {
	begun := func(name string) bool { return s.payable(name) || s.apart(name) || s.owing(name) != nil }
	seconds := make(map[string]int)
	for range 60 {
		resting := true
		for _, name := range s.admin.names {
			if !begun(name) {
				seconds[name] = 0
				continue
			}
			seconds[name]++
			resting = resting && seconds[name] > 10
		}
		if resting {
			return
		}
		s.runUntil(s.now + second)
	}
}

// apart reports whether sites have applied unlike many instances of an entity.
func (s *sim) apart(name string) bool {
	first := s.inside()[0].drained.Entities[name]
	return slices.ContainsFunc(s.inside(), func(n *node) bool {
		return n.drained.Entities[name].Protocol.Applied != first.Protocol.Applied
	})
}

// payable reports whether an entity is in debt, and all sites together could pay it.
func (s *sim) payable(name string) bool {
	free, everywhere := s.free(name)
	return free >= 0 && everywhere && s.latest(name).Debt > 0
}

// owing is a site in debt of an entity, although all sites together could pay; nil for
// none.
func (s *sim) owing(name string) *node {
	if free, everywhere := s.free(name); free < 0 || !everywhere || s.wait == quorumWait {
		return nil
	}
	inside := s.inside()
	i := slices.IndexFunc(inside, func(n *node) bool { return n.drained.Books[name].Left < 0 })
	if i < 0 {
		return nil
	}
	return inside[i]
}

// latest is an entity's record after the last instance that any site has applied.
func (s *sim) latest(name string) stored.Entity {
	var latest stored.Entity
	for _, n := range s.nodes {
		e := n.drained.Entities[name]
		if e.Generation > latest.Generation || e.Generation == latest.Generation && e.Protocol.Applied >= latest.Protocol.Applied {
			latest = e
		}
	}
	return latest
}

// missing is how many tokens clients have released without having acquired them, if not
// yet set aside. The sites have these tokens beyond the limit.
func (s *sim) missing(name string) core.Tokens {
	e := s.latest(name)
	out := e.Surplus + e.WrittenOff
	for _, n := range s.inside() {
		out += n.drained.Books[name].Net
	}
	return max(0, -out)
}

// free is how many tokens of an entity the sites have together, left or set aside, less
// the debt. everywhere says that all sites know the entity.
func (s *sim) free(name string) (left core.Tokens, everywhere bool) {
	everywhere = true
	for _, n := range s.inside() {
		_, found := n.drained.Entities[name]
		everywhere = everywhere && found
		left += n.has(name)
	}
	return left - s.latest(name).Debt, everywhere
}

// quorumWait is the wait of leaders that go on with the first majority. They never find
// the tokens of the others, so debts may stay and acquires be refused.
const quorumWait = "quorum"

// nearby is so near that a site still answers within the window of a leader, even if it
// must first learn of the instance before.
const nearby = 60 * millisecond

// takeAll has a site asked for all tokens that there are of each entity, up to the limit.
// Where nothing fails and no site is slow, they can be had.
func (s *sim) takeAll() {
	if s.wait == quorumWait {
		return
	}
	for i := range s.latency {
		for j := range s.latency[i] {
			s.latency[i][j] = min(s.latency[i][j], nearby)
		}
	}
	for _, name := range s.admin.names {
		n := s.nodes[s.someSite()]
		if rated(name) {
			n = s.furthest()
		}
		if n.drained.planted(name) {
			continue
		}
		free, everywhere := s.free(name)
		if free <= 0 || !everywhere || n.cfg.Admission == "refuse" || n.cfg.Policy == redistribute.Paper {
			// The paper's policy splits equally the tokens that it does not grant.
			continue
		}
		tokens := min(free-s.missing(name), n.drained.Entities[name].Limit)
		if tokens <= 0 {
			continue
		}
		s.mustHave(&op{kind: acquire, entity: name, site: n.i, tokens: tokens, wait: 15 * second})
	}
	s.runUntil(s.now + 20*second)
	if s.pending > 0 {
		s.fail(Liveness, "after healing, %d further acquires have no answer", s.pending)
	}
	s.takeTrees()
}

func (s *sim) mustHave(p *op) {
	n := s.nodes[p.site]
	p.then = func(a *answer.Answer) {
		if a == nil || a.Code != answer.OK {
			s.fail(Refusal, "after healing, %s refuses %v, which the sites together have: %+v", n.id, p, a)
		}
	}
	s.issue(p)
}

// forgetDrought is how long after the last acquire sites no longer believe that there are
// no tokens to be had elsewhere. The site tells of it for 10 seconds, and the others for
// as long after they last hear it. Sites believe it for 3 seconds.
const forgetDrought = 25 * second

// takeTrees takes each entity of a tree in turn. It has a site asked for all tokens that
// the entity and every entity above have, up to the lowest limit.
func (s *sim) takeTrees() {
	for _, name := range s.admin.names {
		n := s.nodes[s.someSite()]
		if s.violation != nil || !n.drained.planted(name) || n.cfg.Admission == "refuse" || n.cfg.Policy == redistribute.Paper {
			continue
		}
		chain := n.drained.chain(name)
		s.runUntil(s.now + forgetDrought)
		least, everywhere := s.free(name)
		for _, above := range chain[1:] {
			free, all := s.free(above)
			least, everywhere = min(least, free), everywhere && all
		}
		for _, above := range chain {
			least = min(least, n.drained.Entities[above].Limit)
		}
		if least <= 0 || !everywhere {
			continue
		}
		wait := micros(len(chain)) * 15 * second
		s.mustHave(&op{kind: acquire, entity: name, site: n.i, tokens: least, wait: wait})
		s.allAnswered(wait + 5*second)
	}
}

// allAnswered runs until all operations have their answers, and fails after a time.
func (s *sim) allAnswered(most micros) {
	for end := s.now + most; s.pending > 0 && s.now < end && s.violation == nil; {
		s.runUntil(s.now + second)
	}
	if s.pending > 0 {
		s.fail(Liveness, "after healing, %d further operations have no answer", s.pending)
	}
}
