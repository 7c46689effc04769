package core

// link puts an entity below a parent, nil for none.
func (s *space) link(e, parent *entity) {
	if e.parent() != nil {
		s.below.Delete(e)
		e.parent().children--
	}
	if e.above.Store(parent); parent != nil {
		s.below.Set(e)
		parent.children++
	}
}

// childrenOf visits the children of parent in the order of their names, from the first
// name at or above from, until fn returns false. It reports whether fn never did.
func (s *space) childrenOf(parent *entity, from string, fn func(e *entity) bool) bool {
	if parent.children == 0 {
		return true
	}
	all := true
	pivot := &entity{name: from}
	pivot.above.Store(parent)
	s.below.Ascend(pivot, func(e *entity) bool {
		if e.parent() != parent {
			return false
		}
		all = fn(e)
		return all
	})
	return all
}

// subtree lists an entity and its descendants, each after its ancestors.
func (s *space) subtree(e *entity) []*entity {
	all := []*entity{e}
	for i := 0; i < len(all); i++ {
		s.childrenOf(all[i], "", func(child *entity) bool {
			all = append(all, child)
			return true
		})
	}
	return all
}

// depth is the number of entities from the root down to this entity; more than MaxDepth
// if they are more, or form a loop.
func (e *entity) depth() int {
	n := 0
	for range e.chain() {
		if n++; n > MaxDepth {
			break
		}
	}
	return n
}

// stands reports whether the entity is above, or is a descendant of above.
func (e *entity) stands(above *entity) bool {
	for a := range e.chain() {
		if a == above {
			return true
		}
	}
	return false
}

// height is the number of levels of the entity's subtree.
func (s *space) height(e *entity) int {
	deepest := e.depth()
	top := deepest
	for _, x := range s.subtree(e) {
		deepest = max(deepest, x.depth())
	}
	return deepest - top + 1
}
