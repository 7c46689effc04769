package star

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/samya-db/samya/avantan"
)

type (
	SiteID = avantan.SiteID
	Tokens = avantan.Tokens
	Tick   = avantan.Tick
	Value  = avantan.Value
)

// flush is the part of an Output to be made durable and then sent.
type flush struct {
	state *State
	books *books
	out   []Message
}

// node is a site of a cluster under test.
type node struct {
	id      SiteID
	cfg     *Config
	m       *Machine
	b       *books
	up      bool
	disk    State
	diskB   *books
	flushes []flush
	// elected are the counters that have left this site.
	elected map[uint64]bool
	// lost are the sites that this site knows to be written off. Its Config sees seen, which
	// copies of the site share.
	lost siteSet
	seen *siteSet
}

// vote is the durable part of a site's vote.
type vote uint8

const (
	none vote = iota
	pledged
	accepted
	aborted
)

// cluster is some sites, the network between them, and an observer of every message that
// has left a site and of all disks.
type cluster struct {
	now   Tick
	nodes []*node
	// net are the messages under way, sent all that ever left.
	net, sent []Message
	err       error

	// The observer's knowledge.
	total   Tokens
	values  map[ID]*Value
	votes   map[ID]map[SiteID]vote
	decided map[ID]*Value
	failed  map[Failure]int
	// written is set once a disk has changed since the last check.
	written bool
}

