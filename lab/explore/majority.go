package explore

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/redistribute"
)

// far is a time that never comes. All running timers are set to it: the search chooses
// the timer that fires next.
const far avantan.Tick = 1 << 40

// window, patience and backoff matter when states are healed only.
const (
	window   = 10
	patience = 30
	backoff  = 10
)

// Majority is Avantan[(n+1)/2] (Samya, section 4.3.1) as package avantan has
// it.
type Majority struct {
	bounds Bounds
	names  [Sites]avantan.SiteID
	cfg    [Sites]*avantan.Config
	values *values
	// acceptIDs and accepts number (instance, ballot, value) from 1.
	acceptIDs map[accept]int
	accepts   []accept
	// damage, in tests, changes the durable state at a restart.
	damage func(*avantan.State)
}

// accept says that a value was accepted in an instance at a ballot.
type accept struct {
	instance avantan.Instance
	ballot   avantan.Ballot
	value    int
}

// NewMajority returns the majority variant within bounds, which must be valid.
func NewMajority(b Bounds) *Majority {
	v := &Majority{
		bounds:    b,
		names:     [Sites]avantan.SiteID{"a", "b", "c"},
		values:    &values{ids: make(map[string]int)},
		acceptIDs: make(map[accept]int),
	}
	for i, self := range v.names {
		v.cfg[i] = &avantan.Config{
			Self: self, Window: window, Patience: patience,
			Backoff: backoff, MaxBackoff: 16 * backoff,
			Policy: redistribute.Demand, Rand: &random{uint64(i)},
		}
		if err := v.cfg[i].Validate(); err != nil {
			panic(err) // a constant
		}
	}
	return v
}

// random is splitmix64. It draws back-offs, and only healing waits for them.
type random struct{ state uint64 }

// Uint64N implements avantan.Rand.
func (r *random) Uint64N(n uint64) uint64 {
	r.state += 0x9e3779b97f4a7c15
	return mix(r.state) % n
}

// Name implements Variant.
func (v *Majority) Name() string { return "majority" }

// Sites implements Variant.
func (v *Majority) Sites() (names [Sites]string) {
	for i, n := range v.names {
		names[i] = string(n)
	}
	return names
}

// New implements Variant.
func (v *Majority) New(site int) Node {
	b := &books{
		site: v.names[site], left: avantan.Tokens(v.bounds.Tokens), limit: v.limit(), values: v.values, view: v.view(),
	}
	if site < v.bounds.Leaders {
		b.want = 2
	}
	return &majority{
		variant: v, site: site, live: b, disk: b.clone(),
		machine: avantan.New(v.cfg[site], b, avantan.State{}),
	}
}

// view is the view at the start.
func (v *Majority) view() avantan.View {
	if v.bounds.View == JoinView {
		return v.names[: Sites-1 : Sites-1]
	}
	return v.names[:]
}

// change is the change that the first site proposes: it raises the limit by 1, or changes
// the view.
func (v *Majority) change() []byte {
	change := []byte("1")
	switch v.bounds.View {
	case JoinView:
		change = fmt.Appendf(nil, "%sabc", viewPrefix)
	case LeaveView:
		change = fmt.Appendf(nil, "%sab", viewPrefix)
	}
	return change
}

// limit is the entity's limit at the start.
func (v *Majority) limit() avantan.Tokens { return Sites * avantan.Tokens(v.bounds.Tokens) }

// RequestsLast implements Variant: the tokens left show in offers.
func (v *Majority) RequestsLast() bool { return false }

func (v *Majority) index(id avantan.SiteID) int { return slices.Index(v.names[:], id) }

func (v *Majority) acceptID(a accept) int {
	id, ok := v.acceptIDs[a]
	if !ok {
		v.accepts = append(v.accepts, a)
		id = len(v.accepts)
		v.acceptIDs[a] = id
	}
	return id
}

// majority is a site.
type majority struct {
	variant *Majority
	site    int
	machine *avantan.Machine
	live    *books
	// state and disk are durable: the Machine's state and the books.
	state avantan.State
	disk  *books
	// ballots counts the elections begun in the present instance.
	ballots int
	// due is the timer that fires in the inputs that follow.
	due avantan.Timer
	// accepted are the numbers of all accepts that were ever durable here, in order.
	accepted []int
}

// Clone implements Node.
func (n *majority) Clone() Node {
	c := *n
	c.live, c.disk = n.live.clone(), n.disk.clone()
	c.machine = n.machine.Clone(c.live)
	c.state = n.state.Clone()
	c.accepted = slices.Clone(n.accepted)
	return &c
}

// Key implements Node.
func (n *majority) Key(dst []byte) []byte {
	dst = n.live.key(n.machine.Fingerprint(dst))
	dst = n.disk.key(n.state.Fingerprint(dst))
	dst = binary.AppendUvarint(dst, uint64(n.ballots))
	for _, a := range n.accepted {
		dst = binary.AppendUvarint(dst, uint64(a))
	}
	return dst
}

