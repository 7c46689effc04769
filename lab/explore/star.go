package explore

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/redistribute"
)

// Star is Avantan[*] (Samya, section 4.3.2) as package star has it.
type Star struct {
	bounds Bounds
	names  [Sites]avantan.SiteID
	cfg    [Sites]*star.Config
	values *values
	// known are the losses that each site knows in the present step.
	known [Sites]losses
	// aware are the sites that know of the drain in the present step.
	aware [Sites]bool
	// instances numbers the instances.
	instances []star.ID
	// damage, in tests, changes the durable state at a restart.
	damage func(*star.State)
	drains
}

// NewStar returns the any-subset variant within bounds, which must be valid.
func NewStar(b Bounds) *Star {
	v := &Star{
		bounds: b,
		names:  siteNames,
		values: &values{ids: make(map[string]int)},
		drains: newDrains(),
	}
	for i, self := range v.names {
		v.cfg[i] = &star.Config{
			Self: self, Members: v.names[:], Window: window, Patience: patience,
			Backoff: backoff, MaxBackoff: 16 * backoff, MaxSlices: star.MaxSlices,
			Policy: redistribute.Demand, Rand: &random{uint64(i)},
			Lost:   func(site avantan.SiteID) bool { return v.known[i].has(v.index(site)) },
			Serves: func(site avantan.SiteID) bool { return v.asks(i, site) },
		}
		if err := v.cfg[i].Validate(); err != nil {
			panic(err) // a constant
		}
	}
	return v
}

// Name implements Variant.
func (v *Star) Name() string { return "star" }

// Sites implements Variant.
func (v *Star) Sites() (names [Sites]string) {
	for i, n := range v.names {
		names[i] = string(n)
	}
	return names
}

// New implements Variant.
func (v *Star) New(site int) Node {
	b := &starBooks{site: v.names[site], estate: estate{left: v.tokens()}, offer: v.offer(), values: v.values, concludes: v.concludes}
	b.gains = v.bounds.Losses > 0 && site == Sites-1
	if v.drained() && site == leaver {
		b.leases()
	}
	return &starNode{
		variant: v, site: site, live: b, disk: b.clone(),
		machine: star.New(v.cfg[site], b, star.State{}), handing: v.newHanding(site, &b.estate),
	}
}

// tokens are the tokens that each site starts with: enough beyond the bounds that no site
// is ever short of the tokens that it offers to each instance.
func (v *Star) tokens() avantan.Tokens {
	return avantan.Tokens(v.bounds.Tokens) + v.offer()*avantan.Tokens(v.bounds.Leaders*v.bounds.Ballots) + avantan.Tokens(v.bounds.Acquires)
}

// offer is how much a site offers to each instance: a token. Where a site may be lost, two
// sites gain what the third gives, so that a commit in place of an abort and an abort in
// place of a commit both grant too much.
func (v *Star) offer() avantan.Tokens {
	if v.bounds.Losses > 0 {
		return 2
	}
	return 1
}

// concludes is what a site gets that cannot know whether it gets its grant or its offer
// back, as starLedger.Conclude of site/core.
func (v *Star) concludes(offered, grant avantan.Tokens) avantan.Tokens {
	switch {
	case v.without[noMoreThanTheOffer]:
		return grant
	case v.without[noMoreThanTheGrant]:
		return offered
	}
	return min(offered, grant)
}

// plain reports whether the reductions of star_reduce.go are left out. Nobody has argued
// for them where a site may be lost, or leaves.
func (v *Star) plain() bool { return v.bounds.Plain || v.bounds.Losses > 0 || v.drained() }

// limit is the entity's limit.
func (v *Star) limit() avantan.Tokens { return Sites * v.tokens() }

func (v *Star) index(id avantan.SiteID) int { return slices.Index(v.names[:], id) }

// starNode is a site.
type starNode struct {
	variant *Star
	site    int
	machine *star.Machine
	live    *starBooks
	// state and disk are durable: the Machine's state and the books.
	state star.State
	disk  *starBooks
	// counters counts the instances that this site has led, and last is the counter of
	// the last instance led.
	counters int
	last     uint64
	// withdrawn are the values accepted here, durably, before their offers were taken
	// back, in the order of the instances. The durable state still tells everything else
	// that was ever durable of a vote.
	withdrawn []starEntry
	// accepted is all that was ever durably accepted here. It follows from the rest.
	accepted []starEntry
	// lost are the losses that the site knows, durably.
	lost losses
	handing
	// clear are the members that have told the leaver that nothing is under way with it.
	clear uint8
	// aware says that a member knows of the drain, durably.
	aware bool
}

// Clone implements Node.
func (n *starNode) Clone() Node {
	c := *n
	c.live, c.disk = n.live.clone(), n.disk.clone()
	c.machine, c.handing = n.machine.Clone(c.live), n.handClone(&c.live.estate)
	// Durable state is replaced as a whole, never changed.
	c.withdrawn = slices.Clone(n.withdrawn)
	return &c
}

