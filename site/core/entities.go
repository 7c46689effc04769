package core

import (
	"cmp"
	"slices"
	"strings"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/books"
	"github.com/samya-db/samya/site/core/stored"
)

// keepOut sets the number of an entity's tokens kept out of circulation.
func (c *common) keepOut(e *entity, surplus Tokens) {
	c.surplus += surplus - e.surplus()
	if surplus != e.surplus() {
		e.rarely().surplus = surplus
	}
}

// newEntity makes an entity created at a version of the roster: the voters of that version
// share its limit.
func (c *cataloguing) newEntity(name string, generation uint64, initial Tokens, born uint16) *entity {
	e := &entity{name: name, generation: generation, initial: initial, limit: initial, version: 1, heapAt: -1, born: born, voters: born}
	e.rebalance.lastGrant = shareOf(initial, c.roster.view(born), c.cfg.Self)
	return e
}

// addEntity gives a created entity its books, with this site's share.
func (c *cataloguing) addEntity(name string, generation uint64, limit Tokens, born uint16, terms rates.Terms) *entity {
	e := c.newEntity(name, generation, limit, born)
	c.beginRate(e, terms)
	var err error
	if terms.Keys {
		e.rebalance.lastGrant = shareOfKeys(name, limit, c.roster.view(born), c.cfg.Self)
	}
	e.books, err = books.Of(e.rebalance.lastGrant, 0, 0)
	c.keepWhole(e, err)
	c.takesOver(e)
	c.space.put(e)
	c.space.enroll(e)
	c.roster.count(e, 1)
	c.stands(e)
	c.dirtyBooks(e)
	c.dirtyRecord(e)
	return e
}

// dropEntity forgets a deleted entity without children. rechain answers the acquires that
// wait for its tokens.
func (c *cataloguing) dropEntity(e *entity) {
	for _, p := range e.limitChanges() {
		c.answerAll(p, answer.Answer{Code: answer.NotFound})
	}
	e.setLimitChanges(nil)
	c.limiting.endAcks(e)
	c.reading.endWatches(e, e.deleted())
	c.timers.remove(e)
	c.leasing.deletedLeases(e)
	c.keepOut(e, 0)
	c.retire(e, 0)
	c.sharding.unsplit(e)
	c.forecasting.unpark(e.name)
	delete(c.halt.generations, e.generation)
	delete(c.tallies, e)
	e.demand = demand{}
	c.space.dismiss(e)
	c.space.remove(e)
	c.handsBack(e)
	c.roster.count(e, -1)
	c.out.Records.Deleted = append(c.out.Records.Deleted, e.name)
}

// parentFor is the entity that a change names as the parent, nil for none.
func (c *cataloguing) parentFor(ch *stored.CatalogueChange) (*entity, answer.Code) {
	if ch.Parent == "" {
		return nil, answer.OK
	}
	if parent := c.space.find(ch.Parent); parent != nil {
		return parent, answer.OK
	}
	return nil, answer.NoParent
}

// relink puts an entity below a parent, nil for none.
func (c *cataloguing) relink(e, parent *entity) {
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
func (c *cataloguing) reshape(e *entity, number uint64) {
	c.space.shapes[e] = number
	e.endAudits()
	c.dirtyRecord(e)
}

// shift moves tokens out of entities that join e's subtree into e's books. A negative
// number is for entities that leave. Tokens that do not fit into the books are left out.
func (c *cataloguing) shift(e *entity, out Tokens) {
	e.notHalted()
	out, err := e.books.Shift(out)
	c.keepWhole(e, err)
	c.dirtyBooks(e)
	if out < 0 {
		// Others may take a surplus for tokens that were out here.
		c.peering.tellReturn(e)
	}
	if e.negative() {
		c.peering.active(e)
	}
	c.cat.shifted = append(c.cat.shifted, e)
}

// reshaped serves waiting requests once all changes decided together are applied: their
// effect on the books does not depend on the trees in between.
func (c *cataloguing) reshaped() {
	cat := &c.cat
	if cat.reshapes {
		cat.reshapes = false
		c.admitting.rechain()
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
