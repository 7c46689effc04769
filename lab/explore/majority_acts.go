package explore

import (
	"slices"

	"github.com/samya-db/samya/avantan"
)

// The names of acts that are no time-outs.
const (
	actBegin   = "begins an instance"
	actCrash   = "crashes and starts again"
	actAcquire = "grants a client one token"
	actRelease = "gets one token back from a client"
	actRefresh = "asks for what it has missed"
)

// timerAct is a timer that fires so many times, nothing happening in between.
type timerAct struct {
	timer avantan.Timer
	times int
	name  string
}

var timerActs = []timerAct{
	{avantan.TimerInstance, 1, "times out"},
	{avantan.TimerInstance, 2, "times out twice"},
	{avantan.TimerAsk, 1, "has waited for a decision"},
	{avantan.TimerRetry, 1, "has backed off"},
}

// Acts implements Node.
func (n *majority) Acts() []Act {
	var acts []Act
	b := n.variant.bounds
	if n.leads() && !n.machine.Open() && !n.machine.Waits() && int(n.machine.State().Applied) < b.Instances {
		acts = append(acts, Act{actBegin, Free})
	}
	for _, t := range timerActs {
		if n.machine.Running(t.timer) {
			acts = append(acts, Act{t.name, Free})
		}
	}
	if n.served() {
		if n.grants() && (b.Anywhere || n.site == 0) && n.live.left >= 1 {
			acts = append(acts, Act{actAcquire, Acquire})
		}
		if n.takesReleases() && (b.Anywhere || n.site == Sites-1) {
			acts = append(acts, Act{actRelease, Release})
		}
	}
	acts = append(acts, lossActs(&b, n.site, n.lost)...)
	acts = append(acts, n.drainActs()...)
	return append(acts, Act{actRefresh, Free}, Act{actCrash, Crash})
}

// served reports whether a client's request is worth searching now: it changes
// left and net by opposite amounts, so it makes a difference only to an offer that is
// made later. While an offer is out it could as well come just after.
func (n *majority) served() bool {
	return n.variant.bounds.Plain || n.variant.drained() || len(n.live.offers) == 0 && int(n.machine.State().Applied) < n.variant.bounds.Instances
}

func (n *majority) leads() bool { return n.site < n.variant.bounds.Leaders }

// Do implements Node.
func (n *majority) Do(i int) Step {
	switch act := n.Acts()[i].Name; act {
	case actBegin:
		// The leaders want different things, lest the values of two leaders be equal.
		p := avantan.Proposal{Press: avantan.PressAll}
		if n.site == 0 {
			p = avantan.Proposal{Change: n.change()}
		}
		return n.inputs(avantan.Input{Begin: &p})
	case actAcquire, actRelease:
		d := avantan.Tokens(1)
		if act == actRelease {
			d = -1
		}
		for _, b := range []*books{n.live, n.disk} {
			b.serve(d)
		}
		return Step{}
	case actCrash:
		if n.variant.damage != nil {
			n.variant.damage(&n.state)
		}
		n.live = n.disk.clone()
		n.machine = avantan.New(n.variant.cfg[n.site], n.live, n.state.Clone())
		n.handAgain(&n.live.estate)
		// The first Step of a restored Machine sets its timers, whatever the input.
		return n.inputs(avantan.Input{})
	case actRefresh:
		var ins []avantan.Input
		for _, name := range n.variant.names {
			if name != n.live.site && !n.outside(n.variant.index(name)) {
				ins = append(ins, avantan.Input{Refresh: name})
			}
		}
		return n.inputs(ins...)
	case actHandOver, actBequeath, actEndLease, actLeaves:
		return n.drain(act)
	default:
		if lost, yes := lossNamed(act); yes {
			n.lost |= 1 << lost
			return Step{Send: lossNews(n.site, lost)}
		}
		i := slices.IndexFunc(timerActs, func(t timerAct) bool { return t.name == act })
		n.due = timerActs[i].timer
		return n.inputs(make([]avantan.Input, timerActs[i].times)...)
	}
}

// fire makes a timer due, or none. No back-off keeps an instance from being
// begun.
func (n *majority) fire(timer avantan.Timer) {
	n.machine.Retime(func(t avantan.Timer, _ avantan.Tick) avantan.Tick {
		if t == timer || t == avantan.TimerRetry && !n.machine.Waits() {
			return 0
		}
		return far
	})
}

// Deliver implements Node.
func (n *majority) Deliver(p *Packet) Step {
	if n.outside(p.From) && !n.variant.without[hearsNoneThatIsOut] {
		return Step{}
	}
	switch m := p.Body.(type) {
	case *avantan.Message:
		return n.inputs(avantan.Input{Receive: m})
	case *writtenOff:
		n.lost |= 1 << m.site
		return Step{}
	default:
		return n.handedIn(p)
	}
}

// outside reports whether this site knows that another is out for good: it hears that site
// no more.
func (n *majority) outside(site int) bool { return n.lost.has(site) || n.gone && site == leaver }