// Key implements Node.
func (n *starNode) Key(dst []byte) []byte {
	dst = n.live.key(n.machine.Fingerprint(dst))
	dst = n.disk.key(n.state.Fingerprint(dst))
	dst = binary.AppendUvarint(append(dst, byte(n.counters), byte(n.lost)), n.last)
	for _, e := range n.withdrawn {
		dst = binary.AppendUvarint(append(dst, e.id.Leader...), e.id.Counter)
		dst = binary.AppendUvarint(dst, uint64(e.value))
	}
	return append(appendBool(n.handKey(dst), n.aware), n.clear)
}

// Rank implements Node.
func (n *starNode) Rank() int {
	r := 10*n.handRank() + 2*n.counters + 6*(len(n.withdrawn)+len(n.live.log))
	for i := range n.machine.State().Slices {
		r++
		if n.machine.State().Slices[i].Value != nil {
			r += 3
		}
	}
	for _, f := range n.machine.State().Floors {
		r += int(f.Counter % 32)
	}
	return r
}

// The names of further acts that are no time-outs.
const (
	actSettle = "settles for the offers it has"
	actRetry  = "has backed off"
	actForget = "waits for an election no longer"
)

// starAct is an act: for a time-out, the timer that fires; late says that an
// accepted value has waited for its whole patience.
type starAct struct {
	Act
	timer star.Timer
	id    star.ID
	late  bool
}

// Acts implements Node.
func (n *starNode) Acts() []Act {
	var acts []Act
	for _, a := range n.acts() {
		acts = append(acts, a.Act)
	}
	return acts
}

func (n *starNode) acts() []starAct {
	var acts []starAct
	b, m := n.variant.bounds, n.machine
	add := func(name string, cost Cost) { acts = append(acts, starAct{Act: Act{name, cost}}) }
	timer := func(name string, t star.Timer, id star.ID, late bool) {
		acts = append(acts, starAct{Act{name, Free}, t, id, late})
	}
	id, collects := m.Collecting()
	if n.leads() && !n.live.leaves && n.counters < b.Ballots && !collects && (n.variant.plain() || !m.Open()) {
		add(actBegin, Free)
	}
	if collects {
		timer(actSettle, star.TimerCollect, id, false)
	}
	for i := range m.State().Slices {
		id := m.State().Slices[i].ID
		timer(fmt.Sprintf("looks after %v", id), star.TimerSlice, id, false)
		if m.Running(star.TimerLate, id) {
			timer(fmt.Sprintf("looks after %v, others need not wait for it", id), star.TimerSlice, id, true)
		}
	}
	if m.Waits() {
		timer(actRetry, star.TimerRetry, star.ID{}, false)
	}
	if id, waits := m.Waiting(); waits {
		timer(actForget, star.TimerWaiting, id, false)
	}
	serves := !n.live.leaves
	if serves && (b.Anywhere || n.site == 0) && n.live.left >= 1 {
		add(actAcquire, Acquire)
	}
	if !n.live.leaves && (b.Anywhere || n.site == Sites-1) {
		add(actRelease, Release)
	}
	for _, a := range n.drainActs() {
		add(a.Name, a.Cost)
	}
	for _, a := range lossActs(&b, n.site, n.lost) {
		add(a.Name, a.Cost)
	}
	add(actCrash, Crash)
	return acts
}

// leads reports whether the site may lead: the first sites, or the last if the last site
// leaves.
func (n *starNode) leads() bool {
	if n.variant.drained() {
		return n.site >= Sites-n.variant.bounds.Leaders
	}
	return n.site < n.variant.bounds.Leaders
}

// Do implements Node.
func (n *starNode) Do(i int) Step {
	a := n.acts()[i]
	switch a.Name {
	case actBegin:
		// The leader at site 0 waits for all offers, any other takes the first that come. A
		// leaver waits too.
		p := star.Proposal{Press: avantan.PressSpare, Short: 1}
		if n.site == 0 || n.variant.drained() && n.site == leaver {
			p = star.Proposal{Press: avantan.PressAll, Short: math.MaxInt64}
		}
		return n.inputs(star.Input{Begin: &p}, a)
	case actAcquire, actRelease:
		d := avantan.Tokens(1)
		if a.Name == actRelease {
			d = -1
		}
		for _, b := range []*starBooks{n.live, n.disk} {
			b.serve(d)
		}
		return Step{}
	case actHandOver, actBequeath, actEndLease, actLeaves, actDeparts, actClear:
		return n.drain(a.Name)
	case actCrash:
		if n.variant.damage != nil {
			n.state = n.state.Clone()
			n.variant.damage(&n.state)
		}
		if n.variant.without[lossesAreDurable] {
			n.lost = 0
		}
		n.live = n.disk.clone()
		n.machine = star.New(n.variant.cfg[n.site], n.live, n.state.Clone())
		n.handAgain(&n.live.estate)
		n.clear = 0
		// The first Step of a restored Machine resumes, whatever the input.
		return n.inputs(star.Input{}, a)
	default:
		if lost, yes := lossNamed(a.Name); yes {
			return n.loses(lost, lossNews(n.site, lost))
		}
		return n.inputs(star.Input{}, a)
	}
}

