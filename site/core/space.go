package core

import (
	"github.com/puzpuzpuz/xsync/v4"
	"github.com/tidwall/btree"
)

// space holds the entity machines and runs functions over them. Every access of a request
// goes through Execute, or through find for a single entity. So a request can span
// several entities, and the machines can be spread over workers without the requests
// noticing.
type space struct {
	// byName finds the machines, at any time; ordered holds them in the order of their
	// names.
	byName  *xsync.Map[string, *entity]
	ordered *btree.BTreeG[*entity]
	// below holds the entities with parents, in the order of the parents' generations and
	// of their own names.
	below *btree.BTreeG[*entity]
	// shapes are the shapes of the entities that have a shape; see stored.Entity.
	shapes map[*entity]uint64
	// templates finds the templates by their names, and keys counts their keys: never fewer
	// than they are.
	templates map[string]*entity
	keys      int
	// home is told of the machines that come and go, if not nil.
	home Home
}

func newSpace() space {
	byName := func(a, b *entity) bool { return a.name < b.name }
	byParent := func(a, b *entity) bool {
		if a.parent() != b.parent() {
			return a.parent().generation < b.parent().generation
		}
		return a.name < b.name
	}
	return space{
		byName:  xsync.NewMap[string, *entity](),
		ordered: btree.NewBTreeGOptions(byName, btree.Options{NoLocks: true}),
		below:   btree.NewBTreeGOptions(byParent, btree.Options{NoLocks: true}),
		shapes:  make(map[*entity]uint64),

		templates: make(map[string]*entity),
	}
}

// Execute runs fn over the entities of the given keys, in their order, nil for an entity
// that does not exist. Nothing else touches these entities meanwhile.
func (s *space) Execute(keys []string, fn func(es []*entity)) {
	var few [4]*entity
	es := few[:0]
	for _, k := range keys {
		es = append(es, s.find(k))
	}
	fn(es)
}

// find is Execute for a single entity, without its costs.
func (s *space) find(name string) *entity {
	e, _ := s.byName.Load(name)
	return e
}

func (s *space) len() int { return s.ordered.Len() }

func (s *space) put(e *entity) {
	s.ordered.Set(e)
	if s.home != nil {
		s.attach(e)
	}
	s.byName.Store(e.name, e)
}

// attach gives a machine its place in the shards.
func (s *space) attach(e *entity) {
	e.handle = s.home.Came(e)
}

func (s *space) remove(e *entity) {
	s.link(e, nil)
	s.byName.Delete(e.name)
	delete(s.shapes, e)
	s.ordered.Delete(e)
	e.removed = true
	if s.home != nil {
		s.home.Gone(e)
	}
}

// ascendBelow visits the entities right below a parent, in the order of their names from the
// first name at or above from, until fn returns false.
func (s *space) ascendBelow(parent *entity, from string, fn func(e *entity) bool) {
	first := &entity{name: from}
	first.above.Store(parent)
	s.below.Ascend(first, func(e *entity) bool { return e.parent() == parent && fn(e) })
}

// ascend visits entities in the order of their names from the first name at or
// above from, until fn returns false.
func (s *space) ascend(from string, fn func(e *entity) bool) {
	s.ordered.Ascend(&entity{name: from}, fn)
}
