package transfer

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
)

// books is a minimal ledger.
type books struct {
	self         SiteID
	left, target Tokens
	// net are the tokens acquired here less the tokens released here.
	net Tokens
	// full: it cannot be credited.
	full bool

	c *cluster
}

func (b *books) Left() (left, target Tokens) { return b.left, b.target }

func (b *books) Debit(receiver SiteID, amount Tokens) {
	if amount < 1 || amount > b.left || receiver == b.self {
		b.c.fail("debit: %s gives %d of %d to %s", b.self, amount, b.left, receiver)
	}
	b.left -= amount
}

var errFull = errors.New("full")

func (b *books) Credit(donor SiteID, amount Tokens) error {
	if b.full {
		return errFull
	}
	if amount < 1 || donor == b.self {
		b.c.fail("credit: %s receives %d of %s", b.self, amount, donor)
	}
	b.left += amount
	return nil
}

// flush is the part of an Output to be made durable and then sent.
type flush struct {
	state *State
	books books
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
	diskB   books
	flushes []flush
	// given are the transfers of each ask of a receiver that have become durable.
	given map[pair]Tokens
	// asks are the asks that have left, transfers the amounts of the transfers that have
	// left.
	asks      map[pair]bool
	transfers map[pair]Tokens
	// amounts are the tokens of all transfers made, durable or not.
	amounts map[pair]Tokens
	// lost are the sites that this site knows to be written off. Its Config sees seen, which
	// copies of the site share.
	lost []SiteID
	seen *[]SiteID
}

// pair names an ask or a transfer by the other site and the number.
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

	// The observer's knowledge: the number of all tokens, and the ends of rounds.
	total Tokens
	ended map[string]int
	// written is set once a disk has changed since the last check.
	written bool
}

