package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Entities form trees, and an acquire of an entity counts at all its ancestors too. At
// every site the net of an entity is the tokens moved on it directly plus the nets of its
// children. The catalogue decides the trees. When an entity leaves an ancestor, each site
// takes the entity's net at that site out of the ancestor's books. It puts the net onto
// the books of the new ancestors. The tokens were not acquired from the new ancestors, so
// they come out of the tokens left there, which may go into debt.

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

// restoreTree puts the restored entities below their parents.
func (c *Core) restoreTree(records []EntityRecord) error {
	byGeneration := make(map[uint64]*entity)
	for i := range records {
		r := &records[i]
		if e := byGeneration[r.Generation]; e != nil {
			return fmt.Errorf("entities %q and %q have the same generation, %d", e.name, r.Name, r.Generation)
		}
		byGeneration[r.Generation] = c.space.find(r.Name)
	}
	for i := range records {
		r := &records[i]
		e, parent := byGeneration[r.Generation], byGeneration[r.Parent]
		switch {
		case r.Parent == 0:
			continue
		case parent == nil:
			return fmt.Errorf("entity %q: its parent, of generation %d, is missing", r.Name, r.Parent)
		case parent.stands(e):
			return fmt.Errorf("entity %q: its parent %q stands below it", r.Name, parent.name)
		}
		c.space.link(e, parent)
	}
	for _, e := range c.space.below.Items() {
		if e.depth() > MaxDepth {
			return fmt.Errorf("entity %q: %d stand above it, at most %d may", e.name, e.depth()-1, MaxDepth-1)
		}
	}
	return nil
}

// settleCreation creates an entity.
func (cat *catalogue) settleCreation(ch *CatalogueChange) (Code, uint64) {
	c := cat.c
	parent, code := c.parentFor(ch)
	switch {
	case code != OK:
		return code, 0
	case parent.depth() >= MaxDepth:
		return TooDeep, 0
	}
	cat.generation++
	c.relink(c.addEntity(ch.Name, cat.generation, ch.Limit), parent)
	return OK, cat.generation
}

// settleMove moves an entity with its subtree below another parent.
func (cat *catalogue) settleMove(e *entity, ch *CatalogueChange) Code {
	c := cat.c
	parent, code := c.parentFor(ch)
	switch {
	case code != OK:
		return code
	case parent == e.parent():
		return OK
	case parent.stands(e):
		return Looped
	case parent.depth()+c.space.height(e) > MaxDepth:
		return TooDeep
	}
	e.notHalted()
	old := e.parent()
	c.relink(e, parent)
	for a := range old.chain() {
		if !parent.stands(a) {
			c.reshape(a, cat.numbered)
			c.shift(a, -e.books.Net())
		}
	}
	for a := range parent.chain() {
		if !old.stands(a) {
			c.reshape(a, cat.numbered)
			c.shift(a, e.books.Net())
		}
	}
	cat.reshapes = true
	return OK
}

// settleDeletion deletes an entity, and its subtree if the change says so. Their tokens
// out are forgotten.
func (cat *catalogue) settleDeletion(e *entity, ch *CatalogueChange) Code {
	c := cat.c
	if e.children > 0 && !ch.Subtree {
		return HasChildren
	}
	for a := range e.parent().chain() {
		c.reshape(a, cat.numbered)
		c.shift(a, -e.books.Net())
	}
	for _, x := range slices.Backward(c.space.subtree(e)) {
		c.dropEntity(x)
	}
	cat.reshapes = true
	return OK
}

// parentFor is the entity that a change names as the parent, nil for none.
func (c *Core) parentFor(ch *CatalogueChange) (*entity, Code) {
	if ch.Parent == "" {
		return nil, OK
	}
	if parent := c.space.find(ch.Parent); parent != nil {
		return parent, OK
	}
	return nil, NoParent
}

// relink puts an entity below a parent, nil for none.
func (c *Core) relink(e, parent *entity) {
	if e.parent() == parent {
		return
	}
	for _, p := range []*entity{e.parent(), parent} {
		if p != nil {
			c.touch(p)
		}
	}
	c.space.link(e, parent)
	c.dirtyRecord(e)
}

// reshape notes the number of a change that moves entities into or out of e's subtree.
// Tokens out of e before the change say nothing about the tokens out after it, so audits
// under way end.
func (c *Core) reshape(e *entity, number uint64) {
	c.space.shapes[e] = number
	if e.audit != nil {
		e.audit.watches, e.audit.number, e.audit.members = nil, 0, nil
	}
	c.dirtyRecord(e)
}

// shift moves tokens out of entities that join e's subtree into e's books. A negative
// number is for entities that leave. Tokens that do not fit into the books are left out.
func (c *Core) shift(e *entity, out Tokens) {
	e.notHalted()
	out, err := e.books.Shift(out)
	c.keepWhole(e, err)
	c.dirtyBooks(e)
	if out < 0 {
		// Others may take a surplus for tokens that were out here.
		c.tellReturn(e)
	}
	if e.negative() {
		c.active(e)
	}
	c.cat.shifted = append(c.cat.shifted, e)
}

// reshaped serves waiting requests once all changes decided together are applied: their
// effect on the books does not depend on the trees in between.
func (c *Core) reshaped() {
	cat := &c.cat
	if cat.reshapes {
		cat.reshapes = false
		c.rechain()
	}
	shifted := slices.Clone(cat.shifted)
	cat.shifted = cat.shifted[:0]
	for _, e := range inOrder(shifted) {
		c.later(e)
	}
}

// inOrder sorts entities by name, then by generation, and removes duplicates.
func inOrder(es []*entity) []*entity {
	slices.SortFunc(es, func(a, b *entity) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.generation, b.generation))
	})
	return slices.Compact(es)
}