func newCluster(left map[SiteID]Tokens, maxSlices int, rand func(SiteID) avantan.Rand) *cluster {
	c := &cluster{
		values: map[ID]*Value{}, votes: map[ID]map[SiteID]vote{}, decided: map[ID]*Value{}, failed: map[Failure]int{},
	}
	ids := slices.Sorted(maps.Keys(left))
	for _, n := range left {
		c.total += n
	}
	for _, id := range ids {
		cfg := &Config{
			Self: id, Members: ids, Window: 100, Patience: 300, Backoff: 50, MaxBackoff: 1000, MaxSlices: maxSlices,
			Policy: "even", Rand: rand(id),
		}
		seen := new(siteSet)
		cfg.Lost = func(site SiteID) bool { i := slices.Index(ids, site); return i >= 0 && seen.has(i) }
		if err := cfg.Validate(); err != nil {
			panic(err)
		}
		b := &books{
			self: id, left: left[id], offers: map[ID]Tokens{}, got: map[ID]*Value{}, ended: map[ID]*Value{}, half: 2, c: c,
		}
		n := &node{id: id, cfg: cfg, b: b, up: true, diskB: b.clone(), elected: map[uint64]bool{}, seen: seen}
		n.m = New(cfg, b, State{})
		c.nodes = append(c.nodes, n)
	}
	return c
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

// writeOff has a site know, durably, that another is written off.
func (c *cluster) writeOff(n *node, lost SiteID) {
	c.syncAll(n)
	i, _ := n.cfg.index(lost)
	n.lost.add(i)
}

// step runs an input. Its output waits to be made durable.
func (c *cluster) step(n *node, in Input) Output {
	*n.seen = n.lost
	out := n.m.Step(c.now, in)
	c.failed[out.Failed]++
	if v, ok := errors.AsType[*violationError](out.Err); ok {
		c.fail("violation: %s: %w", n.id, v)
	}
	f := flush{}
	if out.Persist {
		f.state, f.books = new(n.m.State().Clone()), n.b.clone()
	}
	for i := range out.Messages {
		m := &out.Messages[i]
		if err := m.Validate(); err != nil {
			c.fail("form: %s: %w", n.id, err)
		}
		if m.Kind == Accept && m.From == m.ID.Leader {
			if old := c.values[m.ID]; old == nil {
				c.values[m.ID] = m.Value.Clone()
			} else if !old.Equal(m.Value) {
				// A crash may have undone a value that nobody has heard of.
				if c.votes[m.ID][m.From] == accepted {
					c.fail("integrity: two values of %v: %v and %v", m.ID, old, m.Value)
				}
				c.values[m.ID] = m.Value.Clone()
			}
		}
		f.out = append(f.out, cloneMessage(m))
	}
	n.flushes = append(n.flushes, f)
	return out
}

// sync makes the oldest Output durable and lets its messages leave.
func (c *cluster) sync(n *node) {
	f := n.flushes[0]
	n.flushes = n.flushes[1:]
	if f.state != nil {
		c.written = true
		for i := range n.disk.Slices {
			c.durable(n, n.disk.Slices[i].ID, f.state, f.books)
		}
		for i := range f.state.Slices {
			c.durable(n, f.state.Slices[i].ID, f.state, f.books)
		}
		n.disk, n.diskB = *f.state, f.books
	}
	elected := map[uint64]bool{}
	for i := range f.out {
		if m := &f.out[i]; m.Kind == Election {
			if n.elected[m.ID.Counter] {
				c.fail("counters: %s uses %v again", n.id, m.ID)
			}
			elected[m.ID.Counter] = true
		}
		c.observe(n, &f.out[i])
	}
	maps.Copy(n.elected, elected)
	c.net = append(c.net, f.out...)
	c.sent = append(c.sent, f.out...)
}

// durable notes a transaction's effect on this site's vote in an instance: none, pledged,
// then accepted or aborted, never anything else. The instance is decided at its last
// member's durable accept.
func (c *cluster) durable(n *node, id ID, st *State, b *books) {
	if c.votes[id] == nil {
		c.votes[id] = map[SiteID]vote{}
	}
	old := c.votes[id][n.id]
	i, found := st.find(id)
	now := old
	switch {
	case found && st.Slices[i].Value != nil || b.got[id] != nil || b.ended[id] != nil:
		now = accepted
	case found:
		now = pledged
	case old == pledged:
		now = aborted
	case old == accepted && !c.anyAborted(id):
		c.fail("agreement: %s gives up %v, which it accepted and nobody voted against", n.id, id)
	}
	if now == old {
		return
	}
	if old > pledged || now < old {
		c.fail("one-shot: %s voted %d in %v, now %d", n.id, old, id, now)
	}
	c.votes[id][n.id] = now
	if v := c.values[id]; now == accepted && v != nil && c.all(v, func(s SiteID) bool { return c.votes[id][s] == accepted }) {
		c.decided[id] = v
	}
}

// anyAborted reports whether a member of R has voted against an instance.
func (c *cluster) anyAborted(id ID) bool {
	return c.values[id] != nil && !c.all(c.values[id], func(s SiteID) bool { return c.votes[id][s] != aborted })
}

func (c *cluster) all(v *Value, is func(SiteID) bool) bool {
	for _, contribution := range v.Contributions {
		if !is(contribution.Site) {
			return false
		}
	}
	return true
}

// observe looks at a message that leaves: all it reveals must be durable.
func (c *cluster) observe(n *node, m *Message) {
	has := func(s SiteID) bool { return c.node(s).diskB.got[m.ID] != nil }
	over := func(s SiteID) bool {
		i, _ := n.cfg.index(s)
		return n.lost.has(i) || has(s) || c.node(s).diskB.ended[m.ID] != nil
	}
	at, found := n.disk.find(m.ID)
	var ok bool
	switch m.Kind {
	case Election:
		ok = n.disk.Reserved >= m.ID.Counter
	case ElectionOk:
		_, offered := n.diskB.offers[m.ID]
		// It may have been taken back by an earlier output of the same batch.
		ok = m.Contribution == nil || offered || c.votes[m.ID][n.id] != none
	case Accept, AcceptOk:
		ok = c.votes[m.ID][n.id] == accepted
	case Abort:
		v := c.values[m.ID]
		ok = c.votes[m.ID][n.id] == aborted || c.anyAborted(m.ID) || v != nil && c.all(v, over)
	case Commit:
		ok = c.decided[m.ID] != nil
	case Applied:
		ok = has(n.id)
	case Settled:
		ok = c.decided[m.ID] != nil && c.all(c.decided[m.ID], has)
	case Undecided:
		ok = c.votes[m.ID][n.id] == accepted && n.cfg.setIn(m.Lost) == n.lost&n.cfg.setOf(c.values[m.ID])
	case Concluded:
		ok = n.diskB.ended[m.ID] != nil
	case Ended:
		ok = !found || n.disk.Slices[at].Committed
	default:
		ok = true
	}
	if !ok {
		c.fail("durability: %s says what is not durable: %s", n.id, line(m))
	}
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
	d.Lost = slices.Clone(m.Lost)
	return d
}

// check asserts the invariants that hold after every event, for the present state of the
// sites and for their state if all crashed now.
func (c *cluster) check() error {
	if c.err != nil {
		return c.err
	}
	live, durable := make([]view, len(c.nodes)), make([]view, len(c.nodes))
	for i, n := range c.nodes {
		live[i], durable[i] = view{n.m.State(), n.b}, view{&n.disk, n.diskB}
	}
	if err := c.consistent(live); err != nil {
		return err
	}
	if !c.written {
		return nil
	}
	c.written = false
	if err := c.consistent(durable); err != nil {
		return fmt.Errorf("on disk: %w", err)
	}
	return nil
}

type view struct {
	s *State
	b *books
}

// consistent is section 1 of docs/protocol.md, exactly: the sum of all tokens is the
// limit. A decided instance counts as settled for each member of R that has not applied
// it. In a view an instance is decided if all of R have accepted in it.
func (c *cluster) consistent(views []view) error {
	sum := Tokens(0)
	accepts, applies := map[ID]siteSet{}, map[ID]siteSet{}
	value := map[ID]*Value{}
	for k, w := range views {
		if err := w.valid(c.nodes[k].cfg.MaxSlices); err != nil {
			return fmt.Errorf("bounds: %s: %w", w.b.self, err)
		}
		sum += w.b.left + w.b.net
		for _, offer := range w.b.offers {
			sum += offer
		}
		add := func(in map[ID]siteSet, id ID, v *Value) {
			set := in[id]
			set.add(k)
			in[id], value[id] = set, v
		}
		for id, v := range w.b.got {
			add(accepts, id, v)
			add(applies, id, v)
		}
		for id, v := range w.b.ended {
			add(accepts, id, v)
			if err := c.alike(views, k, id, v); err != nil {
				return err
			}
		}
		for i := range w.s.Slices {
			if sl := &w.s.Slices[i]; sl.Value != nil {
				add(accepts, sl.ID, sl.Value)
			}
		}
	}
	cfg := c.nodes[0].cfg
	for id, v := range value {
		r := cfg.setOf(v)
		for _, w := range views {
			if w.b.ended[id] != nil {
				sum += retired(w.b.self, v, accepts[id].covers(r))
			}
		}
		if !accepts[id].covers(r) {
			if applies[id] != 0 {
				return fmt.Errorf("agreement: %v is applied and not accepted by all of R: %v", id, v)
			}
			continue
		}
		if applies[id] == r {
			continue
		}
		g := grants(v)
		for k, w := range views {
			if contribution, in := v.Of(w.b.self); in && !applies[id].has(k) && w.b.ended[id] == nil {
				sum += g[w.b.self] - contribution.Offered
			}
		}
	}
	if sum != c.total {
		return fmt.Errorf("conservation: %d tokens, the limit is %d", sum, c.total)
	}
	return nil
}

// alike checks that no member that a site still counts on, which has ended an instance
// without its outcome, has ended it with one.
func (c *cluster) alike(views []view, k int, id ID, v *Value) error {
	for i, w := range views {
		if _, in := v.Of(w.b.self); !in || c.nodes[k].lost.has(i) {
			continue
		}
		if w.b.got[id] != nil || c.votes[id][w.b.self] == aborted {
			return fmt.Errorf("alike: %v is concluded at %s, %s knows its outcome", id, views[k].b.self, w.b.self)
		}
	}
	return nil
}

// valid checks a site's state against its books.
func (w view) valid(maxSlices int) error {
	if err := w.s.Validate(); err != nil {
		return err
	}
	if len(w.s.Slices) > maxSlices {
		return fmt.Errorf("%d slices, at most %d are allowed", len(w.s.Slices), maxSlices)
	}
	undecided := 0
	for i := range w.s.Slices {
		sl := &w.s.Slices[i]
		offer, set := w.b.offers[sl.ID]
		if sl.Committed != (w.b.got[sl.ID] != nil || w.b.ended[sl.ID] != nil) || sl.Concluded != (w.b.ended[sl.ID] != nil) || sl.Committed == set || set && offer != sl.Pledge.Offered {
			return fmt.Errorf("slice %v: committed %v, offer %d, %v", sl.ID, sl.Committed, offer, set)
		}
		if set {
			undecided++
		}
	}
	if undecided != len(w.b.offers) {
		return fmt.Errorf("%d offers in the books, %d slices for them", len(w.b.offers), undecided)
	}
	return nil
}
