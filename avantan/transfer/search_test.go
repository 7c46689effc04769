package transfer

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/search"
)

// TestSearch goes through all schedules of a few sites with a few rounds and crashes, to
// the end. A message that has left once can arrive at any time and any number of times,
// also never. A timer may fire at any time. A site may be slow to make its work durable.
// The search checks the invariants after each event. It has no depth limit: when it ends,
// it has seen all possible states.
func TestSearch(t *testing.T) {
	for _, bound := range []bound{
		{name: "two donors", left: []Tokens{0, 2, 2}, need: []Tokens{3, 0, 0}, rounds: []int{2, 0, 0}, crashes: 1},
		{name: "two donors, more crashes", left: []Tokens{0, 2, 2}, need: []Tokens{3, 0, 0}, rounds: []int{1, 0, 0}, crashes: 3},
		{name: "pair", left: []Tokens{0, 6}, need: []Tokens{2, 0}, rounds: []int{3, 0}, crashes: 2},
		{name: "to and fro", left: []Tokens{1, 3}, need: []Tokens{2, 2}, rounds: []int{2, 1}, crashes: 1},
		{name: "two ask", left: []Tokens{2, 2, 0}, need: []Tokens{0, 2, 2}, rounds: []int{0, 1, 1}, crashes: 1},
		{
			name: "a receiver is lost", left: []Tokens{0, 3, 2}, need: []Tokens{2, 0, 2}, rounds: []int{1, 0, 1}, crashes: 1,
			lost: "a",
		},
		{name: "a donor is lost", left: []Tokens{0, 2, 2}, need: []Tokens{3, 0, 0}, rounds: []int{2, 0, 0}, crashes: 1, lost: "c"},
	} {
		t.Run(bound.name, func(t *testing.T) {
			t.Parallel()
			states, err := searchAll(bound)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d states", states)
		})
	}
}

type bound struct {
	name string
	// left are the tokens that each site begins with, need the tokens that it asks for in
	// each of its rounds.
	left, need []Tokens
	rounds     []int
	crashes    int
	// lost is a site that is written off; empty for none. It does not learn that.
	lost SiteID
}

// world is a state of all sites with the network.
type world struct {
	*cluster
	// rounds are the rounds left to begin.
	rounds  []int
	crashes int
	bound   *bound
}

func searchAll(b bound) (int, error) {
	left := map[SiteID]Tokens{}
	for i, n := range b.left {
		left[SiteID(rune('a'+i))] = n
	}
	w := &world{
		cluster: newCluster(left, func(SiteID) avantan.Rand { return least{} }),
		rounds:  slices.Clone(b.rounds), crashes: b.crashes, bound: &b,
	}
	return search.All(w, func(*world) error { return nil })
}

// Check implements search.World.
func (w *world) Check() error {
	w.written = true
	return w.check()
}

// Next implements search.World.
func (w *world) Next(do func(what any, happen func(c *world))) {
	b := w.bound
	for i, n := range w.nodes {
		if w.rounds[i] > 0 && !n.m.Open() {
			do("begin "+string(n.id), func(c *world) {
				c.rounds[i]--
				// Every round takes the others' tokens from the beginning.
				p := &Proposal{Need: b.need[i]}
				for k, d := range c.nodes {
					if k != i {
						p.Donors = append(p.Donors, Donor{d.id, b.left[k]})
					}
				}
				c.step(c.nodes[i], Input{Begin: p})
			})
		}
		if b.lost != "" && n.id != b.lost && n.lost == nil {
			do(string(n.id)+" learns of the loss", func(c *world) { c.writeOff(c.nodes[i], b.lost) })
		}
		if len(n.flushes) > 0 {
			do("sync "+string(n.id), func(c *world) { c.sync(c.nodes[i]) })
		}
		if w.crashes > 0 {
			do("crash "+string(n.id), func(c *world) {
				c.crashes--
				c.crash(c.nodes[i])
			})
		}
		for _, timer := range []Timer{TimerRound, TimerRepeat, 0} {
			if timer == TimerRound && !n.m.Open() || timer == TimerRepeat && n.m.State().InFlight() == 0 || timer == 0 && n.lost == nil {
				continue
			}
			do(fmt.Sprintf("timer %d of %s", timer, n.id), func(c *world) {
				c.nodes[i].m.Retime(func(of Timer, _ SiteID, _ Tick) Tick {
					if of == timer {
						return 0
					}
					return 1
				})
				c.step(c.nodes[i], Input{})
			})
		}
	}
	for _, m := range w.sent {
		do(search.Line(func() string { return line(&m) }), func(c *world) { c.receive(&m) })
	}
}