// loses has the site know that another is lost, and let go of what waits for it.
func (n *starNode) loses(site int, news []Packet) Step {
	n.lost |= 1 << site
	step := n.inputs(star.Input{}, starAct{})
	step.Send = append(step.Send, news...)
	return step
}

// fire makes a timer due, or none.
func (n *starNode) fire(a starAct) {
	n.machine.Retime(func(t star.Timer, id star.ID, _ avantan.Tick) avantan.Tick {
		due := a.timer == t && a.id == id || a.late && t == star.TimerLate && a.id == id
		if due || t == star.TimerRetry && !n.machine.Waits() {
			return 0
		}
		return far
	})
}

// Deliver implements Node.
func (n *starNode) Deliver(p *Packet) Step {
	if n.gone && p.From == leaver && !n.variant.without[hearsNoneThatIsOut] {
		return Step{}
	}
	switch m := p.Body.(type) {
	case *writtenOff:
		return n.loses(m.site, nil)
	case *star.Message:
	default:
		return n.handedIn(p)
	}
	return n.inputs(star.Input{Receive: p.Body.(*star.Message)}, starAct{})
}

// inputs runs the Machine.
func (n *starNode) inputs(in star.Input, a starAct) Step {
	var step Step
	n.knows()
	n.fire(a)
	n.run(in, &step)
	if !n.variant.bounds.Plain {
		n.machine.Simplify()
	}
	if !n.variant.plain() {
		// A value accepted and undecided waits for its whole patience at once. Then the
		// site sends questions, which need not arrive. It also need not wait for the
		// outcome before it begins another instance, which it need not do either.
		for _, sl := range slices.Clone(n.machine.State().Slices) {
			if n.machine.Running(star.TimerLate, sl.ID) {
				n.fire(starAct{timer: star.TimerSlice, id: sl.ID, late: true})
				n.run(star.Input{}, &step)
			}
		}
		n.machine.Simplify()
	}
	n.fire(starAct{})
	n.close(&step)
	return step
}

// close ends a step.
func (n *starNode) close(step *Step) {
	step.Broken = append(step.Broken, n.live.broken...)
	n.live.broken = nil
	n.checkSent(step)
	n.conclude()
}

// persist makes the whole site durable.
func (n *starNode) persist(old *star.State, step *Step) {
	n.state, n.handed, n.disk = n.machine.State().Clone(), n.hand.State().Clone(), n.live.clone()
	n.remember(old, step)
}

// conclude finds all that was ever durably accepted.
func (n *starNode) conclude() {
	n.accepted = slices.Concat(n.disk.log, n.disk.ended, n.withdrawn)
	for i := range n.state.Slices {
		if sl := &n.state.Slices[i]; sl.Value != nil && !sl.Committed {
			n.accepted = append(n.accepted, starEntry{sl.ID, n.variant.values.id(sl.Value)})
		}
	}
}

// run takes a Step of the Machine and does the work of its caller.
func (n *starNode) run(in star.Input, step *Step) {
	out := n.machine.Step(1, in)
	if out.Err != nil {
		step.Broken = append(step.Broken, Violation{SelfCheck, fmt.Sprintf("%s: %v", n.live.site, out.Err)})
	}
	if out.Persist {
		old := n.state
		n.persist(&old, step)
	}
	if id, collects := n.machine.Collecting(); collects && id.Counter != n.last {
		n.led(id, step)
	}
	for i := range out.Messages {
		m := &out.Messages[i]
		if m.Kind == star.Busy && !n.variant.bounds.Plain {
			continue // it tells why an instance fails, no more
		}
		if m.Kind == star.Election && m.ID.Counter != n.last {
			// It has been given up in the same step.
			n.led(m.ID, step)
		}
		if n.gone && n.variant.index(m.To) == leaver {
			continue
		}
		step.Send = append(step.Send, Packet{
			From: n.site, To: n.variant.index(m.To), Instance: n.variant.bit(m.ID), Key: string(m.Fingerprint(nil)), Body: m, Text: starText(m),
		})
	}
}

// led counts an instance led here.
func (n *starNode) led(id star.ID, step *Step) {
	if id.Counter < n.last {
		n.broke(step, Promises, "counter %d comes after %d", id.Counter, n.last)
	}
	n.last = id.Counter
	n.counters++
	step.Beyond = step.Beyond || n.counters > n.variant.bounds.Ballots || !n.leads()
}

func (n *starNode) broke(step *Step, invariant, format string, args ...any) {
	step.Broken = append(step.Broken, Violation{invariant, fmt.Sprintf("%s: ", n.live.site) + fmt.Sprintf(format, args...)})
}

// slice returns the slice of an instance, or nil.
func slice(s *star.State, id star.ID) *star.Slice {
	for i := range s.Slices {
		if s.Slices[i].ID == id {
			return &s.Slices[i]
		}
	}
	return nil
}
