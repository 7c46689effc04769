package avantan

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// books is a minimal ledger: it offers half of its tokens, and shares a pool out evenly.
type books struct {
	self   SiteID
	left   Tokens
	offers map[Instance]Tokens
	limit  Tokens
	// got holds the instances applied here as a member of R.
	got map[Instance]bool
	// half is the part of left that is offered without press: left/half.
	half Tokens
	want Tokens
	view View

	c *cluster
}

// View is the view after the instances applied.
func (b *books) View() View { return b.view }

func (b *books) clone() *books {
	d := *b
	d.offers, d.got = maps.Clone(b.offers), maps.Clone(b.got)
	return &d
}

func (b *books) Pledge(t Instance, press Press) (Contribution, bool) {
	if len(b.offers) > 0 {
		b.c.fail("%s: a second offer in instance %d", b.self, t)
	}
	offer := b.left
	if press == PressSpare && offer > 0 {
		offer /= b.half
	}
	b.left -= offer
	b.offers[t] = offer
	return Contribution{Site: b.self, Offered: offer, Wanted: b.want, Queued: b.want}, true
}

func (b *books) TakeBack(t Instance, pledge Contribution) {
	offer, ok := b.offers[t]
	if !ok || offer != pledge.Offered {
		b.c.fail("%s: taking back %d in instance %d, offered %d, %v", b.self, pledge.Offered, t, offer, ok)
	}
	delete(b.offers, t)
	b.left += offer
}

// Forfeit keeps a debt: nothing of it is gone.
func (b *books) Forfeit(t Instance, pledge Contribution) {
	lost := b.offers[t]
	b.TakeBack(t, pledge)
	if lost > 0 {
		b.left -= lost
	}
}

func delta(v *Value) (Tokens, error) {
	if len(v.Change) == 0 || strings.HasPrefix(string(v.Change), viewChange) {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(v.Change), 10, 64)
	return Tokens(n), err
}

// viewChange begins a change of the view: the sites follow, each behind a space.
const viewChange = "view"

// viewAfter is the view after an instance decided v.
func viewAfter(before View, v *Value) View {
	names, changes := strings.CutPrefix(string(v.Change), viewChange)
	if !changes {
		return before
	}
	var after View
	for n := range strings.FieldsSeq(names) {
		after = append(after, SiteID(n))
	}
	return after
}

var errPolicy = errors.New("unknown policy")

func (b *books) CanApply(v *Value) error {
	if v.Policy != "even" {
		return fmt.Errorf("%w %q", errPolicy, v.Policy)
	}
	_, err := delta(v)
	return err
}

// grants shares out evenly. The first sites get a token of the remainder each.
func grants(v *Value) map[SiteID]Tokens {
	pool, _ := delta(v)
	for _, c := range v.Contributions {
		pool += c.Offered
	}
	n := Tokens(len(v.Contributions))
	if n == 0 {
		return nil
	}
	share, rest := pool/n, pool%n
	if rest < 0 {
		share, rest = share-1, rest+n
	}
	g := make(map[SiteID]Tokens)
	for i, c := range v.Contributions {
		g[c.Site] = share
		if Tokens(i) < rest {
			g[c.Site]++
		}
	}
	return g
}

func (b *books) Apply(t Instance, v *Value) {
	b.c.decided(t, v)
	d, _ := delta(v)
	b.limit += d
	b.view = viewAfter(b.view, v)
	c, in := v.Of(b.self)
	if !in {
		return
	}
	if offer, ok := b.offers[t]; !ok || offer != c.Offered || b.got[t] {
		b.c.fail("%s: applying %d offered in instance %d: set aside %d, %v; before: %v", b.self, c.Offered, t, offer, ok, b.got[t])
	}
	delete(b.offers, t)
	b.got[t] = true
	b.left += grants(v)[b.self]
}

func (b *books) Snapshot(Instance) []byte {
	s, _ := json.Marshal(known{b.limit, b.view})
	return s
}

