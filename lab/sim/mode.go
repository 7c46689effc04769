package sim

import (
	"cmp"
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/policy"
	"github.com/samya-db/samya/site/core/stored"
)

// Switching is the mode of a run that starts under protocols picked by the seed. The
// administrator switches the protocols all the time.
const Switching = "switch"

// Modes are the modes of a run: all protocols, and Switching.
func Modes() []string { return append(policy.ProtocolNames(), Switching) }

// switcher is the administrator of the protocol mode.
type switcher struct {
	s *sim
	// first are the protocols that sites are configured for: the same for all, or
	// several.
	first []string
	// pause is how many milliseconds lie between two switches on average.
	pause int
}

func (s *sim) newSwitcher() *switcher {
	names := policy.ProtocolNames()
	w := &switcher{s: s, first: names, pause: 1000 + s.r.IntN(12_000)}
	if !s.chance(300) {
		w.first = []string{names[s.r.IntN(len(names))]}
	}
	return w
}

// configured returns the protocol that the next site is configured for.
func (s *sim) configured() string {
	if s.switcher == nil {
		return s.o.Protocol
	}
	return s.switcher.first[s.r.IntN(len(s.switcher.first))]
}

// next switches to some mode, perhaps the present mode.
func (w *switcher) next() {
	s := w.s
	names := policy.ProtocolNames()
	p := &op{
		kind: setMode, mode: names[s.r.IntN(len(names))], wait: micros(s.r.IntN(8000)) * millisecond, site: -1,
	}
	if s.chance(300) {
		// Mostly the version that there is, or will be once it gets there.
		p.expected = s.observe.catalogue.last().mode.Version + uint64(s.r.IntN(2))
	}
	s.issue(p)
}

// last returns the catalogue after all that is chosen.
func (m *catalogueModel) last() *catalogueState { return &m.states[len(m.states)-1] }

// settleMode applies a decided change of the mode, and returns its result.
func (m *catalogueModel) settleMode(next *catalogueState, ch *stored.CatalogueChange) catalogueResult {
	if ch.Generation != 0 && ch.Generation != next.mode.Version {
		return catalogueResult{code: answer.Mismatch, generation: next.mode.Version}
	}
	if next.mode.Protocol != ch.Mode {
		m.switches++
	}
	next.mode = answer.DecidedMode{Protocol: ch.Mode, Version: next.mode.Version + 1}
	return catalogueResult{generation: next.mode.Version}
}

// modeSet checks the mode in the answer to a change of the mode.
func (o *observer) modeSet(n *node, op *op, a *answer.Answer) {
	if a.Code == answer.OK && a.Mode().Decided.Protocol != op.mode {
		o.s.fail(Answers, "%s answers %v: mode %+v", n.id, op, a.Mode())
	}
}

// excuse is the longest time that a site goes by having found no majority, including its
// delay in showing an instance it began.
const excuse = 15 * second

// began checks that a site begins an instance as the mode in force there says. The site's
// knowledge at that moment is not known exactly: it gets the benefit of the doubt. Direct
// transfers are for the site's strategy alone to say.
func (n *node) began(e *event.Event) {
	if e.Variant == policy.Direct {
		if n.cfg.Strategy != transferStrategy {
			n.s.fail(ModeKept, "%s asks others for %q by its own, under strategy %q", n.id, e.Entity, n.cfg.Strategy)
		}
		return
	}
	after := n.status.Mode
	before := answer.Mode{Configured: after.Configured}
	if c := n.drained.Catalogue; c != nil {
		before.Decided = c.Mode
	}
	if after.Decided.Version > before.Decided.Version+1 {
		return
	}
	if !n.mayBegin(inForce(before), e) && !n.mayBegin(inForce(after), e) {
		n.s.fail(ModeKept, "%s begins an instance of %q for %q, variant %d; the mode is %+v, before %+v, reachable are %d",
			n.id, e.Entity, e.Trigger, e.Variant, after, before, n.told)
	}
}

// inForce is the protocol that a site has to go by.
func inForce(m answer.Mode) string { return cmp.Or(m.Decided.Protocol, m.Configured) }

func (n *node) mayBegin(protocol string, e *event.Event) bool {
	sure := n.told > 0 && n.toldAt <= n.drainedAt && !n.s.changing()
	quorum := n.told > len(n.s.names)/2
	switch {
	case e.Variant == policy.Majority && (n.changing(e.Entity) || n.owes(e.Entity)):
		return true
	case protocol == "majority":
		return e.Variant == policy.Majority
	case protocol == "star":
		return e.Variant == policy.Star
	case e.Variant == policy.Majority:
		return !sure || quorum
	}
	failed, ever := n.failed[e.Entity]
	return !sure || !quorum || ever && n.s.now < failed+excuse
}

// owes reports whether an entity may be in debt, as far as a site knows: only a majority
// has a debt paid.
func (n *node) owes(entity string) bool {
	some := func(debts []core.Tokens) bool {
		return slices.ContainsFunc(debts, func(owed core.Tokens) bool { return owed > 0 })
	}
	e, found := n.drained.Entities[entity]
	// A site may learn of an entity and of its debt in the same transaction.
	if slices.ContainsFunc(n.s.observe.created[entity], func(q *sequence) bool { return q.id.generation > e.Generation && some(q.debts) }) {
		return true
	}
	if !found {
		return false
	}
	q := n.s.observe.sequence(sequenceID{entity, e.Generation})
	from := min(int(e.Protocol.Applied), len(q.debts)) //nolint:gosec // instances of a run
	return e.Debt > 0 || some(q.debts[from:])
}

// changing reports whether a limit change of an entity, or a change that sets a surplus
// aside, may be under way at a site.
func (n *node) changing(entity string) bool {
	if r := n.drained.roster(); r != nil && r.Losses > 0 {
		// What the lost site held may be about to be written off.
		return true
	}
	if at, ok := n.found[entity]; ok && n.s.now < at+excuse {
		return true
	}
	for c := range n.calls {
		if (c.op.kind == setLimit || c.op.kind == reconcile) && c.op.entity == entity {
			return true
		}
	}
	return false
}

// tell notes a hint to a site about the others, and an order to stop.
func (n *node) tell(in input.Input) {
	switch in := in.(type) {
	case input.Reachable:
		n.told, n.toldAt = 1+len(in.Sites), n.s.events
	case input.Stop:
		n.stopping = true
	}
}

// sameMode checks that all sites go by the same decision, and that a site that knows of a
// decision goes by it.
func (s *sim) sameMode() {
	first := s.inside()[0]
	for _, n := range s.inside() {
		m := n.status.Mode
		if n.drained.mode() != first.drained.mode() {
			s.fail(Catalogue, "after healing, the mode of %s is %+v, of %s %+v", n.id, n.drained.mode(), first.id, first.drained.mode())
		}
		if m.Decided != n.drained.mode() {
			s.fail(Catalogue, "after healing, %s goes by %+v, stored is %+v", n.id, m, n.drained.mode())
		}
	}
}

// mode is the last decided mode that is stored.
func (m *Memory) mode() answer.DecidedMode {
	if m.Catalogue == nil {
		return answer.DecidedMode{}
	}
	return m.Catalogue.Mode
}
