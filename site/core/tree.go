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
// The tokens of a rate quota come back by the clock, so its net is part of no other net
// (sumsOf). An acquire of a rate quota below an allocation, an entity that is no rate quota,
// counts at the allocation until it is released. No record tells which requests of a rate
// quota counted where, so a rate quota has the same lowest allocation above it for all its
// life, or none. A template has none: nobody releases tokens of its keys.
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
	case parent != nil && isTemplate(parent), ch.Rate.Keys && allocationOf(parent) != nil:
		return answer.OfKey, 0
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
	case parent != nil && isTemplate(parent):
		return answer.OfKey
	case rateOf(e) != nil && allocationOf(e) != allocationOf(parent):
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
			c.passes(a, -c.space.carried(e))
		}
	}
	for a := range parent.chain() {
		if !old.stands(a) {
			c.passes(a, c.space.carried(e))
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
		c.passes(a, -c.space.carried(e))
	}
	for _, x := range slices.Backward(c.space.subtree(e)) {
		c.dropEntity(x)
	}
	cat.reshapes = true
	return answer.OK
}

// passes changes an entity as others come below it or go from there, with tokens out.
func (c *cataloguing) passes(e *entity, out Tokens) {
	c.reshape(e, c.cat.numbered)
	if rateOf(e) == nil {
		c.shift(e, out)
	}
}