func (b *books) Install(_ Instance, snapshot []byte) error {
	var k known
	if err := json.Unmarshal(snapshot, &k); err != nil {
		return err
	}
	b.limit, b.view = k.Limit, k.View
	return nil
}

// known is the content of a snapshot.
type known struct {
	Limit Tokens
	View  View
}

// flush is the part of an Output to be made durable and then sent.
type flush struct {
	state *State
	books *books
	out   []Message
}

// node is a site of a cluster under test.
type node struct {
	id  SiteID
	cfg *Config
	m   *Machine
	b   *books
	up  bool
	// recovers says that the site knows of the loss of a majority.
	recovers bool

	disk    State
	diskB   *books
	flushes []flush
}

// cluster is some sites, the network between them, and an observer of every message that
// has left a site.
type cluster struct {
	now   Tick
	nodes []*node
	// net are the messages under way, sent all that ever left.
	net, sent []Message
	err       error

	// The observer's knowledge.
	total    Tokens
	value    map[Instance]*Value
	proposed map[vote]*Value
	accepts  map[vote]map[SiteID]bool
	promises map[seat]Ballot
	// first is the view of the first instance.
	first View
	// lost are the sites lost for good. settled is the last instance that a survivor had
	// applied when they were lost.
	lost    map[SiteID]bool
	settled Instance
	// secret are instances that lost sites have decided, and of which survivors may hear
	// yet.
	secret map[Instance]*Value
}

type vote struct {
	t Instance
	b Ballot
}

type seat struct {
	t    Instance
	site SiteID
}

func newCluster(left map[SiteID]Tokens, rand func(SiteID) Rand) *cluster {
	c := &cluster{
		value: map[Instance]*Value{}, proposed: map[vote]*Value{}, accepts: map[vote]map[SiteID]bool{},
		promises: map[seat]Ballot{}, secret: map[Instance]*Value{}, first: slices.Sorted(maps.Keys(left)),
	}
	c.join(left, rand)
	return c
}

// join adds sites; those added later are outside of the first view.
func (c *cluster) join(left map[SiteID]Tokens, rand func(SiteID) Rand) {
	for _, n := range left {
		c.total += n
	}
	for _, n := range c.nodes {
		n.b.limit, n.diskB.limit = c.total, c.total
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		cfg := &Config{
			Self: id, Known: func(s SiteID) bool { return c.node(s) != nil }, Window: 100, Patience: 300, Backoff: 50, MaxBackoff: 1000,
			Policy: "even", Rand: rand(id),
		}
		if err := cfg.Validate(); err != nil {
			panic(err)
		}
		n := &node{id: id, cfg: cfg, up: true}
		cfg.Lost = func(s SiteID) bool { return n.recovers && c.lost[s] }
		cfg.Serving = func() iter.Seq[SiteID] {
			return func(yield func(SiteID) bool) {
				for n := range c.survivors() {
					if !yield(n.id) {
						return
					}
				}
			}
		}
		b := &books{
			self: id, left: left[id], offers: map[Instance]Tokens{}, got: map[Instance]bool{},
			limit: c.total, half: 2, view: c.first, c: c,
		}
		n.b, n.diskB = b, b.clone()
		n.m = New(cfg, b, State{})
		c.nodes = append(c.nodes, n)
	}
	slices.SortFunc(c.nodes, func(a, b *node) int { return strings.Compare(string(a.id), string(b.id)) })
}

// viewOf is the view of an instance, of which all before are decided.
func (c *cluster) viewOf(t Instance) View {
	v := c.first
	for i := Instance(1); i < t; i++ {
		if c.value[i] == nil {
			c.fail("instance %d is under way, %d is not decided", t, i)
			return v
		}
		v = viewAfter(v, c.value[i])
	}
	return v
}

