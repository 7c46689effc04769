package sim

import (
	"fmt"
	"slices"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// Volatile rate quotas have clients of their own: their grants are in no record, so they are
// judged by the answers alone. A client asks a site, once, and takes the answer.

// draw is an acquire of a volatile rate quota.
type draw struct {
	entity string
	tokens core.Tokens
}

// startDrawing starts the clients of volatile rate quotas.
func (s *sim) startDrawing() {
	if len(s.drawn) == 0 {
		return
	}
	for _, name := range s.drawn {
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
		}
		s.drawNext(pause, big)
	})
}

func (s *sim) drawOnce(big int) {
	s.draws++
	d := &draw{entity: s.drawn[s.r.IntN(len(s.drawn))], tokens: core.Tokens(1 + s.r.IntN(big))}
	in := &input.Acquire{Call: d, Request: attempt.KeyOf(fmt.Sprintf("draw-%d", s.draws)), Entity: d.entity, Tokens: d.tokens}
	if s.chance(300) {
		in.Least = 1
	}
	if s.chance(400) {
		in.Wait = core.Tick(s.r.IntN(3000))
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
		if a.Code != answer.OK || slices.Contains(r.Deleted, d.entity) {
			continue
		}
		o.s.report.Draws++
		if a.Tokens < 1 || a.Tokens > d.tokens {
			o.s.fail(Rates, "%s grants %d of %d tokens of %q", n.id, a.Tokens, d.tokens, d.entity)
			return nil
		}
		e, t := n.drained.Entities[d.entity], o.s.rates[d.entity]
		id := sequenceID{d.entity, e.Generation}
		tokens, g := a.Tokens, flowing{n.drainedTo, o.s.now, a.Tokens}
		if t.Kind != rates.Window {
			judge = append(judge, func() { o.flows(id, &t, g) })
		} else if window := e.Rate.Window; before[d.entity] == window || n.jumped < n.drainedTo && o.s.windowAt(d.entity, n.drainedWall) >= window {
			judge = append(judge, func() { o.grantedIn(o.sequence(id), window, tokens) })
		}
	}
	return judge
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
