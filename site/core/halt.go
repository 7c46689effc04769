package core

import (
	"errors"
	"fmt"

	"github.com/samya-db/samya/site/core/event"
)

// A balance beyond its bound is a bug of samya. The site then halts the entity with its
// tree (all entities that share a charge with the entity), and serves other entities. It
// stores and sends nothing more about a halted tree: to other sites, and after a restart,
// the site looks as if it had crashed just before the commit in which the bug showed.
// Restarting the site is thus safe, and starts the entity again from books that were
// whole.

// errPledges says that the tokens set aside in the books differ from the protocols'
// pledges.
var errPledges = errors.New("tokens set aside in the books are not those pledged to instances")

// broken is an entity with broken books, and the reason.
type broken struct {
	of  *entity
	err error
}

// halt holds the halted entities.
type halt struct {
	// generations are the generations of all halted entities; nil for none.
	generations map[uint64]bool
	// fresh says that an entity was halted since the last Drain.
	fresh bool
}

// keepWhole halts an entity if an operation on its books has failed.
func (c *common) keepWhole(e *entity, err error) {
	if err == nil || c.halt.generations[e.generation] {
		return
	}
	c.out.Events = append(c.out.Events, event.Event{Kind: event.BooksBroken, Entity: e.name, Err: fmt.Errorf("entity %q: %w", e.name, err)})
	c.haltTree(e)
}

// keepWhole notes a broken entity on the shard. The core halts the entity when the shards
// are joined.
func (l *shard) keepWhole(e *entity, err error) {
	if err != nil {
		l.broken = append(l.broken, broken{e, err})
	}
}

// haltTree halts an entity and all other entities of its tree.
func (c *common) haltTree(e *entity) {
	for e.parent() != nil {
		e = e.parent()
	}
	if c.halt.generations == nil {
		c.halt.generations = make(map[uint64]bool)
	}
	for _, x := range c.space.subtree(e) {
		x.books.Close()
		c.halt.generations[x.generation] = true
		c.timers.remove(x)
	}
	c.halt.fresh = true
}

// notHalted panics if a change of the catalogue moves tokens out of the books of an
// entity, or into them, while the entity is halted: the change would be stored and the
// books would not. The site ends, and applies the change after a restart.
func (e *entity) notHalted() {
	if e.halted() {
		panic(fmt.Sprintf("core: a change of the catalogue moves tokens of entity %q, which is halted", e.name))
	}
}
