package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/partitions"
)

// parts are the partitions of a site that has some. The site's own lots decide their next
// steps, and where entities belong.
type parts struct {
	*partitions.Partitions
	lots  *rand.Rand
	order []int
	// passed are the inputs that no partition serves, to step the core with. stepped says
	// that the core was stepped with such an input since partitions were last run.
	passed  []input.Input
	stepped bool
	// assigned says that entities were assigned since the last switch.
	assigned bool
	// split counts the requests served from slots of entities that are whole again.
	split uint64
	// due says that a later run of the queued inputs is under way.
	due bool
}

// parted reports whether sites of a run may have partitions: for some seeds none has.
func (s *sim) parted() bool { return !s.byHand && s.o.Seed%6 != 4 }

// divide gives a site that starts its partitions, or none.
func (n *node) divide() {
	n.parts = nil
	if !n.s.parted() {
		return
	}
	lots := rand.New(rand.NewPCG(n.s.o.Seed^0x9a27, uint64(n.i)<<32|uint64(n.life)))
	count := []int{0, 1, 2, 2, 3, 3, 4, 4}[lots.IntN(8)]
	if count == 0 {
		return
	}
	p := &parts{lots: lots}
	for i := range count {
		p.order = append(p.order, i)
	}
	var err error
	p.Partitions, err = partitions.New(partitions.Options{
		Core: n.core, Count: count, Mode: sched.Manual, Place: sched.Placement(lots.IntN(int(sched.Together) + 1)),
		Clock: func() time.Duration { return time.Duration(n.s.now) * time.Microsecond },
		Rand:  lots.Uint64,
		Pass:  func(in input.Input) { p.passed = append(p.passed, in) },
		Now:   n.clocked,
	})
	if err != nil {
		n.s.fail(Sound, "%s: %w", n.id, err)
		return
	}
	n.parts = p
}

// clocked returns the time, and the site goes by it from then on.
func (n *node) clocked() input.Now {
	now := n.time()
	n.calendar, n.fed = max(n.calendar, now.Wall), n.s.now
	n.shown = max(n.shown, now.Wall)
	return now
}

// alone does something with the core while no partition runs.
func (n *node) alone(fn func()) {
	if n.parts == nil {
		fn()
		return
	}
	n.parts.Alone(fn)
}

// pending reports whether there is something to drain.
func (n *node) pending() (some bool) {
	if n.parts != nil && n.parts.Gathered() > 0 {
		return true
	}
	n.alone(func() { some = n.core.Pending() })
	return some
}

// offer hands an input to the partitions and has them run, and reports whether they took
// it. The core is stepped with inputs that they do not serve. An input that lingers may
// stay queued.
func (n *node) offer(in input.Input, lingers bool) bool {
	p := n.parts
	if p == nil || !core.Servable(in) || p.lots.IntN(20) == 0 {
		return false
	}
	n.rearrange()
	if !p.Serve(n.clocked(), in) {
		return false
	}
	p.stepped = false
	all := !lingers || p.lots.IntN(4) > 0
	n.serve(all)
	if !all || !p.stepped && p.lots.IntN(3) == 0 {
		n.serveLater()
		if !p.stepped {
			return true
		}
	}
	n.settle()
	return true
}

// serveLater has all queued inputs served in a while, and drained.
func (n *node) serveLater() {
	p := n.parts
	if p.due {
		return
	}
	p.due = true
	n.s.after(micros(p.lots.IntN(100))*millisecond, func() {
		n.awake(func() {
			if !n.up || n.parts != p {
				return
			}
			p.due = false
			n.serve(true)
			n.settle()
		})
	})
}

// serve runs the partitions in random order: until nothing is queued, or for a while.
func (n *node) serve(all bool) {
	p := n.parts
	for idle, ends := false, false; !idle && !ends; {
		idle = true
		p.lots.Shuffle(len(p.order), func(i, j int) { p.order[i], p.order[j] = p.order[j], p.order[i] })
		for _, i := range p.order {
			if o := p.Step(i); o == sched.Ran {
				idle = false
			}
			if len(p.passed) > 0 && p.lots.IntN(2) == 0 {
				n.passOn()
			}
			ends = ends || !all && p.lots.IntN(4) == 0
		}
	}
	if all {
		n.passOn()
	}
	n.slotsSound()
}

