package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
)

// crashSome crashes a site: at once, or at one of the next effects that it
// carries out.
func (s *sim) crashSome() {
	n := s.nodes[s.r.IntN(len(s.nodes))]
	switch {
	case !n.up:
	case s.chance(500):
		n.crash()
	default:
		n.fuse = 1 + s.r.IntN(12)
	}
}

// partition cuts links, or heals them all.
func (s *sim) partition() {
	n := len(s.nodes)
	if n == 1 {
		return
	}
	for i := range s.cut {
		clear(s.cut[i])
	}
	kind := s.r.IntN(5)
	side := make([]bool, n)
	for i := range side {
		side[i] = s.chance(500)
	}
	lone := s.r.IntN(n)
	for i := range n {
		for j := range n {
			switch kind {
			case 0: // healed
			case 1: // two sides
				s.cut[i][j] = side[i] != side[j]
			case 2: // one alone
				s.cut[i][j] = i == lone || j == lone
			case 3: // one way
				s.cut[i][j] = side[i] && !side[j]
			case 4: // any links
				s.cut[i][j] = s.chance(300)
			}
		}
	}
	s.note("partition of kind %d", kind)
	if kind != 0 {
		s.report.Partitions++
	}
}

// hint tells a site which others seem to be reachable, right or wrong.
func (s *sim) hint() {
	n := s.nodes[s.r.IntN(len(s.nodes))]
	var up []core.SiteID
	for _, m := range s.nodes {
		if m != n && (m.up && !s.cut[n.i][m.i] && !s.cut[m.i][n.i]) != s.chance(100) {
			up = append(up, m.id)
		}
	}
	n.step(core.Reachable{Sites: up})
}

// heal ends all faults and lets the cluster come to rest.
func (s *sim) heal() {
	if s.err != nil {
		return
	}
	s.healed = true
	// The window of a leader must be above a round trip and its syncs.
	s.chances.sync = min(s.chances.sync, 20*millisecond)
	s.note("healed")
	for i := range s.cut {
		clear(s.cut[i])
	}
	for _, n := range s.nodes {
		n.fuse = 0
		if !n.up {
			n.boot()
		}
	}
	for _, n := range s.nodes {
		all := slices.DeleteFunc(slices.Clone(s.names), func(id core.SiteID) bool { return id == n.id })
		n.step(core.Reachable{Sites: all})
	}
	s.runUntil(s.now + 40*second)
	if s.err == nil && s.pending > 0 {
		s.fail("after healing, %d operations have no answer", s.pending)
	}
	if s.err == nil {
		s.err = s.agree()
	}
	// Every entity must still be able to decide.
	for _, name := range s.admin.names {
		if !s.existsAnywhere(name) {
			continue
		}
		s.issue(&op{kind: setLimit, entity: name, limit: core.Tokens(100 + s.r.IntN(100)), wait: 10 * second, site: -1})
	}
	s.runUntil(s.now + 20*second)
	if s.err == nil && s.pending > 0 {
		s.fail("after healing, %d further limit changes have no answer", s.pending)
	}
}

func (s *sim) existsAnywhere(name string) bool {
	return slices.ContainsFunc(s.nodes, func(n *node) bool { _, ok := n.drained.entities[name]; return ok })
}

// idle checks that the cluster has come to rest and agrees.
func (s *sim) idle() error {
	pledged := s.pledges()
	s.runUntil(s.now + 20*second)
	if s.err != nil {
		return s.err
	}
	for at := range s.pledges() {
		if pledged[at] {
			return fmt.Errorf("after healing, a pledge stays set aside: %+v", at)
		}
	}
	if err := s.agree(); err != nil {
		return err
	}
	return s.denied()
}

// agree checks that nothing waits at any site and that all have the same
// entities with the same limits.
func (s *sim) agree() error {
	first := s.nodes[0]
	for _, n := range s.nodes {
		if st := n.core.Status(); st.Waiting != 0 || st.Changes != 0 {
			return fmt.Errorf("after healing, %s still has %+v", n.id, st)
		}
		if !maps.EqualFunc(n.drained.entities, first.drained.entities, sameEntity) {
			return fmt.Errorf("after healing, %s has %+v, %s has %+v", n.id, n.drained.entities, first.id, first.drained.entities)
		}
		if a, b := n.drained.catalogue, first.drained.catalogue; (a == nil) != (b == nil) ||
			a != nil && a.Protocol.Applied != b.Protocol.Applied {
			return fmt.Errorf("after healing, %s and %s have applied different parts of the catalogue", n.id, first.id)
		}
	}
	return nil
}

func sameEntity(a, b core.EntityRecord) bool {
	return a.Generation == b.Generation && a.Limit == b.Limit && a.Version == b.Version && slices.Equal(a.Results, b.Results)
}

type pledged struct {
	site core.SiteID
	id   sequenceID
	t    avantan.Instance
}

func (s *sim) pledges() map[pledged]bool {
	set := make(map[pledged]bool)
	for _, n := range s.nodes {
		for name, e := range n.drained.entities {
			if e.Protocol.Pledge != nil {
				set[pledged{n.id, sequenceID{name, e.Generation}, e.Protocol.Applied + 1}] = true
			}
		}
	}
	return set
}

// denied checks that no change was decided of which every attempt was told
// that nothing was done.
func (s *sim) denied() error {
	if len(s.nodes) == 1 {
		return nil
	}
	for _, p := range s.changes {
		if p.maybe || p.decided || p.open > 0 {
			continue
		}
		for id, q := range s.observe.sequences {
			if (id.entity == "" || id.entity == p.entity) && q.everHeld(p.requestID) {
				return fmt.Errorf("%v was answered as not done, and is decided", p)
			}
		}
	}
	return nil
}
