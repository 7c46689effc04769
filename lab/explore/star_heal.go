package explore

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/star"
)

// Heal implements Variant. All messages on their way are lost: the worst case. From now
// on every message arrives, in the order of sending. A lost site is silent, and all others
// know of the loss. A leaver leaves; if it is out for one member, it is for the other.
func (v *Star) Heal(nodes [Sites]Node) []Violation {
	for i, cfg := range v.cfg {
		cfg.Rand.(*random).state, v.heirs[i].Rand.(*random).state = uint64(i), uint64(i)
	}
	h := starHealing{lost: v.lost(nodes), now: 1}
	for i, n := range nodes {
		n := n.Clone().(*starNode)
		if !h.lost.has(i) {
			n.lost = h.lost
		}
		n.machine.Retime(func(star.Timer, star.ID, avantan.Tick) avantan.Tick { return 1 + avantan.Tick(i) })
		n.hand.Retime(1 + avantan.Tick(i))
		h.all[i], nodes[i] = n, n
	}
	if h.all[0].gone || h.all[heir].gone {
		h.retire()
	}
	for range healSteps {
		if !h.next() {
			return v.rested(nodes, h.lost)
		}
		if h.step.Broken != nil {
			return h.step.Broken
		}
	}
	return []Violation{{Liveness, fmt.Sprintf("not at rest after %d steps", healSteps)}}
}

// lost are the losses that any of the sites knows.
func (v *Star) lost(nodes [Sites]Node) (all losses) {
	for _, n := range nodes {
		all |= n.(*starNode).lost
	}
	return all
}

// starHealing is a run of healed sites.
type starHealing struct {
	all  [Sites]*starNode
	lost losses
	now  avantan.Tick
	// step collects the messages on their way, and what is broken.
	step Step
}

// retire has both members know that the leaver is out.
func (h *starHealing) retire() {
	for _, n := range h.all[:leaver] {
		n.gone = true
		n.handAt(h.now, handoff.Input{Lost: siteNames[leaver]}, &h.step)
	}
}

// next lets the next message arrive, or the next time-out fire. It reports false if there
// is none.
func (h *starHealing) next() bool {
	if len(h.step.Send) > 0 {
		p := h.step.Send[0]
		h.step.Send = h.step.Send[1:]
		n := h.all[p.To]
		if h.lost.has(p.To) || n.gone && p.From == leaver {
			return true
		}
		switch m := p.Body.(type) {
		case *star.Message:
			n.heal(h.now, star.Input{Receive: m}, &h.step)
		case *handoff.Message:
			n.handAt(h.now, handoff.Input{Receive: m}, &h.step)
		default:
			step := n.handedIn(&p)
			h.step.Send, h.step.Broken = append(h.step.Send, step.Send...), append(h.step.Broken, step.Broken...)
		}
		return true
	}
	var next *starNode
	var at avantan.Tick
	hands := false
	for i, o := range h.all {
		if h.lost.has(i) || i == leaver && h.all[0].gone {
			continue
		}
		if t, ok := o.machine.WakeAt(); ok && (next == nil || t < at) {
			next, at, hands = o, t, false
		}
		if t, ok := o.hand.WakeAt(); ok && (next == nil || t < at) {
			next, at, hands = o, t, true
		}
	}
	switch {
	case next == nil:
		return h.leaves()
	case hands:
		h.now = max(h.now, at)
		next.handAt(h.now, handoff.Input{}, &h.step)
	default:
		h.now = max(h.now, at)
		next.heal(h.now, star.Input{}, &h.step)
	}
	return true
}

// leaves lets a leaver take its next step, once nothing else is left to do.
func (h *starHealing) leaves() bool {
	n := h.all[leaver]
	switch {
	case !n.variant.drained() || h.all[0].gone:
		return false
	case !n.live.leaves:
		n.drain(actDeparts)
	case n.mayBequeath(&n.live.estate, true, len(n.live.offers)):
		n.handAt(h.now, handoff.Input{Begin: siteNames[heir]}, &h.step)
	case n.isClear():
		h.retire()
	case n.rested():
		asks := n.drain(actClear).Send
		for i := range asks {
			if h.all[asks[i].To].underWay() {
				return false
			}
		}
		h.step.Send = append(h.step.Send, asks...)
	default:
		return false
	}
	return true
}

// heal takes a step of the Machine at time now.
func (n *starNode) heal(now avantan.Tick, in star.Input, step *Step) {
	n.knows()
	out := n.machine.Step(now, in)
	if out.Err != nil {
		n.broke(step, SelfCheck, "%v", out.Err)
	}
	if out.Persist {
		old := n.state
		n.persist(&old, step)
		n.conclude()
	}
	step.Broken = append(step.Broken, n.live.broken...)
	for i := range out.Messages {
		m := &out.Messages[i]
		to := n.variant.index(m.To)
		if n.gone && to == leaver {
			continue
		}
		step.Send = append(step.Send, Packet{From: n.site, To: to, Body: m})
	}
}

// rested checks sites that wait for nothing any more: all committed instances must be
// forgotten too.
func (v *Star) rested(nodes [Sites]Node, lost losses) []Violation {
	for i, n := range nodes {
		n := n.(*starNode)
		if lost.has(i) || n.site == leaver && nodes[heir].(*starNode).gone {
			continue
		}
		if n.machine.Open() || len(n.machine.State().Slices) > 0 || len(n.live.offers) > 0 {
			return []Violation{{Liveness, fmt.Sprintf("%s waits for nothing, but %v", n.live.site, n)}}
		}
	}
	if last := nodes[leaver].(*starNode); v.drained() && (last.live.holds() || !nodes[heir].(*starNode).gone) {
		return []Violation{{Liveness, fmt.Sprintf("%s does not get away: %v", last.live.site, last)}}
	}
	return v.Check(nodes)
}
