package explore

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
)

// healSteps bounds the steps until a healed state is at rest.
const healSteps = 5000

// Heal implements Variant. All messages on their way are lost: the worst case. From now
// on every message arrives, in the order of sending. A lost site is silent, and all others
// know of the loss. A leaver goes on handing over, and asks for what it has missed.
func (v *Majority) Heal(nodes [Sites]Node) []Violation {
	for i, cfg := range v.cfg {
		cfg.Rand.(*random).state = uint64(i)
		v.heirs[i].Rand.(*random).state = uint64(i)
	}
	var all [Sites]*majority
	var lost losses
	for _, n := range nodes {
		lost |= n.(*majority).lost
	}
	for i, n := range nodes {
		n := n.Clone().(*majority)
		n.machine.Retime(func(avantan.Timer, avantan.Tick) avantan.Tick { return 1 + avantan.Tick(i) })
		n.hand.Retime(1 + avantan.Tick(i))
		if !lost.has(i) {
			n.lost = lost
		}
		all[i], nodes[i] = n, n
	}
	h := &healing{all: all, lost: lost, now: 1}
	for range healSteps {
		if !h.next() {
			return v.rested(nodes, lost)
		}
		if h.step.Broken != nil {
			return h.step.Broken
		}
	}
	return []Violation{{Liveness, fmt.Sprintf("not at rest after %d steps", healSteps)}}
}

// healing is a run of healed sites.
type healing struct {
	all  [Sites]*majority
	lost losses
	now  avantan.Tick
	// step collects the messages on their way, and what is broken.
	step Step
	// asked says that the leaver has asked for what it has missed, since its last step.
	asked bool
}

// next lets the next message arrive, or the next time-out fire. It reports false if there
// is none.
func (h *healing) next() bool {
	if len(h.step.Send) > 0 {
		p := h.step.Send[0]
		h.step.Send = h.step.Send[1:]
		n := h.all[p.To]
		if h.lost.has(p.To) || n.outside(p.From) {
			return true
		}
		h.asked = h.asked && p.To != leaver
		switch m := p.Body.(type) {
		case *avantan.Message:
			n.healAt(h.now, avantan.Input{Receive: m}, &h.step)
		case *handoff.Message:
			n.handAt(h.now, handoff.Input{Receive: m}, &h.step)
		case *emptied:
			n.gone = true
			n.handAt(h.now, handoff.Input{Lost: siteNames[leaver]}, &h.step)
		}
		return true
	}
	var next *majority
	var at avantan.Tick
	hands := false
	for i, o := range h.all {
		if h.lost.has(i) {
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
		next.healAt(h.now, avantan.Input{}, &h.step)
	}
	return true
}

// leaves lets a leaver take its next step, once nothing else is left to do.
func (h *healing) leaves() bool {
	n := h.all[leaver]
	switch {
	case !n.variant.drained() || h.all[0].gone && h.all[heir].gone:
		return false
	case n.mayBequeath(&n.live.estate, n.learns(), len(n.live.offers)):
		n.handAt(h.now, handoff.Input{Begin: siteNames[heir]}, &h.step)
	case n.empty(&n.live.estate, n.learns(), len(n.live.offers)):
		h.step.Send = append(h.step.Send, sayEmpty()...)
	case !h.asked:
		h.asked = true
		for _, site := range siteNames[:leaver] {
			n.healAt(h.now, avantan.Input{Refresh: site}, &h.step)
		}
	default:
		return false
	}
	return true
}

// healAt takes a step of the Machine at a time.
func (n *majority) healAt(now avantan.Tick, in avantan.Input, step *Step) {
	out := n.machine.Step(now, in)
	if out.Err != nil {
		step.Broken = append(step.Broken, Violation{SelfCheck, fmt.Sprintf("%s: %v", n.live.site, out.Err)})
	}
	step.Broken = append(step.Broken, n.live.broken...)
	if out.Persist {
		n.persist()
	}
	for i := range out.Messages {
		m := &out.Messages[i]
		step.Send = append(step.Send, Packet{From: n.site, To: n.variant.index(m.To), Body: m})
	}
}

// rested checks sites that wait for nothing any more.
func (v *Majority) rested(nodes [Sites]Node, lost losses) []Violation {
	for i, n := range nodes {
		n := n.(*majority)
		open := n.machine.Open() || n.machine.State().Pledge != nil || len(n.live.offers) > 0 || n.hand.Open()
		if open && !lost.has(i) {
			return []Violation{{Liveness, fmt.Sprintf("%s waits for nothing, but %v", n.live.site, n)}}
		}
		if out := n.variant.drained() && i == leaver && n.learns(); out && (n.live.left != 0 || n.live.net != 0) {
			return []Violation{{Liveness, fmt.Sprintf("%s holds something for ever: %v", n.live.site, n)}}
		}
	}
	return v.Check(nodes)
}
