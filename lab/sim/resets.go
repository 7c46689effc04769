package sim

import (
	"slices"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// Clients reset rate quotas, keys and whole templates, at one site or at all. A reset is
// handed to a site with nothing to drain, so it comes first in a batch of its own. What it
// gives back, no more, may be granted again: the judges of windows and of intervals take it
// off. The books after a reset of a durable quota show that nothing else came back: late
// tokens, tokens of shares, and tokens of shares that have ended stay out.

// resetting is a call that asks for a reset.
type resetting struct{ name string }

// wasReset is a reset that a site has carried out, of an entity or of keys of a template.
type wasReset struct {
	name, entity string
	tokens       core.Tokens
}

// resetTries is the number of times that a reset looks for a site with nothing to drain.
const resetTries = 20

// startResetting starts the clients that reset rate quotas, in some runs: what resets may give
// back hides what sites grant too much.
func (s *sim) startResetting() {
	if len(s.rates) > 0 && s.chance(500) {
		s.every(300+s.r.IntN(4000), s.resetSome)
	}
}

// resetSome resets an entity, a key, or all keys of a template.
func (s *sim) resetSome() {
	if s.now >= s.faultsEnd-s.load.quiet {
		return
	}
	names := slices.Clone(s.drawn)
	for _, name := range s.admin.names {
		if rated(name) {
			names = append(names, name)
		}
	}
	name := names[s.r.IntN(len(names))]
	if s.rates[name].Keys && s.chance(600) {
		name = s.keyOf(name)
	}
	first, last := 0, len(s.nodes)-1
	if s.chance(500) {
		first = s.someSite()
		last = first
	}
	for _, n := range s.nodes[first : last+1] {
		s.after(s.r.Int64N(3*millisecond), func() { n.reset(name, resetTries) })
	}
}

// reset hands a reset to a site, once the site has nothing to drain.
func (n *node) reset(name string, tries int) {
	s := n.s
	if !n.up || n.out || n.stale != nil || n.paused() || s.violation != nil || tries == 0 {
		return
	}
	if at := n.core.WakeAt(); at != 0 && at <= n.time().Tick {
		n.feed(input.Wake{})
	}
	n.settle()
	switch {
	case !n.up || s.violation != nil:
	case n.pending() || len(n.flights) >= s.chances.depth:
		s.after(20*millisecond, func() { n.reset(name, tries-1) })
	default:
		n.drainedTo, n.drainedWall = s.now, n.time().Wall
		if s.tracing {
			s.note("%s is told to reset %q", n.id, name)
		}
		n.feed(&input.Reset{Call: &resetting{name}, Entity: name})
		n.settle()
	}
}

// resetOf takes the reset that a batch tells of out of its replies; nil if there is none.
func (n *node) resetOf(batch *core.Effects) (done *wasReset) {
	batch.Replies = slices.DeleteFunc(batch.Replies, func(r core.Reply) bool {
		c, ok := r.Call.(*resetting)
		if ok && r.Answer.Code == answer.OK {
			done = &wasReset{c.name, n.drained.entityOf(c.name), r.Answer.Tokens}
		}
		return ok
	})
	return done
}

// resets is the judgement of a reset of a bucket or sliding window that a batch tells of,
// once the batch is durable.
func (o *observer) resets(n *node, done *wasReset) []func() {
	if done == nil {
		return nil
	}
	t, at := o.s.rates[done.entity], o.s.now
	q := o.sequence(sequenceID{done.entity, n.drained.Entities[done.entity].Generation})
	return []func(){func() {
		o.s.report.Resets++
		o.s.report.ResetTokens += int(done.tokens)
		if t.Kind == rates.Window {
			return
		}
		for _, of := range done.parts(&t) {
			o.flows(q, of.name, &t, flowing{from: at, until: at, tokens: of.tokens, site: n.i, reset: true})
		}
	}}
}

// parts are the entity or the keys that a reset is about, each with the most tokens that come
// back.
func (r *wasReset) parts(t *rates.Terms) (parts []wasReset) {
	switch {
	case !t.Keys:
		return []wasReset{*r}
	case r.name != r.entity:
		return []wasReset{{r.name, r.entity, allTokens}}
	}
	for _, key := range keysOf(r.name) {
		parts = append(parts, wasReset{key, r.entity, allTokens})
	}
	return parts
}

// resetWindow takes in the reset of a window with which a transaction begins. If another
// window begins with it, nothing was granted in that window.
func (o *observer) resetWindow(n *node, r *stored.Records) {
	done := o.note.reset
	if done == nil {
		return
	}
	t, e := o.s.rates[done.entity], n.durable.Entities[done.entity]
	begins := func(is stored.Entity) bool {
		return is.Name == done.entity && (is.Generation != e.Generation || is.Rate.Window != e.Rate.Window)
	}
	if t.Kind != rates.Window || slices.ContainsFunc(r.Entities, begins) {
		return
	}
	for _, of := range done.parts(&t) {
		o.givenIn(sequenceID{of.name, e.Generation}, e.Rate.Window, n.i, of.tokens)
	}
}

// resetBack is the number of tokens of an entity that the transaction under check gives back
// by a reset.
func (o *observer) resetBack(name string) core.Tokens {
	if r := o.note.reset; r != nil && r.name == name {
		return r.tokens
	}
	return 0
}

// resetBooks checks the books of a durable quota after a reset. Tokens of shares stay out, and
// so do later grants; all others come back, but for late tokens and those of ended shares.
func (o *observer) resetBooks(n *node, b *stored.Books, is *stored.Rate, stays core.Tokens) {
	if r := o.note.reset; r == nil || r.name != b.Name || is.Terms.Volatile {
		return
	}
	q := o.sequence(sequenceID{b.Name, b.Generation})
	least, most := stays, stays+is.Late+ended(is)
	if q.handoffs == nil {
		// Else the tokens of shares may be late as well, and those that were late or ended may
		// have gone to an heir.
		least = most
	}
	if b.Net < least || b.Net > most {
		o.s.fail(Rates, "%s: after a reset %d of %v are out, between %d and %d were to stay out", n.id, b.Net, q.id, least, most)
	}
}

// inheritsGrants takes in that a site durably takes a bequest: a reset there may give back
// grants of the leaver.
func (o *observer) inheritsGrants(q *sequence, leaver, heir int) {
	for _, in := range o.windows[q.id] {
		in.by[heir] += in.by[leaver]
		in.by[leaver] = 0
	}
	for i := range o.flow[q.id] {
		if g := &o.flow[q.id][i]; g.site == leaver {
			g.site = heir
		}
	}
}

// note is what the simulator knows of a batch under way beside its effects.
type note struct {
	// judges judge the grants of rate quotas in it, once it is durable.
	judges []func()
	// reset is the reset with which it begins; nil for none.
	reset *wasReset
	// wall is a time that the site's calendar had shown before the batch began, and has not
	// gone back from; 0 if none is known.
	wall int64
}

// noteOf is the note of a batch under way.
func (n *node) noteOf(batch *core.Effects) note {
	if i := slices.Index(n.flights, batch); i >= 0 && i < len(n.notes) {
		return n.notes[i]
	}
	return note{}
}

// shownBefore is the wall of the note of the next batch.
func (n *node) shownBefore() int64 {
	if n.jumped < n.drainedTo {
		return n.drainedWall
	}
	return 0
}
