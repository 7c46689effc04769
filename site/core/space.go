package core

import "github.com/tidwall/btree"

// space holds the entity machines and runs functions over them. Every access
// of a request goes through Execute, so that a request can span several
// entities, and so that the machines can be spread over workers without the
// requests noticing.
type space struct {
	entities btree.Map[string, *entity]
}

// Execute runs fn over the entities of the given keys, in their order, nil for
// one that does not exist. Nothing else touches these entities meanwhile.
func (s *space) Execute(keys []string, fn func(es []*entity)) {
	var few [4]*entity
	es := few[:0]
	for _, k := range keys {
		e, _ := s.entities.Get(k)
		es = append(es, e)
	}
	fn(es)
}

func (s *space) put(e *entity)      { s.entities.Set(e.name, e) }
func (s *space) remove(name string) { s.entities.Delete(name) }

// ascend visits entities in the order of their names from the first name at or
// above from, until fn returns false.
func (s *space) ascend(from string, fn func(e *entity) bool) {
	s.entities.Ascend(from, func(_ string, e *entity) bool { return fn(e) })
}
