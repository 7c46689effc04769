package core

import (
	"slices"

	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// reading answers reads, listings and watches.
type reading struct {
	*common
	*peering
	// watchers finds the entities that callers watch; revision is the revision of the
	// last transaction with an entity.
	watchers map[input.Call]*entity
	revision input.Revision
	// watchersOf counts the watchers of each tenant's entities.
	watchersOf portion.Counts
}

// watched is the core's state of an entity that somebody watches.
type watched struct {
	watchers []watcher
	// waiting is the number of waiting acquires when its last revision was drained.
	waiting int
	// tenant is the slot in which the watchers are counted.
	tenant portion.Slot
}

// watcher waits for a later revision of an entity.
type watcher struct {
	call  input.Call
	after input.Revision
}

// watch answers once the entity has a later revision. Drain tells a state that is still
// to be drained, so that no change of a batch is left out.
func (c *reading) watch(w *input.Watch) {
	if c.stopping {
		c.reply(w.Call, answer.Answer{Code: answer.Stopping})
		return
	}
	c.space.Execute([]string{w.Entity}, func(es []*entity) {
		e := es[0]
		if e != nil && !e.queue.told() {
			// While nobody watches, the waiting acquires may change without a revision.
			c.touch(e)
		}
		switch {
		case e == nil:
			c.reply(w.Call, answer.Answer{Code: answer.NotFound})
		case !e.listed && (w.After == 0 || e.revised() > w.After):
			c.reply(w.Call, answer.Answer{Details: &answer.Details{View: c.read(e)}, Revision: e.revised()})
		case c.watchingFull(e):
			c.reply(w.Call, answer.Answer{Code: answer.Overloaded, RetryAfter: 1000})
		default:
			if e.watch == nil {
				e.watch = &watched{waiting: e.queue.len()}
			}
			e.watch.watchers = append(e.watch.watchers, watcher{w.Call, w.After})
			c.watchers[w.Call] = e
			e.watch.tenant = c.watchersOf.Take(c.cfg.tenantOf(e.name), 1)
		}
	})
}

// revised is the revision of the last drained state of the entity. An entity that has not
// changed in this life of the core has the first revision.
func (e *entity) revised() input.Revision { return max(1, e.revision) }

// revise gives the entities that are about to be handed over their revision, and answers
// their watchers.
func (c *reading) revise() {
	if len(c.touched) == 0 {
		return
	}
	c.revision++
	for _, e := range c.touched {
		e.revision = c.revision
		e.queue.tell()
		if e.watch != nil && c.serves(e) {
			c.tellWatchers(e)
		}
	}
}

func (c *reading) tellWatchers(e *entity) {
	told := answer.Answer{Details: &answer.Details{View: c.read(e)}, Revision: e.revision}
	e.watch.waiting = e.queue.len()
	e.watch.watchers = slices.DeleteFunc(e.watch.watchers, func(w watcher) bool {
		if w.after >= e.revision {
			return false
		}
		c.reply(w.call, told)
		c.watchEnded(w.call, e.watch)
		return true
	})
	if len(e.watch.watchers) == 0 {
		e.watch = nil
	}
}

// queueMoved has the watchers of an entity told if the number of waiting acquires has
// changed.
func (c *reading) queueMoved(e *entity) {
	if e.watch != nil && e.watch.waiting != e.queue.len() {
		c.touch(e)
	}
}

// watchEnded stops counting a watcher.
func (c *reading) watchEnded(call input.Call, of *watched) {
	delete(c.watchers, call)
	c.watchersOf.Give(of.tenant, 1)
}

// unwatch drops a watcher, and reports whether the call was one.
func (c *reading) unwatch(call input.Call) bool {
	e, found := c.watchers[call]
	if !found {
		return false
	}
	c.watchEnded(call, e.watch)
	e.watch.watchers = slices.DeleteFunc(e.watch.watchers, func(w watcher) bool { return w.call == call })
	if len(e.watch.watchers) == 0 {
		e.watch = nil
	}
	return true
}

// endWatches gives all watchers of an entity their last answer.
func (c *reading) endWatches(e *entity, last answer.Answer) {
	if e.watch == nil {
		return
	}
	for _, w := range e.watch.watchers {
		c.reply(w.call, last)
		c.watchEnded(w.call, e.watch)
	}
	e.watch = nil
}

// deleted is the last answer to the watchers of a deleted entity.
func (e *entity) deleted() answer.Answer {
	return answer.Answer{Deleted: true, Details: &answer.Details{View: answer.View{Name: e.name, Generation: e.generation}}}
}

// stopWatches answers all watchers that the site is about to stop. It goes by the
// entities' names, so that a run can be repeated.
func (c *reading) stopWatches() {
	if len(c.watchers) == 0 {
		return
	}
	c.space.ascend("", func(e *entity) bool {
		c.endWatches(e, answer.Answer{Code: answer.Stopping})
		return true
	})
}