// Rank implements Node.
func (n *majority) Rank() int {
	ballot := func(b avantan.Ballot) int { return Sites*int(b.Number) + n.variant.index(b.Site) + 1 }
	st := n.machine.State()
	return 100*int(st.Applied) + ballot(st.Promised) + ballot(st.AcceptedAt)
}

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
		if (b.Anywhere || n.site == 0) && n.live.left >= 1 {
			acts = append(acts, Act{actAcquire, Acquire})
		}
		if b.Anywhere || n.site == Sites-1 {
			acts = append(acts, Act{actRelease, Release})
		}
	}
	return append(acts, Act{actRefresh, Free}, Act{actCrash, Crash})
}

// served reports whether a client's request is worth searching now: it changes
// left and net by opposite amounts, so it makes a difference only to an offer that is
// made later. While an offer is out it could as well come just after.
func (n *majority) served() bool {
	return n.variant.bounds.Plain || len(n.live.offers) == 0 && int(n.machine.State().Applied) < n.variant.bounds.Instances
}

func (n *majority) leads() bool { return n.site < n.variant.bounds.Leaders }

// Do implements Node.
func (n *majority) Do(i int) Step {
	switch act := n.Acts()[i].Name; act {
	case actBegin:
		// The leaders want different things, lest the values of two leaders be equal.
		p := avantan.Proposal{Press: avantan.PressAll}
		if n.site == 0 {
			p = avantan.Proposal{Change: n.variant.change()}
		}
		return n.inputs(avantan.Input{Begin: &p})
	case actAcquire, actRelease:
		d := avantan.Tokens(1)
		if act == actRelease {
			d = -1
		}
		for _, b := range []*books{n.live, n.disk} {
			b.left, b.net = b.left-d, b.net+d
		}
		return Step{}
	case actCrash:
		if n.variant.damage != nil {
			n.variant.damage(&n.state)
		}
		n.live = n.disk.clone()
		n.machine = avantan.New(n.variant.cfg[n.site], n.live, n.state.Clone())
		// The first Step of a restored Machine sets its timers, whatever the input.
		return n.inputs(avantan.Input{})
	case actRefresh:
		var ins []avantan.Input
		for _, name := range n.variant.names {
			if name != n.live.site {
				ins = append(ins, avantan.Input{Refresh: name})
			}
		}
		return n.inputs(ins...)
	default:
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
	return n.inputs(avantan.Input{Receive: p.Body.(*avantan.Message)})
}

// Urgent implements Node. An acknowledgement drops the entry kept for its sender. The
// sender had durably applied before it acknowledged (DurableFirst), so nobody reads the
// entry any more. Whether the entry is dropped now or later shows nowhere else.
func (n *majority) Urgent(p *Packet, _ Node) bool {
	m := p.Body.(*avantan.Message)
	return !n.variant.bounds.Plain && m.Kind == avantan.Applied && m.Applied <= n.machine.State().Applied
}

// Past implements Node: the whole past is needed, since instances follow each other.
func (n *majority) Past() Past { return Past{} }

// Stale implements Node.
func (n *majority) Stale(*Packet) bool { return false }

// Dead implements Node.
func (n *majority) Dead(*Packet) bool { return false }

// Forget implements Node.
func (n *majority) Forget(uint64) Node { return n }

// inputs runs the Machine.
func (n *majority) inputs(ins ...avantan.Input) Step {
	var step Step
	old := n.state.Clone()
	for _, in := range ins {
		if n.due != 0 {
			n.fire(n.due)
		}
		n.run(in, &step)
	}
	n.due = 0
	for n.machine.Running(avantan.TimerTell) {
		// Told again, a decision reaches nobody whom the first telling does not:
		// it is done with at once.
		n.fire(avantan.TimerTell)
		n.run(avantan.Input{}, &step)
	}
	n.fire(0)
	if !n.variant.bounds.Plain {
		n.machine.Simplify(n.leads() && n.ballots < n.variant.bounds.Ballots)
	}
	step.Broken = append(step.Broken, n.live.broken...)
	n.live.broken = nil
	n.checkSent(&step)
	n.checkGrown(&old, &step)
	return step
}

// run takes a Step of the Machine and does the work of its caller.
func (n *majority) run(in avantan.Input, step *Step) {
	before := n.machine.State().Applied
	promised := n.machine.State().Promised
	out := n.machine.Step(1, in)
	if out.Err != nil {
		step.Broken = append(step.Broken, Violation{SelfCheck, fmt.Sprintf("%s: %v", n.live.site, out.Err)})
	}
	if out.Persist {
		n.state, n.disk = n.machine.State().Clone(), n.live.clone()
		n.remember()
	}
	st := n.machine.State()
	switch {
	case st.Applied != before:
		n.ballots = 0
	case st.Promised != promised && st.Promised.Site == n.live.site:
		n.ballots++
		step.Beyond = step.Beyond || n.ballots > n.variant.bounds.Ballots || !n.leads()
	}
	for i := range out.Messages {
		m := &out.Messages[i]
		step.Send = append(step.Send, Packet{
			From: n.site, To: n.variant.index(m.To), Key: string(m.Fingerprint(nil)), Body: m, Text: n.variant.text(m),
		})
	}
}

// remember notes a durable accept.
func (n *majority) remember() {
	if n.state.Accepted == nil {
		return
	}
	id := n.variant.acceptID(accept{n.state.Applied + 1, n.state.AcceptedAt, n.variant.values.id(n.state.Accepted)})
	if i, found := slices.BinarySearch(n.accepted, id); !found {
		n.accepted = slices.Insert(n.accepted, i, id)
	}
}