// step drops outputs that change nothing, so that the search comes to an end.
func (w *world) step(n *node, in Input) {
	w.cluster.step(n, in)
	w.trim(n)
}

func (w *world) receive(m *Message) {
	w.cluster.receive(m)
	w.trim(w.node(m.To))
}

// trim forgets an output that changes no disk and sends nothing that has not
// been sent before or waits to be.
func (w *world) trim(n *node) {
	last := len(n.flushes) - 1
	f := &n.flushes[last]
	f.out = slices.DeleteFunc(slices.Clone(f.out), func(m Message) bool {
		return slices.Contains(w.sent, m) || slices.ContainsFunc(n.flushes[:last], func(f flush) bool { return slices.Contains(f.out, m) })
	})
	if f.state == nil && len(f.out) == 0 {
		n.flushes = n.flushes[:last]
	}
}

// sync leaves the network with each message once: it stays there for ever.
func (w *world) sync(n *node) {
	before := len(w.sent)
	w.cluster.sync(n)
	w.net = nil
	fresh := w.sent[before:]
	w.sent = w.sent[:before]
	for _, m := range fresh {
		if !slices.Contains(w.sent, m) {
			w.sent = append(w.sent, m)
		}
	}
}

func (w *world) crash(n *node) {
	w.cluster.crash(n)
	n.up = true
}

// Clone implements search.World.
func (w *world) Clone() *world {
	c := *w.cluster
	c.sent, c.nodes = slices.Clone(w.sent), make([]*node, len(w.nodes))
	for i, n := range w.nodes {
		d := *n
		d.b = new(*n.b)
		d.b.c = &c
		d.m = n.m.Clone(d.b)
		d.flushes = slices.Clone(n.flushes)
		d.given, d.asks, d.transfers = maps.Clone(n.given), maps.Clone(n.asks), maps.Clone(n.transfers)
		d.amounts = maps.Clone(n.amounts)
		c.nodes[i] = &d
	}
	return &world{cluster: &c, rounds: slices.Clone(w.rounds), crashes: w.crashes, bound: w.bound}
}

// Fingerprint implements search.World.
func (w *world) Fingerprint() string {
	var key []byte
	number := func(n int) { key = binary.AppendVarint(key, int64(n)) }
	messages := func(list []Message) { key = search.Set(key, list, (*Message).Fingerprint) }
	number(w.crashes)
	messages(w.sent)
	for i, n := range w.nodes {
		number(w.rounds[i])
		number(int(n.b.left))
		number(int(n.diskB.left))
		number(len(n.lost))
		for _, d := range n.m.State().Debits {
			number(int(n.amounts[pair{d.Receiver, d.Seq}]))
		}
		key = n.disk.Fingerprint(n.m.Fingerprint(key))
		number(len(n.flushes))
		for _, f := range n.flushes {
			if f.state == nil {
				number(0)
			} else {
				number(1)
				number(int(f.books.left))
				key = f.state.Fingerprint(key)
			}
			messages(f.out)
		}
		var given []string
		for ask, amount := range n.given {
			given = append(given, fmt.Sprint(ask, amount))
		}
		slices.Sort(given)
		key = append(key, strings.Join(given, ";")...)
	}
	return string(key)
}
