package handoff

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// flush is the part of an Output to be made durable and then sent.
type flush struct {
	state *State
	books books
	out   []Message
}

// node is a site of a cluster under test.
type node struct {
	id  SiteID
	cfg *Config
	m   *Machine
	b   *books
	up  bool
	// kept is the state after the last step that asked for a transaction.
	kept    State
	disk    State
	diskB   books
	flushes []flush
	// lost are the sites that it knows to be out for good. They are durable elsewhere.
	lost []SiteID
	// sent are the bequests that have left, by heir and number.
	sent map[pair]string
}

// pair names a bequest by the other site and the number.
type pair struct {
	site   SiteID
	number uint64
}

// cluster is some sites, the network between them, and an observer of every message that
// has left a site and of all disks.
type cluster struct {
	now   Tick
	nodes []*node
	// net are the messages under way, sent all that ever left.
	net, sent []Message
	err       error

	// total is the number of all tokens.
	total Tokens
	// copies: other sites send what they like, also a lease that the site has.
	copies bool
	// written is set once a disk has changed since the last check.
	written bool
}

func newCluster(left map[SiteID]Tokens, rand func(SiteID) avantan.Rand) *cluster {
	c := &cluster{}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		c.total += left[id]
		cfg := &Config{Self: id, MaxItems: 2, Backoff: 50, MaxBackoff: 1000, Rand: rand(id)}
		if err := cfg.Validate(); err != nil {
			panic(err)
		}
		b := &books{self: id, left: left[id], c: c}
		n := &node{id: id, cfg: cfg, b: b, up: true, diskB: *b, sent: map[pair]string{}}
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

// step runs an input. Its output waits to be made durable.
func (c *cluster) step(n *node, in Input) Output {
	if in.Lost != "" {
		n.b.note(n.m.State(), in.Lost)
	}
	out := n.m.Step(c.now, in)
	if v, ok := errors.AsType[*violationError](out.Err); ok {
		c.fail("violation: %s: %w", n.id, v)
	}
	f := flush{}
	if out.Persist {
		n.kept = n.m.State().Clone()
		f.state, f.books = new(n.kept), *n.b
	}
	for i := range out.Messages {
		if err := out.Messages[i].Validate(); err != nil {
			c.fail("form: %s: %w", n.id, err)
		}
	}
	f.out = out.Messages
	n.flushes = append(n.flushes, f)
	return out
}

// serve lets clients change the books, in a transaction of its own. No step has asked to
// store a state with that.
func (c *cluster) serve(n *node, f func(b *books)) {
	f(n.b)
	n.flushes = append(n.flushes, flush{state: new(n.kept), books: *n.b})
}

// lose tells a site that another one is out for good.
func (c *cluster) lose(n *node, site SiteID) Output {
	if !slices.Contains(n.lost, site) {
		n.lost = append(slices.Clip(n.lost), site)
	}
	return c.step(n, Input{Lost: site})
}

// sync makes the oldest Output durable and lets its messages leave.
func (c *cluster) sync(n *node) {
	f := n.flushes[0]
	n.flushes = n.flushes[1:]
	if f.state != nil {
		c.written = true
		c.durable(n, &f)
		n.disk, n.diskB = *f.state, f.books
	}
	for i := range f.out {
		c.observe(n, &f.out[i])
	}
	c.net = append(c.net, f.out...)
	c.sent = append(c.sent, f.out...)
}

// durable checks that no number goes back, and none is left out.
func (c *cluster) durable(n *node, f *flush) {
	for _, g := range n.disk.Given {
		if f.state.given(g.Heir) < g.Number && !slices.Contains(n.lost, g.Heir) {
			c.fail("numbers: %s forgets %+v", n.id, g)
		}
	}
	for _, o := range c.nodes {
		was, is := n.diskB.took(&n.disk, o.id).Number, f.books.took(f.state, o.id).Number
		if is < was || is > was+1 {
			c.fail("numbers: %s has taken %d of %s after %d", n.id, is, o.id, was)
		}
	}
}

// observe looks at a message that leaves: all it reveals must be durable.
func (c *cluster) observe(n *node, m *Message) {
	ok := true
	mark := string(m.Estate.fingerprint(nil))
	if m.Kind == Bequeath {
		// It may have been acknowledged in the meantime, or dropped.
		ok = n.disk.given(m.To) >= m.Number || slices.Contains(n.lost, m.To)
		if o := n.disk.Open; o != nil && o.Heir == m.To && o.Number == m.Number {
			ok = bytes.Equal(o.Estate.fingerprint(nil), []byte(mark))
		}
		key := pair{m.To, m.Number}
		if before, sent := n.sent[key]; sent && before != mark {
			c.fail("numbers: %s has sent something else as %d: %s", n.id, m.Number, line(m))
		}
		n.sent[key] = mark
	}
	ok = ok && n.diskB.took(&n.disk, m.To).Number >= m.Taken
	if !ok {
		c.fail("durability: %s says what is not durable: %s", n.id, line(m))
	}
}

// crash loses all that is not durable. What is durable elsewhere is told again.
func (c *cluster) crash(n *node) {
	n.up, n.flushes = false, nil
	*n.b, n.kept = n.diskB, n.disk
	n.b.c = c
	n.m = New(n.cfg, n.b, n.disk.Clone())
	for _, site := range n.lost {
		c.step(n, Input{Lost: site})
	}
}

// receive hands a copy of a message to its receiver. A receiver refuses messages of lost
// sites.
func (c *cluster) receive(m *Message) Output {
	n := c.node(m.To)
	if slices.Contains(n.lost, m.From) {
		return Output{}
	}
	return c.step(n, Input{Receive: new(*m)})
}

// check asserts the invariants that hold after every event, for the present state of the
// sites and for their state if all crashed now.
func (c *cluster) check() error {
	if c.err != nil {
		return c.err
	}
	live, durable := make([]view, len(c.nodes)), make([]view, len(c.nodes))
	for i, n := range c.nodes {
		live[i], durable[i] = view{n.m.State(), n.b}, view{&n.disk, &n.diskB}
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

// copied is a lease of a site.
type copied struct {
	site  SiteID
	lease string
}

// sums are the parts of the laws.
type sums struct {
	// left and net are of all books, flying the tokens in none of them, owed those that
	// two sites lack.
	left, net, flying, owed Tokens
	// extra is what net has above the tokens that are out.
	extra Tokens
	// out are the tokens that clients have, without leases.
	out Tokens
	// twice are the leases that a leaver still has, and its heir has taken.
	twice map[copied]bool
	// exact is set unless a bequest was dropped.
	exact bool
}

// consistent checks the laws of the package documentation, exactly.
func (c *cluster) consistent(views []view) error {
	s := sums{exact: true, twice: map[copied]bool{}}
	for _, w := range views {
		if err := w.s.Validate(); err != nil {
			return fmt.Errorf("bounds: %s: %w", w.b.self, err)
		}
		s.left += w.b.left
		s.net += w.b.net
		s.out += w.b.plain
		for i := range w.b.dropped {
			s.exact = false
			if _, err := s.bequest(views, w.b.self, &w.b.dropped[i]); err != nil {
				return err
			}
		}
		if w.s.Open == nil {
			continue
		}
		taken, err := s.bequest(views, w.b.self, w.s.Open)
		if err != nil {
			return err
		}
		for _, item := range w.s.Open.Estate.Items {
			s.twice[copied{w.b.self, string(item.Data)}] = taken
		}
	}
	if err := s.leases(views); err != nil {
		return err
	}
	if sum := s.left + s.net - s.extra + s.flying + s.owed; sum != c.total {
		return fmt.Errorf("conservation: %d tokens, there are %d", sum, c.total)
	}
	if s.exact && s.net != s.out+s.extra {
		return fmt.Errorf("out: Σ net is %d, %d are out and %d count twice", s.net, s.out, s.extra)
	}
	if s.net < s.out {
		return fmt.Errorf("out: Σ net is %d, %d are out", s.net, s.out)
	}
	if s.left > c.total-s.out {
		return fmt.Errorf("safety: %d are left and %d out, there are %d", s.left, s.out, c.total)
	}
	return nil
}

// bequest adds a bequest that its leaver has not seen acknowledged, and reports whether it
// is taken.
func (s *sums) bequest(views []view, leaver SiteID, b *Bequest) (taken bool, err error) {
	i := slices.IndexFunc(views, func(w view) bool { return w.b.self == b.Heir })
	t := views[i].b.took(views[i].s, leaver)
	e := &b.Estate
	switch {
	case t.Number > b.Number || t.Number+1 < b.Number:
		return false, fmt.Errorf("order: %s has given %d to %s, which has taken %d", leaver, b.Number, b.Heir, t.Number)
	case t.Number < b.Number:
		s.flying += e.Left
		s.extra += max(-e.Net, 0)
		return false, nil
	}
	s.owed += e.Owed
	s.extra += max(e.Net, 0) + e.held()
	return true, nil
}

// leases adds the leases that live. Each has one site, or has ended once, unless an heir
// was lost on its way.
func (s *sums) leases(views []view) error {
	places := map[string]int{}
	for _, w := range views {
		for _, l := range w.b.leases {
			if !s.twice[copied{w.b.self, l.id}] {
				places[l.id]++
			}
		}
		for _, id := range w.b.ended {
			places[id]++
		}
	}
	for _, w := range views {
		for _, l := range w.b.made {
			if n := places[l.id]; n > 1 || s.exact && n != 1 {
				return fmt.Errorf("items: %d sites have %s, or have ended it", places[l.id], l.id)
			}
			if slices.ContainsFunc(views, func(w view) bool { return w.b.holds(l.id) && !s.twice[copied{w.b.self, l.id}] }) {
				s.out += l.tokens
			}
		}
	}
	return nil
}

// hold gives a site what it has from the beginning: tokens left, plain tokens out, and
// leases.
func (c *cluster) hold(n *node, left, plain Tokens, leases ...lease) {
	b := n.b
	c.total += left - b.left + plain
	b.left = left
	b.net += plain
	b.plain += plain
	for _, l := range leases {
		c.total += l.tokens
		b.left += l.tokens
		b.lend(l)
	}
	n.diskB = *b
}