// passOn steps the core with the inputs that no partition serves.
func (n *node) passOn() {
	p := n.parts
	for _, in := range p.passed {
		p.stepped = true
		if c := callOf(in); c.op.kind.acquires() && !c.mutant {
			n.begin(c, in)
		} else {
			n.feed(in)
		}
	}
	clear(p.passed)
	p.passed = p.passed[:0]
}

// callOf returns the call of a request that a partition may serve.
func callOf(in input.Input) *call {
	switch in := in.(type) {
	case *input.Acquire:
		return in.Call.(*call)
	case *input.AcquireAll:
		return in.Call.(*call)
	default:
		return in.(*input.Release).Call.(*call)
	}
}

// ahead runs inputs queued ahead of another input, or some of them, or leaves them there.
// Every request comes before its cancel, and before the site stops.
func (n *node) ahead(in input.Input) {
	p := n.parts
	if p == nil {
		return
	}
	n.rearrange()
	switch in.(type) {
	case *input.Cancel, input.Stop:
		n.serve(true)
	default:
		if p.lots.IntN(4) == 0 {
			n.serve(p.lots.IntN(2) == 0)
		}
	}
}

// rearrange has entities belong elsewhere now and then, and splits some.
func (n *node) rearrange() {
	p := n.parts
	draw := p.lots.IntN(40)
	if draw > 6 {
		return
	}
	name := n.s.admin.names[p.lots.IntN(len(n.s.admin.names))]
	top := p.lots.IntN(2) == 0
	switch draw {
	case 0, 1, 2:
		if p.Settled() {
			n.assign(name, top)
		}
	case 3:
		if p.assigned && p.Settled() {
			p.Switch()
			p.assigned = false
			n.s.report.Repartitions++
		}
	default:
		above := n.drained.chain(name)
		if top && len(above) > 0 {
			name = above[len(above)-1]
		}
		root := len(above) > 1 && name == above[len(above)-1]
		n.split(name, p.lots.IntN(4) == 0 || root && p.lots.IntN(2) == 0)
	}
}

// assign has an entity, or all of its tree, belong to a partition from the next switch
// on.
func (n *node) assign(name string, tree bool) {
	p := n.parts
	names := []string{name}
	if above := n.drained.chain(name); tree && len(above) > 0 {
		names = n.drained.subtree(above[len(above)-1])
	}
	to := p.lots.IntN(len(p.order))
	for _, name := range names {
		if err := p.Assign(name, to); err != nil {
			n.s.fail(Sound, "%s: %w", n.id, err)
		}
	}
	p.assigned = true
}

// split splits an entity, or makes it whole.
func (n *node) split(name string, on bool) {
	p := n.parts
	p.Alone(func() {
		served := slotsServed(n.core)
		if !p.Split(name, on) {
			return
		}
		if on {
			n.s.report.Splits++
			return
		}
		p.split += served - slotsServed(n.core)
	})
}

func slotsServed(c *core.Core) (served uint64) {
	for _, st := range c.Splits() {
		served += st.Served
	}
	return served
}

// slotsSound checks that no slot of a split entity has less than nothing.
func (n *node) slotsSound() {
	for _, st := range n.core.Splits() {
		if slices.ContainsFunc(st.Left, func(left core.Tokens) bool { return left < 0 }) {
			n.s.fail(Bounds, "%s: slots of %q: %v", n.id, st.Name, st.Left)
		}
	}
}

// countParts takes the work of the partitions into the report. Their queued inputs are
// lost.
func (n *node) countParts() {
	p := n.parts
	if p == nil {
		return
	}
	n.parts = nil
	st, r := p.Stats(), &n.s.report
	r.Parted += int(st.Served)
	r.PartedAcross += int(st.Cross)
	r.PartedPassed += int(st.Passed)
	r.FromSlots += int(p.split + slotsServed(n.core))
}
