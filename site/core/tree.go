package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/stored"
)

// Entities form trees, and an acquire of an entity counts at all its ancestors too. At
// every site the net of an entity is the tokens moved on it directly plus the nets of its
// children. The catalogue decides the trees. When an entity leaves an ancestor, each site
// takes the entity's net at that site out of the ancestor's books. It puts the net onto
// the books of the new ancestors. The tokens were not acquired from the new ancestors, so
// they come out of the tokens left there, which may go into debt.
//
// While a bequest is open two sites count its tokens out, and would both move them (package
// avantan/handoff). So no entity leaves the entities above it while a bequest may be open.

// settleCreation creates an entity.
func (cat *catalogue) settleCreation(ch *stored.CatalogueChange) (answer.Code, uint64) {
	c := cat.c
	parent, code := c.parentFor(ch)
	switch {
	case code != answer.OK:
		return code, 0
	case parent != nil && (rateOf(parent) != nil || !ch.Rate.None()):
		return answer.ByClock, 0
	case parent.depth() >= MaxDepth:
		return answer.TooDeep, 0
	}
	cat.generation++
	c.relink(c.addEntity(ch.Name, cat.generation, ch.Limit, c.roster.Version, ch.Rate), parent)
	return answer.OK, cat.generation
}

// settleMove moves an entity with its subtree below another parent.
func (cat *catalogue) settleMove(e *entity, ch *stored.CatalogueChange) answer.Code {
	c := cat.c
	parent, code := c.parentFor(ch)
	switch {
	case code != answer.OK:
		return code
	case parent == e.parent():
		return answer.OK
	case parent.stands(e):
		return answer.Looped
	case parent != nil && (rateOf(parent) != nil || rateOf(e) != nil):
		return answer.ByClock
	case parent.depth()+c.space.height(e) > MaxDepth:
		return answer.TooDeep
	case c.roster.handsOver():
		return answer.Changing
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
	return answer.OK
}

// settleDeletion deletes an entity, and its subtree if the change says so. Their tokens
// out are forgotten.
func (cat *catalogue) settleDeletion(e *entity, ch *stored.CatalogueChange) answer.Code {
	c := cat.c
	if e.children > 0 && !ch.Subtree {
		return answer.HasChildren
	}
	if e.parent() != nil && c.roster.handsOver() {
		return answer.Changing
	}
	for a := range e.parent().chain() {
		c.reshape(a, cat.numbered)
		c.shift(a, -e.books.Net())
	}
	for _, x := range slices.Backward(c.space.subtree(e)) {
		c.dropEntity(x)
	}
	cat.reshapes = true
	return answer.OK
}