func newCluster(left map[SiteID]Tokens, rand func(SiteID) avantan.Rand) *cluster {
	c := &cluster{ended: map[string]int{}}
	ids := slices.Sorted(maps.Keys(left))
	for _, id := range ids {
		c.total += left[id]
		cfg := &Config{Self: id, Members: ids, Window: 100, Backoff: 50, MaxBackoff: 1000, Rand: rand(id)}
		seen := new([]SiteID)
		cfg.Lost = func(site SiteID) bool { return slices.Contains(*seen, site) }
		if err := cfg.Validate(); err != nil {
			panic(err)
		}
		b := &books{self: id, left: left[id], c: c}
		n := &node{
			id: id, cfg: cfg, b: b, up: true, diskB: *b, given: map[pair]Tokens{}, asks: map[pair]bool{},
			transfers: map[pair]Tokens{}, amounts: map[pair]Tokens{}, seen: seen,
		}
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

// proposal asks all others, by the tokens that they really have left.
func (c *cluster) proposal(n *node, need Tokens) *Proposal {
	p := &Proposal{Need: need}
	for _, d := range c.nodes {
		if d != n {
			p.Donors = append(p.Donors, Donor{d.id, d.b.left})
		}
	}
	return p
}

// writeOff has a site know, durably, that another is written off.
func (c *cluster) writeOff(n *node, lost SiteID) {
	c.syncAll(n)
	if !slices.Contains(n.lost, lost) {
		n.lost = append(slices.Clone(n.lost), lost)
	}
}

// step runs an input. Its output waits to be made durable.
func (c *cluster) step(n *node, in Input) Output {
	*n.seen = n.lost
	left := n.b.left
	out := n.m.Step(c.now, in)
	for _, d := range n.m.State().Debits {
		if d.Amount > 0 {
			n.amounts[pair{d.Receiver, d.Seq}] = d.Amount
		}
	}
	if m := in.Receive; m != nil && slices.Contains(n.lost, m.From) && (n.b.left != left || out.Persist || out.Messages != nil) {
		c.fail("lost: %s listens to a site that is written off: %s", n.id, line(m))
	}
	if v, ok := errors.AsType[*violationError](out.Err); ok {
		c.fail("violation: %s: %w", n.id, v)
	}
	if out.Ended != nil {
		c.ended[ending(out.Ended)]++
	}
	f := flush{}
	if out.Persist {
		f.state, f.books = new(n.m.State().Clone()), *n.b
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

func ending(r *Result) string {
	switch {
	case r.Satisfied:
		return "satisfied"
	case r.Asked == 0:
		return "nobody to ask"
	case r.Silent > 0:
		return "window over"
	default:
		return "all answered"
	}
}

// sync makes the oldest Output durable and lets its messages leave.
func (c *cluster) sync(n *node) {
	f := n.flushes[0]
	n.flushes = n.flushes[1:]
	if f.state != nil {
		c.written = true
		c.durable(n, f.state)
		n.disk, n.diskB = *f.state, f.books
	}
	for i := range f.out {
		c.observe(n, &f.out[i])
	}
	c.net = append(c.net, f.out...)
	c.sent = append(c.sent, f.out...)
}

// durable notes the transfers that a transaction makes, and that no number goes
// back.
func (c *cluster) durable(n *node, st *State) {
	if st.Reserved < n.disk.Reserved {
		c.fail("numbers: %s reserves %d after %d", n.id, st.Reserved, n.disk.Reserved)
	}
	for _, d := range n.disk.Debits {
		if i, found := st.findDebit(d.Receiver); !found || st.Debits[i].Seq < d.Seq {
			c.fail("numbers: %s forgets %+v", n.id, d)
		}
	}
	for _, cr := range n.disk.Credits {
		if st.credited(cr.Donor) < cr.Seq {
			c.fail("numbers: %s forgets %+v", n.id, cr)
		}
	}
	for _, d := range st.Debits {
		var before uint64
		if i, found := n.disk.findDebit(d.Receiver); found {
			before = n.disk.Debits[i].Seq
		}
		if d.Seq > before {
			ask := pair{d.Receiver, d.Asked}
			if d.Seq > before+1 || n.given[ask] != 0 {
				c.fail("once: %s gives %+v, before %d, for an ask answered with %d", n.id, d, before, n.given[ask])
			}
			n.given[ask] = d.Amount
		}
	}
}

// observe looks at a message that leaves: all it reveals must be durable.
func (c *cluster) observe(n *node, m *Message) {
	ok := true
	switch m.Kind {
	case Ask:
		ok = m.Ask <= n.disk.Reserved && n.disk.credited(m.To) >= m.Seq
	case Transfer:
		i, found := n.disk.findDebit(m.To)
		// It may have been acknowledged in the meantime.
		ok = found && n.disk.Debits[i].Seq >= m.Seq
	case Ack:
		ok = n.disk.credited(m.To) >= m.Seq
	}
	if !ok {
		c.fail("durability: %s says what is not durable: %s", n.id, line(m))
	}
	switch m.Kind {
	case Ask:
		key := pair{m.To, m.Ask}
		if n.asks[key] {
			c.fail("numbers: %s asks again: %s", n.id, line(m))
		}
		n.asks[key] = true
	case Transfer:
		key := pair{m.To, m.Seq}
		if sent := n.transfers[key]; sent != 0 && sent != m.Amount {
			c.fail("numbers: %s sent %d before: %s", n.id, sent, line(m))
		}
		n.transfers[key] = m.Amount
	}
}

func (c *cluster) syncAll(n *node) {
	for len(n.flushes) > 0 {
		c.sync(n)
	}
}

// crash loses all that is not durable.
func (c *cluster) crash(n *node) {
	n.up, n.flushes = false, nil
	*n.b = n.diskB
	n.b.c = c
	n.m = New(n.cfg, n.b, n.disk.Clone())
}

// receive hands a copy of a message to its receiver.
func (c *cluster) receive(m *Message) Output {
	return c.step(c.node(m.To), Input{Receive: new(*m)})
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
		if len(n.m.cares) != len(n.m.state.Debits) {
			return fmt.Errorf("bounds: %s: %d cares, %d debits", n.id, len(n.m.cares), len(n.m.state.Debits))
		}
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

// consistent is the conservation of the package documentation, exactly: with the tokens
// that were under way to sites written off.
func (c *cluster) consistent(views []view) error {
	var sum Tokens
	credited := map[SiteID]*State{}
	for _, w := range views {
		if err := w.s.Validate(); err != nil {
			return fmt.Errorf("bounds: %s: %w", w.b.self, err)
		}
		if w.b.left < 0 {
			return fmt.Errorf("overdrawn: %s has %d", w.b.self, w.b.left)
		}
		sum += w.b.left + w.b.net
		credited[w.b.self] = w.s
	}
	for i, w := range views {
		for _, d := range w.s.Debits {
			got := credited[d.Receiver].credited(w.b.self)
			retired := Tokens(0)
			if n := c.nodes[i]; d.Amount == 0 && slices.Contains(n.lost, d.Receiver) {
				retired = n.amounts[pair{d.Receiver, d.Seq}]
			}
			if d.Seq > got {
				sum += d.Amount + retired
			}
			if d.Seq > got+1 || d.Seq > got && d.Amount+retired == 0 || got > d.Seq {
				return fmt.Errorf("order: %s has debited %+v, %s has credited %d", w.b.self, d, d.Receiver, got)
			}
		}
	}
	if sum != c.total {
		return fmt.Errorf("conservation: %d tokens, there are %d", sum, c.total)
	}
	return nil
}
