package explore

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
)

// Heal implements Variant. All messages on their way are lost: the worst case. From now
// on every message arrives, in the order of sending. A lost site is silent, and all others
// know of the loss.
func (v *Star) Heal(nodes [Sites]Node) []Violation {
	for i, cfg := range v.cfg {
		cfg.Rand.(*random).state = uint64(i)
	}
	var all [Sites]*starNode
	lost := v.lost(nodes)
	for i, n := range nodes {
		n := n.Clone().(*starNode)
		if !lost.has(i) {
			n.lost = lost
		}
		n.machine.Retime(func(star.Timer, star.ID, avantan.Tick) avantan.Tick { return 1 + avantan.Tick(i) })
		all[i], nodes[i] = n, n
	}
	var queue []star.Message
	now := avantan.Tick(1)
	for range healSteps {
		var n *starNode
		var in star.Input
		if len(queue) > 0 {
			m := queue[0]
			queue = queue[1:]
			if lost.has(v.index(m.To)) {
				continue
			}
			n, in.Receive = all[v.index(m.To)], &m
		} else {
			var at avantan.Tick
			for i, o := range all {
				if t, ok := o.machine.WakeAt(); ok && !lost.has(i) && (n == nil || t < at) {
					n, at = o, t
				}
			}
			if n == nil {
				return v.rested(nodes, lost)
			}
			now = max(now, at)
		}
		var step Step
		queue = append(queue, n.heal(now, in, &step)...)
		if step.Broken != nil {
			return step.Broken
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

// heal takes a step of the Machine at time now.
func (n *starNode) heal(now avantan.Tick, in star.Input, step *Step) []star.Message {
	n.variant.known[n.site] = n.lost
	out := n.machine.Step(now, in)
	if out.Err != nil {
		n.broke(step, SelfCheck, "%v", out.Err)
	}
	if out.Persist {
		old := n.state
		n.state, n.disk = n.machine.State().Clone(), n.live.clone()
		n.remember(&old, step)
		n.conclude()
	}
	step.Broken = append(step.Broken, n.live.broken...)
	return out.Messages
}

// rested checks sites that wait for nothing any more: all committed instances must be
// forgotten too.
func (v *Star) rested(nodes [Sites]Node, lost losses) []Violation {
	for i, n := range nodes {
		n := n.(*starNode)
		if lost.has(i) {
			continue
		}
		if n.machine.Open() || len(n.machine.State().Slices) > 0 || len(n.live.offers) > 0 {
			return []Violation{{Liveness, fmt.Sprintf("%s waits for nothing, but %v", n.live.site, n)}}
		}
	}
	return v.Check(nodes)
}