// alone is the only voter of an instance, if there is only one.
func (c *cluster) alone(t Instance) (SiteID, bool) {
	v := c.viewOf(t)
	if t > c.settled {
		v = slices.DeleteFunc(slices.Clone(v), func(s SiteID) bool { return c.lost[s] })
	}
	if len(v) == 0 {
		return "", false
	}
	return v[0], len(v) == 1
}

func (c *cluster) node(id SiteID) *node {
	for _, n := range c.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

// fail keeps the first thing that must not happen.
func (c *cluster) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// decided checks agreement, and that a majority has accepted every applied value.
func (c *cluster) decided(t Instance, v *Value) {
	if old, ok := c.value[t]; ok {
		if !old.Equal(v) {
			c.fail("instance %d: decided %v and %v", t, old, v)
		}
		return
	}
	c.value[t] = v.Clone()
	if _, alone := c.alone(t); alone {
		return
	}
	for vt, voters := range c.accepts {
		if vt.t == t && len(voters) >= c.quorum(vt) && c.proposed[vt].Equal(v) {
			return
		}
	}
	c.fail("instance %d: %v applied, accepted by no majority", t, v)
}

// observe looks at a message that leaves.
func (c *cluster) observe(m *Message) {
	at := vote{m.Instance, m.Ballot}
	promised := m.Ballot
	switch m.Kind {
	case Accept:
		if old, ok := c.proposed[at]; ok && !old.Equal(m.Value) {
			c.fail("instance %d: two values at ballot %v", m.Instance, m.Ballot)
		}
		c.proposed[at] = m.Value.Clone()
		c.accept(at, m.From)
	case AcceptOk:
		c.accept(at, m.From)
	case ElectionOk:
		if m.Ballot.epoch() > 0 && !c.viewOf(m.Instance).Has(m.From) {
			// A survivor without a vote promises nothing.
			return
		}
	case Refuse:
		promised = m.Promised
	default:
		return
	}
	if view := c.viewOf(m.Instance); !view.Has(m.From) {
		c.fail("instance %d: %v from %s, which is not in %v", m.Instance, m.Kind, m.From, view)
	}
	s := seat{m.Instance, m.From}
	if c.promises[s].Compare(promised) < 0 {
		c.promises[s] = promised
	}
}

// quorum is the number of votes that choose at a ballot.
func (c *cluster) quorum(at vote) int {
	v := c.viewOf(at.t)
	if lost := at.b.epoch(); lost > 0 {
		return len(v) - int(lost)
	}
	return v.quorum()
}

func (c *cluster) accept(at vote, site SiteID) {
	if c.accepts[at] == nil {
		c.accepts[at] = map[SiteID]bool{}
	}
	c.accepts[at][site] = true
	if len(c.accepts[at]) < c.quorum(at) {
		return
	}
	for other, voters := range c.accepts {
		if other.t == at.t && other.b.epoch() == at.b.epoch() && len(voters) >= c.quorum(other) && !c.proposed[other].Equal(c.proposed[at]) {
			c.fail("instance %d: chosen at %v and at %v differ", at.t, at.b, other.b)
		}
	}
}

// step runs an input. Its output waits to be made durable.
func (c *cluster) step(n *node, in Input) Output {
	out := n.m.Step(c.now, in)
	if v, ok := errors.AsType[*violationError](out.Err); ok {
		c.fail("%s: %w", n.id, v)
	}
	if err := n.m.State().Validate(); err != nil {
		c.fail("%s: %w", n.id, err)
	}
	f := flush{}
	if out.Persist {
		f.state, f.books = new(n.m.State().Clone()), n.b.clone()
	}
	for i := range out.Messages {
		if err := out.Messages[i].Validate(); err != nil {
			c.fail("%s: %w", n.id, err)
		}
		f.out = append(f.out, cloneMessage(&out.Messages[i]))
	}
	n.flushes = append(n.flushes, f)
	return out
}

// sync makes the oldest Output durable and lets its messages leave.
func (c *cluster) sync(n *node) {
	f := n.flushes[0]
	n.flushes = n.flushes[1:]
	if f.state != nil {
		n.disk, n.diskB = *f.state, f.books
	}
	for i := range f.out {
		c.observe(&f.out[i])
	}
	c.net = append(c.net, f.out...)
	c.sent = append(c.sent, f.out...)
}

func (c *cluster) syncAll(n *node) {
	for len(n.flushes) > 0 {
		c.sync(n)
	}
}

// settle is step, with its output made durable.
func (c *cluster) settle(n *node, in Input) Output {
	out := c.step(n, in)
	c.syncAll(n)
	return out
}

// crash loses all that is not durable.
func (c *cluster) crash(n *node) {
	for t := Instance(len(c.value)); t > n.disk.Applied; t-- {
		// Alone, a site decides by its own accept, once that is durable.
		if site, alone := c.alone(t); alone && site == n.id {
			delete(c.value, t)
		}
	}
	c.unlearn(n)
	n.up, n.flushes = false, nil
	n.b = n.diskB.clone()
	n.m = New(n.cfg, n.b, n.disk.Clone())
}

// receive hands a copy of a message to its receiver.
func (c *cluster) receive(m *Message) Output {
	return c.step(c.node(m.To), Input{Receive: new(cloneMessage(m))})
}

func cloneMessage(m *Message) Message {
	d := *m
	if m.Contribution != nil {
		d.Contribution = new(*m.Contribution)
	}
	if m.Value != nil {
		d.Value = m.Value.Clone()
	}
	d.Kept = (&State{Kept: m.Kept}).Clone().Kept
	d.Snapshot = slices.Clone(m.Snapshot)
	return d
}

// check asserts the invariants that hold after every event.
func (c *cluster) check() error {
	if c.err != nil {
		return c.err
	}
	live, durable := make([]seen, len(c.nodes)), make([]seen, len(c.nodes))
	for i, n := range c.nodes {
		live[i], durable[i] = seen{n.m.State(), n.b}, seen{&n.disk, n.diskB}
		if p := c.promises[seat{n.m.State().Applied + 1, n.id}]; n.m.State().Promised.Compare(p) < 0 {
			return fmt.Errorf("%s: promised %v before, now %v", n.id, p, n.m.State().Promised)
		}
	}
	if len(c.lost) > 0 {
		c.relearn()
		return c.bounded()
	}
	if err := c.conserved(live); err != nil {
		return err
	}
	if err := c.conserved(durable); err != nil {
		return fmt.Errorf("on disk: %w", err)
	}
	return nil
}

// seen is a site's state and books at a moment.
type seen struct {
	s *State
	b *books
}

// conserved is section 1 of docs/protocol.md, exactly: the sum of all tokens is the limit
// as of the decided instances. A decided instance counts as settled for each member of R
// that has not applied it.
func (c *cluster) conserved(views []seen) error {
	sum, limit := Tokens(0), c.total
	for _, w := range views {
		sum += w.b.left
		for _, offer := range w.b.offers {
			sum += offer
		}
	}
	for t, v := range c.value {
		if site, alone := c.alone(t); alone && slices.ContainsFunc(views, func(w seen) bool { return w.b.self == site && w.s.Applied < t }) {
			continue
		}
		d, _ := delta(v)
		limit += d
		g := grants(v)
		for _, w := range views {
			contribution, in := v.Of(w.b.self)
			switch {
			case in && w.s.Applied < t:
				sum += g[w.b.self] - contribution.Offered
			case in != w.b.got[t] && w.s.Applied >= t:
				return fmt.Errorf("%s: passed over instance %d, in R: %v, applied: %v", w.b.self, t, in, w.b.got[t])
			}
		}
	}
	if sum != limit {
		return fmt.Errorf("%d tokens, the limit is %d", sum, limit)
	}
	return nil
}
