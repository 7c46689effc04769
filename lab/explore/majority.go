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
	drains
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
		names:     siteNames,
		values:    &values{ids: make(map[string]int)},
		acceptIDs: make(map[accept]int),
		drains:    newDrains(),
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
		site: v.names[site], estate: estate{left: avantan.Tokens(v.bounds.Tokens)}, limit: v.limit(), values: v.values, view: v.view(),
	}
	if site < v.bounds.Leaders {
		b.want = 2
	}
	if v.drained() && site == leaver {
		b.leases()
	}
	return &majority{
		variant: v, site: site, live: b, disk: b.clone(),
		machine: avantan.New(v.cfg[site], b, avantan.State{}), handing: v.newHanding(site, &b.estate),
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
func (n *majority) change() []byte {
	lost, known := n.lost.site()
	switch {
	case n.variant.bounds.View == JoinView:
		return viewChange(siteNames[:])
	case n.variant.bounds.View == LeaveView, n.variant.drained():
		return viewChange(siteNames[:Sites-1])
	case known:
		return viewChange(slices.Delete(slices.Clone(siteNames[:]), lost, lost+1))
	}
	return []byte("1")
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
	// lost are the losses that the site knows, durably.
	lost losses
	handing
}

// Clone implements Node.
func (n *majority) Clone() Node {
	c := *n
	c.live, c.disk = n.live.clone(), n.disk.clone()
	c.machine, c.handing = n.machine.Clone(c.live), n.handClone(&c.live.estate)
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
	dst = append(dst, byte(n.lost))
	return n.handKey(dst)
}

// Rank implements Node.
func (n *majority) Rank() int {
	ballot := func(b avantan.Ballot) int { return Sites*int(b.Number) + n.variant.index(b.Site) + 1 }
	st := n.machine.State()
	return 100*int(st.Applied) + ballot(st.Promised) + ballot(st.AcceptedAt) + 10*n.handRank()
}

// Urgent implements Node. An acknowledgement drops the entry kept for its sender. The
// sender had durably applied before it acknowledged (DurableFirst), so nobody reads the
// entry any more. Whether the entry is dropped now or later shows nowhere else.
func (n *majority) Urgent(p *Packet, _ Node) bool {
	m, ok := p.Body.(*avantan.Message)
	return ok && !n.variant.bounds.Plain && m.Kind == avantan.Applied && m.Applied <= n.machine.State().Applied
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
		n.persist()
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
		if to := n.variant.index(m.To); !n.outside(to) {
			step.Send = append(step.Send, Packet{From: n.site, To: to, Key: string(m.Fingerprint(nil)), Body: m, Text: n.variant.text(m)})
		}
	}
}

// persist makes the whole site durable.
func (n *majority) persist() {
	n.state, n.handed, n.disk = n.machine.State().Clone(), n.hand.State().Clone(), n.live.clone()
	n.remember()
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
