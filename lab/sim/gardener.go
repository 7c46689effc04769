package sim

import (
	"fmt"
	"slices"

	"github.com/samya-db/samya/site/core"
)

// gardener is the administrator of a tree of entities: it plants entities below others,
// moves them, and deletes them with all entities below.
type gardener struct {
	s *sim
	// pause is how many milliseconds lie between two changes on average.
	pause int
}

// plant names the entities of a tree and has them created, parents first. At the start
// each entity stands below an earlier entity, or at the top.
func (s *sim) plant() {
	a := s.admin
	for i := range 3 + s.r.IntN(5) {
		name := fmt.Sprintf("e%d", i)
		p := s.planted(name)
		if i > 0 && !s.chance(150) {
			p.parent = a.names[s.r.IntN(i)]
			p.limit = core.Tokens(20 + s.r.IntN(250))
		}
		if s.o.Hungry && i > 0 {
			p.parent = a.names[i-1]
		}
		a.names = append(a.names, name)
		// A parent has to be there first.
		s.after(micros(i)*100*millisecond, func() { s.issue(p) })
		if s.o.Hungry && i == 2 {
			break
		}
	}
	if !s.o.Hungry {
		g := &gardener{s: s, pause: 500 + s.r.IntN(1000)}
		s.after(5*second, func() { s.every(g.pause, g.next) })
	}
}

// inner are the entities that others stand below, as some site has stored.
func (s *sim) inner() []string {
	return slices.DeleteFunc(slices.Clone(s.admin.names), func(name string) bool {
		return !slices.ContainsFunc(s.nodes, func(n *node) bool { return len(n.drained.subtree(name)) > 1 })
	})
}

// planted is the creation of an entity with room for entities below.
func (s *sim) planted(name string) *op {
	return &op{kind: create, entity: name, limit: core.Tokens(50 + s.r.IntN(600)), wait: 5 * second, site: -1}
}

// next makes a change of the tree, or several in a run that is to show more.
func (g *gardener) next() {
	for range 1 + 2*g.s.extended {
		g.change()
	}
}

// deletions is how many of its changes of existing entities are deletions, in
// thousandths; all others are moves. A run that goes on gets more of the changes it
// lacks: deletions of inner entities, or moves. Runs that lack either lack entities that
// stay below others for a while.
func (g *gardener) deletions() int {
	r := &g.s.report
	switch {
	case g.s.extended == 0:
		return 250
	case r.Prunes >= minFeature:
		return 50
	case r.Moves >= minFeature:
		return 500
	}
	return 250
}

func (g *gardener) change() {
	s := g.s
	names := s.admin.names
	name, other := names[s.r.IntN(len(names))], names[s.r.IntN(len(names))]
	// Mostly an entity that exists, and another entity: most changes are to come to
	// something.
	for range 3 {
		if other == name || !s.existsAnywhere(other) {
			other = names[s.r.IntN(len(names))]
		}
	}
	p := s.planted(name)
	p.wait = micros(s.r.IntN(8000)) * millisecond
	switch {
	case !s.existsAnywhere(name):
		if s.chance(800) {
			p.parent = other
		}
	case s.chance(g.deletions()):
		p.kind, p.subtree = remove, s.chance(800)
		if inner := s.inner(); len(inner) > 0 && s.chance(850) {
			p.entity = inner[s.r.IntN(len(inner))]
		}
	default:
		p.kind = move
		if s.chance(850) {
			p.parent = other
		}
	}
	if p.kind != create && s.chance(100) {
		p.expected = s.someGeneration(p.entity)
	}
	s.issue(p)
}
