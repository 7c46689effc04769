package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// Volatile rate quotas have clients of their own: their grants are in no record, so they are
// judged by the answers alone. A client asks a site, once, and takes the answer. Of templates
// it draws keys, several at once too.

// draw is an acquire of volatile rate quotas.
type draw struct {
	parts []input.Part
	// least is the fewest tokens to be content with.
	least core.Tokens
	// back says that tokens are released. reserves is the lease that it asks for; nil for none.
	back     bool
	reserves *reservation
}

// mostKeys is the number of keys of a template that are drawn.
const mostKeys = 5

// templateOf is the template of a key; an entity that is no key is its own.
func templateOf(name string) string {
	base, _, _ := strings.Cut(name, "/")
	return base
}

// entityOf is the entity that a name has its tokens of at a site: itself, or its template.
func (m *Memory) entityOf(name string) string {
	if _, found := m.Entities[name]; found {
		return name
	}
	return templateOf(name)
}

// startDrawing starts the clients of volatile rate quotas.
func (s *sim) startDrawing() {
	if len(s.drawn) == 0 {
		return
	}
	s.growTree(0)
	for _, name := range s.drawn {
		if s.inTree(name) {
			continue
		}
		limit := s.rateLimit(core.Tokens(20 + s.r.IntN(400)))
		s.issue(&op{kind: create, entity: name, limit: limit, wait: 5 * second, site: -1})
	}
	for range 1 + s.r.IntN(4) {
		s.drawNext(1+s.r.IntN(300), 1+s.r.IntN(30))
	}
}

// drawNext has a client draw, time and again.
func (s *sim) drawNext(pause, big int) {
	s.after(micros(1+s.r.IntN(2*pause))*millisecond, func() {
		if s.healed {
			return
		}
		if s.now < s.faultsEnd-s.load.quiet {
			s.drawOnce(big)
			if s.chance(300) {
				s.giveDrawn()
			}
		}
		s.drawNext(pause, big)
	})
}

// drawnName is a name to draw from: an entity, or a key of a template.
func (s *sim) drawnName() string {
	name := s.drawn[s.r.IntN(len(s.drawn))]
	if n := len(s.treeLevels); n > 0 && s.chance(500) {
		name = s.treeLevels[n-1]
	}
	if s.rates[name].Keys {
		return s.keyOf(name)
	}
	return name
}

// keyOf draws a key of a template.
func (s *sim) keyOf(template string) string {
	return fmt.Sprintf("%s/%d", template, s.r.IntN(mostKeys))
}

// keysOf are all keys that are drawn of a template.
func keysOf(template string) (names []string) {
	for i := range mostKeys {
		names = append(names, fmt.Sprintf("%s/%d", template, i))
	}
	return names
}

// drawKey names another request of the clients that draw.
func (s *sim) drawKey() attempt.Key {
	s.draws++
	key := attempt.KeyOf(fmt.Sprintf("draw-%d", s.draws))
	s.drawnKeys[key] = true
	return key
}

func (s *sim) drawOnce(big int) {
	key, once := s.drawKey(), s.chance(300)
	d := &draw{}
	for more := true; more; more = len(d.parts) < 4 && s.chance(100) {
		d.parts = append(d.parts, input.Part{Entity: s.drawnName(), Tokens: core.Tokens(1 + s.r.IntN(big))})
	}
	d.least = d.parts[0].Tokens
	wait := core.Tick(0)
	if s.chance(400) {
		wait = core.Tick(s.r.IntN(3000))
	}
	var in input.Input
	if len(d.parts) > 1 {
		in = &input.AcquireAll{Call: d, Request: key, Parts: d.parts, Wait: wait, Once: once}
	} else {
		a := &input.Acquire{Call: d, Request: key, Entity: d.parts[0].Entity, Tokens: d.parts[0].Tokens, Wait: wait, Once: once}
		if s.chance(300) {
			a.Least, d.least = 1, 1
		}
		s.reserving(d, a)
		in = a
	}
	n := s.nodes[s.someSite()]
	if n.up && !n.out && n.stale == nil {
		n.step(in)
	}
}

// drawsOf takes the answers to draws out of a batch.
func drawsOf(batch *core.Effects) (draws []core.Reply) {
	batch.Replies = slices.DeleteFunc(batch.Replies, func(r core.Reply) bool {
		_, ok := r.Call.(*draw)
		if ok {
			draws = append(draws, r)
		}
		return ok
	})
	return draws
}

// drew are the draws that a batch answers, to be judged.
func (o *observer) drew(n *node, draws []core.Reply, r *stored.Records, before map[string]int64) (judge []func()) {
	for i := range draws {
		d, a := draws[i].Call.(*draw), &draws[i].Answer
		if a.Code != answer.OK || d.back {
			continue
		}
		o.s.report.Draws++
		asked := core.Tokens(0)
		for _, p := range d.parts {
			asked += p.Tokens
		}
		if a.Tokens > asked || a.Tokens < d.least || len(d.parts) > 1 && a.Tokens != asked {
			o.s.fail(Rates, "%s grants %d tokens of %v", n.id, a.Tokens, d.parts)
			return nil
		}
		for _, p := range d.parts {
			// A batch with other entities does not tell of which entity a name had its tokens.
			unclear := r.Catalogue != nil && templateOf(p.Entity) != p.Entity || slices.Contains(r.Deleted, p.Entity)
			if p.Tokens = min(p.Tokens, a.Tokens); !unclear {
				judge = append(judge, o.drewOf(n, n.drained.entityOf(p.Entity), p.Entity, p.Tokens, before, d.reserves)...)
				judge = append(judge, o.drewAbove(n, p, r, before, d.reserves)...)
			}
		}
		if of, ttl := d.reserves, a.Lease().Remaining; of != nil {
			judge = append(judge, func() { o.s.reserved(n, of, ttl) })
		}
	}
	return judge
}

// drewOf are tokens of an entity, or of a key of it, that a draw has got, to be judged; in a
// lease if of is not nil.
func (o *observer) drewOf(n *node, base, name string, tokens core.Tokens, before map[string]int64, of *reservation) []func() {
	e, t := n.drained.Entities[base], o.s.rates[base]
	if t.None() {
		return o.allocated(n, base, tokens, of)
	}
	q := o.sequence(sequenceID{base, e.Generation})
	if t.Keys {
		o.s.report.Keys++
	}
	if t.Kind != rates.Window {
		g := flowing{from: n.drainedTo, until: o.s.now, tokens: tokens, site: n.i, of: of}
		return []func(){func() {
			of.reservesAt(q.id, t.Kind, 0)
			o.flows(q, name, &t, g)
		}}
	}
	if window := e.Rate.Window; before[base] == window || n.jumped < n.drainedTo && o.s.windowAt(base, n.drainedWall) >= window {
		return []func(){func() {
			of.reservesAt(q.id, t.Kind, window)
			o.grantedIn(q, name, window, tokens, n.i)
		}}
	}
	return nil
}

// windowsOf are the windows of the site's volatile rate quotas.
func (n *node) windowsOf() map[string]int64 {
	windows := make(map[string]int64, len(n.s.drawn))
	for _, name := range n.s.drawn {
		if e, found := n.drained.Entities[name]; found {
			windows[name] = e.Rate.Window
		}
	}
	return windows
}
