package handoff

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/search"
)

// TestSearch goes through all schedules of a few sites with a few bequests, requests of
// clients and crashes, to the end. A message that has left once can arrive at any time
// and any number of times, also never. A bequest may be sent again at any time. A site
// may be slow to make its work durable. The search checks the invariants after each
// event. It has no depth limit: when it ends, it has seen all possible states.
func TestSearch(t *testing.T) {
	for _, bound := range []bound{
		{
			name: "tokens left and out", sites: []holding{{left: 2, plain: 3}, {left: 1}},
			begins: 3, acquires: []int{0, 2}, releases: []int{1, 1}, crashes: 2,
		},
		{
			name: "debt", sites: []holding{{left: -2, plain: 3}, {left: 3}},
			begins: 2, acquires: []int{0, 1}, releases: []int{1, 1}, crashes: 2,
		},
		{
			name: "net below zero", sites: []holding{{left: 1, plain: -2}, {left: 0, plain: 3}},
			begins: 2, acquires: []int{0, 2}, releases: []int{1, 1}, crashes: 1,
		},
		{
			name: "leases", sites: []holding{{plain: 1, leases: []lease{{"x", 2}, {"y", 1}, {"z", 1}}}, {left: 2}},
			begins: 2, acquires: []int{0, 1}, ends: 2, crashes: 1,
		},
		{
			name: "heir lost", sites: []holding{{left: 1, plain: 1, leases: []lease{{"x", 1}}}, {left: 1}, {}},
			begins: 2, acquires: []int{0, 1, 1}, ends: 1, losses: 1,
		},
		{
			name: "leaver lost", sites: []holding{{left: 1, plain: -1}, {left: 1, plain: 2}},
			begins: 2, acquires: []int{0, 1}, releases: []int{1, 0}, crashes: 1, loser: 1,
		},
		{
			name: "both", sites: []holding{{left: 1, plain: 1}, {left: 2, plain: -1}},
			begins: 1, back: 1, acquires: []int{1, 1}, releases: []int{1, 0}, crashes: 1,
		},
		{
			name: "there and back", sites: []holding{{left: 1, leases: []lease{{"x", 2}}}, {left: 2, plain: 1}},
			begins: 1, back: 2, ends: 1, crashes: 1,
		},
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

// holding is what a site begins with.
type holding struct {
	left, plain Tokens
	leases      []lease
}

type bound struct {
	name  string
	sites []holding
	// begins are the bequests of the first site, to any other that is not lost; back
	// those of the second site to the first.
	begins, back int
	// acquires and releases are the requests of clients for a token at each site.
	acquires, releases []int
	// ends is how many leases may end, crashes how many sites may crash.
	ends, crashes int
	// losses is how many other sites may be lost for the first site. loser is a site
	// that may lose the first.
	losses, loser int
}

// world is a state of all sites with the network.
type world struct {
	*cluster
	// left are the events that may still happen.
	left bound
}

func searchAll(b bound) (int, error) {
	left := map[SiteID]Tokens{}
	for i := range b.sites {
		left[SiteID(rune('a'+i))] = 0
	}
	w := &world{cluster: newCluster(left, func(SiteID) avantan.Rand { return least{} }), left: b}
	for i, h := range b.sites {
		w.hold(w.nodes[i], h.left, h.plain, h.leases...)
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
	for i, n := range w.nodes {
		w.serving(i, n, do)
		if len(n.flushes) > 0 {
			do("sync "+string(n.id), func(c *world) { c.sync(c.nodes[i]) })
		}
		if w.left.crashes > 0 {
			do("crash "+string(n.id), func(c *world) {
				c.left.crashes--
				c.crash(c.nodes[i])
			})
		}
		if n.m.Open() {
			do("timer of "+string(n.id), func(c *world) {
				c.nodes[i].m.Retime(0)
				c.step(c.nodes[i], Input{})
			})
		}
	}
	w.leaving(do)
	for _, m := range w.sent {
		do(search.Line(func() string { return line(&m) }), func(c *world) { c.receive(&m) })
	}
}

// leaving adds the events of departures.
func (w *world) leaving(do func(what any, happen func(c *world))) {
	a, b := w.nodes[0], w.nodes[1]
	for _, heir := range w.nodes[1:] {
		if w.left.begins > 0 && !a.m.Open() && !slices.Contains(a.lost, heir.id) {
			do("begin "+string(a.id)+" to "+string(heir.id), func(c *world) {
				c.left.begins--
				c.step(c.nodes[0], Input{Begin: heir.id})
			})
		}
		if w.left.losses > 0 && !slices.Contains(a.lost, heir.id) {
			do("lost "+string(heir.id), func(c *world) {
				c.left.losses--
				c.lose(c.nodes[0], heir.id)
				c.trim(c.nodes[0])
			})
		}
	}
	if w.left.back > 0 && !b.m.Open() {
		do("begin "+string(b.id)+" to "+string(a.id), func(c *world) {
			c.left.back--
			c.step(c.nodes[1], Input{Begin: a.id})
		})
	}
	if l := w.left.loser; l > 0 {
		do(string(w.nodes[l].id)+" loses "+string(a.id), func(c *world) {
			c.left.loser = 0
			c.lose(c.nodes[l], a.id)
			c.trim(c.nodes[l])
		})
	}
}

// serving adds the events of clients.
func (w *world) serving(i int, n *node, do func(what any, happen func(c *world))) {
	one := func(what string, budget func(b *bound) *[]int, f func(b *books)) {
		if list := *budget(&w.left); i >= len(list) || list[i] == 0 {
			return
		}
		do(what+" at "+string(n.id), func(c *world) {
			list := budget(&c.left)
			*list = slices.Clone(*list)
			(*list)[i]--
			c.serve(c.nodes[i], f)
		})
	}
	if n.b.left > 0 {
		one("acquire", func(b *bound) *[]int { return &b.acquires }, func(b *books) { b.acquire(1) })
	}
	one("release", func(b *bound) *[]int { return &b.releases }, func(b *books) { b.release(1) })
	for _, l := range n.b.leases {
		if w.left.ends > 0 && !frozen(n.m.State(), l.id) {
			do("end "+l.id+" at "+string(n.id), func(c *world) {
				c.left.ends--
				c.serve(c.nodes[i], func(b *books) { b.end(l.id) })
			})
		}
	}
}

// step drops outputs that change nothing, so that the search comes to an end.
func (w *world) step(n *node, in Input) {
	w.cluster.step(n, in)
	w.trim(n)
}

func (w *world) receive(m *Message) {
	n := w.node(m.To)
	before := len(n.flushes)
	w.cluster.receive(m)
	if len(n.flushes) > before {
		w.trim(n)
	}
}

// trim forgets an output that changes no disk and sends nothing that has not
// been sent before or waits to be.
func (w *world) trim(n *node) {
	last := len(n.flushes) - 1
	f := &n.flushes[last]
	f.out = slices.DeleteFunc(slices.Clone(f.out), func(m Message) bool {
		return contains(w.sent, &m) || slices.ContainsFunc(n.flushes[:last], func(f flush) bool { return contains(f.out, &m) })
	})
	if f.state == nil && len(f.out) == 0 {
		n.flushes = n.flushes[:last]
	}
}

func contains(list []Message, m *Message) bool {
	mark := string(m.Fingerprint(nil))
	return slices.ContainsFunc(list, func(o Message) bool { return string(o.Fingerprint(nil)) == mark })
}

// sync leaves the network with each message once: it stays there for ever.
func (w *world) sync(n *node) {
	before := len(w.sent)
	w.cluster.sync(n)
	w.net = nil
	fresh := w.sent[before:]
	w.sent = w.sent[:before]
	for _, m := range fresh {
		if !contains(w.sent, &m) {
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
		d.sent = maps.Clone(n.sent)
		c.nodes[i] = &d
	}
	return &world{cluster: &c, left: w.left}
}

// Fingerprint implements search.World.
func (w *world) Fingerprint() string {
	var key []byte
	number := func(n int) { key = binary.AppendVarint(key, int64(n)) }
	messages := func(list []Message) { key = search.Set(key, list, (*Message).Fingerprint) }
	l := &w.left
	for _, n := range append(slices.Concat(l.acquires, l.releases), l.begins, l.back, l.ends, l.crashes, l.losses, l.loser) {
		number(n)
	}
	messages(w.sent)
	for _, n := range w.nodes {
		key = n.disk.Fingerprint(n.m.State().Fingerprint(key))
		key = n.diskB.fingerprint(n.b.fingerprint(key))
		number(len(n.lost))
		number(len(n.flushes))
		for _, f := range n.flushes {
			if f.state == nil {
				number(0)
			} else {
				number(1)
				key = f.state.Fingerprint(f.books.fingerprint(key))
			}
			messages(f.out)
		}
	}
	return string(key)
}
