package explore

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
)

// healSteps bounds the steps until a healed state is at rest.
const healSteps = 5000

// Heal implements Variant. All messages on their way are lost: the worst case. From now
// on every message arrives, in the order of sending.
func (v *Majority) Heal(nodes [Sites]Node) []Violation {
	for i, cfg := range v.cfg {
		cfg.Rand.(*random).state = uint64(i)
	}
	var all [Sites]*majority
	for i, n := range nodes {
		n := n.Clone().(*majority)
		n.machine.Retime(func(avantan.Timer, avantan.Tick) avantan.Tick { return 1 + avantan.Tick(i) })
		all[i], nodes[i] = n, n
	}
	var queue []avantan.Message
	now := avantan.Tick(1)
	for range healSteps {
		var n *majority
		var in avantan.Input
		if len(queue) > 0 {
			m := queue[0]
			queue = queue[1:]
			n, in.Receive = all[v.index(m.To)], &m
		} else {
			n = nil
			var at avantan.Tick
			for _, o := range all {
				if t, ok := o.machine.WakeAt(); ok && (n == nil || t < at) {
					n, at = o, t
				}
			}
			if n == nil {
				return v.rested(nodes)
			}
			now = max(now, at)
		}
		out := n.machine.Step(now, in)
		if out.Err != nil {
			return []Violation{{SelfCheck, fmt.Sprintf("%s: %v", n.live.site, out.Err)}}
		}
		if len(n.live.broken) > 0 {
			return n.live.broken
		}
		if out.Persist {
			n.state, n.disk = n.machine.State().Clone(), n.live.clone()
			n.remember()
		}
		queue = append(queue, out.Messages...)
	}
	return []Violation{{Liveness, fmt.Sprintf("not at rest after %d steps", healSteps)}}
}

// rested checks sites that wait for nothing any more.
func (v *Majority) rested(nodes [Sites]Node) []Violation {
	for _, n := range nodes {
		n := n.(*majority)
		if n.machine.Open() || n.machine.State().Pledge != nil || len(n.live.offers) > 0 {
			return []Violation{{Liveness, fmt.Sprintf("%s waits for nothing, but %v", n.live.site, n)}}
		}
	}
	return v.Check(nodes)
}
