package explore

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
)

// drained reports whether the last site is drained.
func (v *Majority) drained() bool { return v.bounds.View == DrainView }

// learns reports whether the site votes no more.
func (n *majority) learns() bool { return !n.live.view.Has(n.live.site) }

// grants reports whether the site serves clients that acquire.
func (n *majority) grants() bool {
	return !n.variant.drained() || !n.learns()
}

// takesReleases reports whether the site takes tokens back that it has not leased out.
func (n *majority) takesReleases() bool { return !n.variant.drained() || !n.learns() }

func (n *majority) drainActs() []Act {
	if !n.variant.drained() {
		return nil
	}
	return n.handActs(&n.live.estate, n.learns(), len(n.live.offers), true)
}

// drain lets an act of a drain happen.
func (n *majority) drain(act string) Step {
	switch act {
	case actHandOver:
		return n.hands(handoff.Input{Begin: siteNames[heir]})
	case actBequeath:
		n.hand.Retime(0)
		return n.hands(handoff.Input{})
	case actEndLease:
		n.live.endLease()
		n.disk.endLease()
		return Step{}
	default:
		return Step{Send: sayEmpty()}
	}
}

// handedIn hands the site a message of a drain.
func (n *majority) handedIn(p *Packet) Step {
	switch m := p.Body.(type) {
	case *handoff.Message:
		return n.hands(handoff.Input{Receive: m})
	case *emptied:
		n.gone = true
		return n.hands(handoff.Input{Lost: siteNames[leaver]})
	default:
		panic(fmt.Sprintf("explore: a message of type %T", m))
	}
}

// hands takes a step of the site's handoffs.
func (n *majority) hands(in handoff.Input) Step {
	var step Step
	n.handAt(1, in, &step)
	n.hand.Retime(far)
	step.Broken = append(step.Broken, n.live.broken...)
	n.live.broken = nil
	return step
}

// handAt takes a step of the handoffs at a time, and does the work of the caller.
func (n *majority) handAt(now avantan.Tick, in handoff.Input, step *Step) {
	persist, list := n.handStep(now, in, step)
	if persist {
		n.persist()
	}
	n.tell(list, step)
}

// holdings are what the sites have. A site that votes no more grants nothing.
func (c *checker) holdings() *[Sites]holding {
	var all [Sites]holding
	for i := range c.views {
		w := &c.views[i]
		grants := !c.drained() || w.books.view.Has(w.site)
		all[i] = holding{w.site, &w.books.estate, w.hand, grants}
	}
	return &all
}
