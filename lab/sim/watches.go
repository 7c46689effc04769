package sim

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// watchers is how many watchers there are at a time.
const watchers = 2

// watcher watches an entity at a site, for ever.
type watcher struct {
	s    *sim
	n    *node
	name string
	// life is the site's life in which it watches, waiting whether it has asked.
	life    int
	waiting bool
	// after and told are of the state told last; nil for none.
	after input.Revision
	told  *answer.View
}

// startWatchers has some entities watched.
func (s *sim) startWatchers() {
	for range watchers {
		w := &watcher{s: s, n: s.nodes[s.r.IntN(len(s.nodes))], name: s.admin.names[s.r.IntN(len(s.admin.names))]}
		s.watchers = append(s.watchers, w)
		w.tick()
	}
}

// tick asks again where no answer can come any more, or no useful answer came.
func (w *watcher) tick() {
	if w.s.violation != nil {
		return
	}
	w.next()
	w.s.after(second, w.tick)
}

func (w *watcher) next() {
	n := w.n
	if w.waiting && n.life == w.life || !n.up {
		return
	}
	if n.life != w.life {
		w.life, w.after, w.told = n.life, 0, nil
	}
	w.waiting = true
	life := n.life
	// before are the site's books when it was asked: an ask handed to a paused site in an
	// earlier life may still come besides this ask.
	var before *answer.View
	w.s.ask(n, w.name, func(c *call) input.Input {
		before = n.drained.state(w.name)
		return &input.Watch{Call: c, Entity: w.name, After: w.after}
	}, func(a *answer.Answer) {
		if life == w.life {
			w.answered(before, a)
		}
	})
}

// answered checks a state that was told, given the state when the site was asked, and
// asks for the next state.
func (w *watcher) answered(before *answer.View, a *answer.Answer) {
	s, n := w.s, w.n
	w.waiting = false
	durable := n.durable.state(w.name)
	switch {
	case a.Deleted:
		if durable != nil && durable.Generation == a.View().Generation {
			s.fail(Durability, "%s tells that %q was deleted, which is not durable", n.id, w.name)
		}
		w.after, w.told = 0, nil
		return
	case a.Code != answer.OK:
		w.after, w.told = 0, nil
		return
	case a.Revision <= w.after:
		s.fail(Reads, "%s: a watch of %q behind %d is told revision %d", n.id, w.name, w.after, a.Revision)
	case !alike(a.View(), before) && !alike(a.View(), durable):
		s.fail(Durability, "%s tells of %+v; when it was asked it had %+v, durable is %+v", n.id, *a.View(), before, durable)
	case w.told != nil && (a.View().Generation < w.told.Generation || a.View().Generation == w.told.Generation &&
		(a.View().Version < w.told.Version || a.View().Applied < w.told.Applied || a.View().Moved < w.told.Moved)):
		s.fail(Reads, "%s: a watch of %q goes back from %+v to %+v", n.id, w.name, w.told, *a.View())
	}
	s.observe.mayExceed(n, a.View())
	s.report.WatchStates++
	w.after, w.told = a.Revision, a.View()
	s.after(s.r.Int64N(300*millisecond), w.next)
}

// watchersTold checks, at rest, that each watcher was told the last state: a watcher that
// does not wait for the next state was told a state just now.
func (s *sim) watchersTold() {
	if s.violation != nil {
		return
	}
	for _, w := range s.watchers {
		last := w.n.durable.state(w.name)
		switch {
		case w.n.outside():
		case last == nil:
			if w.told != nil {
				s.fail(Liveness, "%s has not told that %q was deleted", w.n.id, w.name)
			}
		case last.Left+last.Offered < 0:
			// A site in debt that nobody can pay goes on looking for tokens.
		case w.told == nil || w.waiting && (!alike(w.told, last) || w.told.Waiting > 0):
			s.fail(Liveness, "at rest, %s has told %+v of %q, it has %+v", w.n.id, w.told, w.name, last)
		}
	}
}

// state is the stored state that a watch may tell; nil for no such entity.
func (m *Memory) state(name string) *answer.View {
	e, found := m.Entities[name]
	if !found {
		return nil
	}
	b := m.Books[name]
	v := &answer.View{
		Generation: e.Generation, Limit: e.Limit, Version: e.Version, Left: b.Left, Net: b.Net,
		Offered: aside(e.Star.Slices), Applied: e.Protocol.Applied, Moved: e.Moved, Surplus: e.Surplus,
	}
	if p := e.Protocol.Pledge; p != nil {
		v.Offered += p.Offered
	}
	return v
}

// alike reports whether a view tells of a state that is stored.
func alike(v, stored *answer.View) bool {
	return stored != nil && v.Generation == stored.Generation && v.Limit == stored.Limit && v.Version == stored.Version &&
		v.Left == stored.Left && v.Net == stored.Net && v.Offered == stored.Offered && v.Applied == stored.Applied &&
		v.Moved == stored.Moved && v.Surplus == stored.Surplus
}
