package explore

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
)

// The names of further acts of a drain under the any-subset variant.
const (
	actDeparts = "learns that it leaves"
	actClear   = "asks whether anything is under way with it"
)

// drained reports whether the last site is drained.
func (v *Star) drained() bool { return v.bounds.View == DrainView }

// out are the sites that this site knows to be out, written off or gone: star.Config.Lost
// of site/core names both.
func (n *starNode) out() losses {
	if n.gone && !n.variant.without[goneIsOut] {
		return n.lost | 1<<leaver
	}
	return n.lost
}

// knows tells the site's Config what the site knows.
func (n *starNode) knows() {
	n.variant.known[n.site], n.variant.aware[n.site] = n.out(), n.aware
}

// asks reports whether a site may be asked to take part, as roster.shares of site/core.
func (v *Star) asks(self int, site avantan.SiteID) bool {
	return !v.aware[self] || site != siteNames[leaver] || v.without[offersOfLeavers]
}

func (n *starNode) drainActs() []Act {
	if !n.variant.drained() {
		return nil
	}
	acts := n.handActs(&n.live.estate, n.live.leaves, len(n.live.offers), n.isClear())
	switch {
	case n.site != leaver:
	case !n.live.leaves:
		acts = append(acts, Act{actDeparts, Free})
	case n.rested():
		acts = append(acts, Act{actClear, Free})
	}
	return acts
}

// rested reports whether a leaver has nothing left, as leaving.rests of site/core.
func (n *starNode) rested() bool {
	return n.empty(&n.live.estate, n.live.leaves, len(n.live.offers)) && len(n.machine.State().Slices) == 0
}

// isClear reports whether both other sites have told that nothing is under way with the
// leaver.
func (n *starNode) isClear() bool {
	return n.rested() && (n.clear == 1<<leaver-1 || n.variant.without[othersAreClear])
}

// underWay reports whether an instance with the leaver is open here, as leaving.underWay of
// site/core.
func (n *starNode) underWay() bool {
	slices := n.machine.State().Slices
	for i := range slices {
		if slices[i].ID.Leader == siteNames[leaver] {
			return true
		}
		if v := slices[i].Value; v != nil {
			if _, in := v.Of(siteNames[leaver]); in {
				return true
			}
		}
	}
	return false
}

// askClear and isClear are questions and answers about what is under way.
type (
	askClear   struct{}
	tellsClear struct{}
)

// drain lets an act of a drain happen.
func (n *starNode) drain(act string) Step {
	var step Step
	switch act {
	case actDeparts:
		n.live.leaves, n.disk.leaves = true, true
	case actClear:
		for to := range leaver {
			step.Send = append(step.Send, Packet{From: leaver, To: to, Key: fmt.Sprintf("clear? %d", to), Body: &askClear{}, Text: "whether anything is under way"})
		}
	case actHandOver:
		return n.hands(handoff.Input{Begin: siteNames[heir]})
	case actBequeath:
		n.hand.Retime(0)
		return n.hands(handoff.Input{})
	case actEndLease:
		n.live.endLease()
		n.disk.endLease()
	default:
		step.Send = sayEmpty()
	}
	return step
}

// handedIn hands the site a message of a drain.
func (n *starNode) handedIn(p *Packet) Step {
	switch m := p.Body.(type) {
	case *handoff.Message:
		return n.hands(handoff.Input{Receive: m})
	case *askClear:
		n.aware = true
		if n.underWay() {
			return Step{}
		}
		return Step{Send: []Packet{{From: n.site, To: leaver, Key: fmt.Sprintf("clear %d", n.site), Body: &tellsClear{}, Text: "that nothing is under way"}}}
	case *tellsClear:
		n.clear |= 1 << p.From
		return Step{}
	case *emptied:
		n.gone = true
		return n.hands(handoff.Input{Lost: siteNames[leaver]})
	default:
		panic(fmt.Sprintf("explore: a message of type %T", m))
	}
}

// hands takes a step of the site's handoffs.
func (n *starNode) hands(in handoff.Input) Step {
	var step Step
	n.handAt(1, in, &step)
	n.hand.Retime(far)
	n.close(&step)
	return step
}

// handAt takes a step of the handoffs at a time, and does the work of the caller.
func (n *starNode) handAt(now avantan.Tick, in handoff.Input, step *Step) {
	persist, list := n.handStep(now, in, step)
	if persist {
		old := n.state
		n.persist(&old, step)
	}
	n.tell(list, step)
}

// holdings are what the sites have. A site that leaves grants nothing.
func (c *starChecker) holdings() *[Sites]holding {
	var all [Sites]holding
	for i := range c.views {
		w := &c.views[i]
		all[i] = holding{w.site, &w.books.estate, w.hand, !w.books.leaves}
	}
	return &all
}
