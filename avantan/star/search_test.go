package star

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/search"
)

// TestSearchLostCohort goes through all schedules of one instance of a few sites in which
// a cohort is written off, to the end. A message that has left once can arrive at any time
// and any number of times, also never. A timer may fire at any time. Each site learns of
// the loss at a time of its own; the lost site never does, and goes on alone. The search
// checks the invariants after each event: so it sees a site that is lost before its vote,
// after it, and after it has committed or aborted. It has no depth limit: when it ends, it
// has seen all possible states.
func TestSearchLostCohort(t *testing.T) {
	searchAll(t, []bound{
		{name: "gives", left: []Tokens{0, 1, 8}, lost: []SiteID{"c"}, crashes: 1},
		{name: "gains", left: []Tokens{1, 8, 0}, lost: []SiteID{"c"}, crashes: 1},
		{name: "pair", left: []Tokens{0, 8}, lost: []SiteID{"b"}, crashes: 2},
	})
}

// TestSearchLostLeader is TestSearchLostCohort with the leader as the lost site.
func TestSearchLostLeader(t *testing.T) {
	searchAll(t, []bound{
		{name: "gives", left: []Tokens{8, 0, 1}, lost: []SiteID{"a"}, crashes: 1},
		{name: "gains", left: []Tokens{0, 8, 1}, lost: []SiteID{"a"}, crashes: 1},
	})
}

// TestSearchTwoLost is TestSearchLostCohort with a second write-off, at any time.
func TestSearchTwoLost(t *testing.T) {
	searchAll(t, []bound{
		{name: "cohorts", left: []Tokens{1, 8, 0}, lost: []SiteID{"b", "c"}},
		{name: "leader and cohort", left: []Tokens{8, 1, 0}, lost: []SiteID{"a", "c"}},
	})
}

func searchAll(t *testing.T, bounds []bound) {
	t.Helper()
	for _, b := range bounds {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			seen, err := searchOne(b)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", seen)
			if seen.committed == 0 || seen.aborted == 0 || (seen.concluded == 0) != (len(b.lost) == 1 && b.lost[0] == "a") {
				t.Error("some end was never seen, or an end that cannot be")
			}
		})
	}
}

type bound struct {
	name string
	// left are the tokens that each site begins with; the first site leads.
	left []Tokens
	// lost are the sites that may be written off.
	lost    []SiteID
	crashes int
}

// found counts the states that a search has seen, and the ends of the instance at sites
// that are not lost.
type found struct{ states, healed, committed, aborted, concluded int }

// world is a state of all sites with the network.
type world struct {
	*cluster
	// keys are encodings of the messages sent.
	keys    []string
	begun   bool
	crashes int
	bound   *bound
	// tried are inputs that were tried, and names are short names of long keys. All worlds
	// share both.
	tried map[string]only
	names map[string]string
}

// healEvery is how many states one is healed of.
const healEvery = 20

func searchOne(b bound) (f found, err error) {
	left := map[SiteID]Tokens{}
	for i, n := range b.left {
		left[SiteID(rune('a'+i))] = n
	}
	w := &world{cluster: newCluster(left, 2, func(SiteID) avantan.Rand { return least{} }), crashes: b.crashes, bound: &b, tried: map[string]only{}, names: map[string]string{}}
	w.now = 1
	_, err = search.All(w, func(w *world) error {
		f.states++
		for _, n := range w.nodes {
			f.committed, f.concluded = f.committed+len(n.b.got), f.concluded+len(n.b.ended)
		}
		for id := range w.values {
			if w.anyAborted(id) {
				f.aborted++
			}
		}
		if f.states%healEvery != 0 {
			return nil
		}
		f.healed++
		return w.Clone().heal(b.lost)
	})
	return f, err
}

// Check implements search.World. It adds to the invariants of the cluster that all sites
// together never hold more than the limit that they may grant, the lost site included.
func (w *world) Check() error {
	w.repeat()
	w.written = true
	if err := w.check(); err != nil {
		return err
	}
	var usable Tokens
	for _, n := range w.nodes {
		usable += n.b.left + n.b.net
	}
	if usable > w.total {
		return fmt.Errorf("over-granted: %d tokens to use, the limit is %d", usable, w.total)
	}
	return nil
}

// act is something that can happen at a site.
type act struct {
	what    string
	do      func(w *world, n *node)
	receive *Message
}

// timers are the time-outs that a site may wait for, and a wake without any.
func (w *world) timers(n *node) []act {
	fire := func(what string, of func(Timer, ID) bool) act {
		return act{what, func(w *world, n *node) {
			n.m.Retime(func(timer Timer, id ID, _ Tick) Tick {
				if of(timer, id) {
					return 0
				}
				return math.MaxUint64
			})
			w.settle(n, Input{})
		}, nil}
	}
	list := []act{fire("wakes", func(Timer, ID) bool { return false })}
	if _, collects := n.m.Collecting(); collects {
		list = append(list, fire("settles for less", func(timer Timer, _ ID) bool { return timer == TimerCollect }))
	}
	for _, sl := range n.m.State().Slices {
		of := func(late bool) func(Timer, ID) bool {
			return func(timer Timer, id ID) bool {
				return id == sl.ID && (timer == TimerSlice || late && timer == TimerLate)
			}
		}
		list = append(list, fire("looks after its slice", of(false)))
		if n.m.Running(TimerLate, sl.ID) {
			list = append(list, fire("loses patience", of(true)))
		}
	}
	return list
}

// Next implements search.World.
func (w *world) Next(next func(what any, happen func(c *world))) {
	b := w.bound
	do := func(n *node, a act) {
		told := search.Line(func() string {
			if a.receive != nil {
				return line(a.receive)
			}
			return string(n.id) + " " + a.what
		})
		next(told, func(c *world) { a.do(c, c.node(n.id)) })
	}
	for i, n := range w.nodes {
		if i == 0 && !w.begun {
			do(n, act{"begins", func(w *world, n *node) {
				w.begun = true
				w.settle(n, Input{Begin: &Proposal{Press: avantan.PressAll, Short: math.MaxInt64}})
			}, nil})
		}
		if w.crashes > 0 {
			do(n, act{"crashes", func(w *world, n *node) {
				w.crashes--
				w.crash(n)
				n.up = true
				w.settle(n, Input{})
			}, nil})
		}
		for _, lost := range b.lost {
			at, _ := n.cfg.index(lost)
			if n.lost.has(at) || slices.Contains(b.lost, n.id) && (lost == n.id || n.id == b.lost[0]) {
				continue
			}
			do(n, act{"learns of the loss of " + string(lost), func(w *world, n *node) { w.writeOff(n, lost) }, nil})
		}
		key := w.name(n.fingerprint(nil))
		for _, a := range w.inputs(n) {
			if !w.only(n, key, &a).unchanged {
				do(n, a)
			}
		}
	}
}

// settle makes a step and its messages durable. Messages stay in the network for ever, each
// once.
func (w *world) settle(n *node, in Input) {
	before := len(w.sent)
	w.cluster.settle(n, in)
	w.net = nil
	n.m.Simplify()
	fresh := w.sent[before:]
	w.sent = w.sent[:before]
	for i := range fresh {
		w.send(&fresh[i])
	}
}

// name returns a short name of a key.
func (w *world) name(key []byte) string {
	short, known := w.names[string(key)]
	if !known {
		short = string(binary.AppendUvarint(nil, uint64(len(w.names))))
		w.names[string(key)] = short
	}
	return short
}

// send puts a message into the network, and reports whether it is new there.
func (w *world) send(m *Message) bool {
	key := w.name(m.Fingerprint(nil))
	if slices.Contains(w.keys, key) {
		return false
	}
	w.sent, w.keys = append(w.sent, *m), append(w.keys, key)
	return true
}

// inputs are the timers of a site and all messages to it.
func (w *world) inputs(n *node) []act {
	list := w.timers(n)
	for i := range w.sent {
		if m := &w.sent[i]; m.To == n.id {
			list = append(list, act{w.keys[i], func(w *world, n *node) { w.settle(n, Input{Receive: new(cloneMessage(m))}) }, m})
		}
	}
	return list
}

// only is what an input does at a site that it leaves as it was: it sends messages.
type only struct {
	unchanged bool
	sends     []Message
}

// only tries an input, once for each state of a site.
func (w *world) only(n *node, key string, a *act) only {
	if o, known := w.tried[key+a.what]; known {
		return o
	}
	c := w.Clone()
	c.sent, c.keys = nil, nil
	at := c.node(n.id)
	a.do(c, at)
	o := only{unchanged: w.name(at.fingerprint(nil)) == key, sends: c.sent}
	w.tried[key+a.what] = o
	return o
}

// repeat lets sites take all steps at once that only send: more messages never prevent
// anything, and need not arrive.
func (w *world) repeat() {
	for again := true; again; {
		again = false
		for _, n := range w.nodes {
			key := w.name(n.fingerprint(nil))
			for _, a := range w.inputs(n) {
				o := w.only(n, key, &a)
				if !o.unchanged {
					continue
				}
				for i := range o.sends {
					if m := &o.sends[i]; w.send(m) {
						w.observe(n, m)
						again = true
					}
				}
			}
		}
	}
}

// heal lets all sites that are not lost know of all losses, and reach each other alone.
// Then no instance with a lost site may be left.
func (w *world) heal(lost []SiteID) error {
	var all siteSet
	for _, site := range lost {
		i, _ := w.nodes[0].cfg.index(site)
		all.add(i)
	}
	w.net = nil
	for i, n := range w.nodes {
		if n.up = !all.has(i); n.up {
			n.lost = all
			n.m.Retime(func(Timer, ID, Tick) Tick { return w.now })
		}
	}
	s := &sim{cluster: w.cluster}
	return s.rest()
}

// Clone implements search.World.
func (w *world) Clone() *world {
	c := *w.cluster
	c.sent, c.nodes = slices.Clone(w.sent), make([]*node, len(w.nodes))
	c.values, c.decided, c.failed = maps.Clone(w.values), maps.Clone(w.decided), map[Failure]int{}
	c.votes = make(map[ID]map[SiteID]vote, len(w.votes))
	for id, votes := range w.votes {
		c.votes[id] = maps.Clone(votes)
	}
	for i, n := range w.nodes {
		d := *n
		d.b, d.diskB = n.b.clone(), n.diskB.clone()
		d.b.c, d.diskB.c = &c, &c
		d.m = n.m.Clone(d.b)
		d.disk = n.disk.Clone()
		d.elected = maps.Clone(n.elected)
		c.nodes[i] = &d
	}
	return &world{cluster: &c, keys: slices.Clone(w.keys), begun: w.begun, crashes: w.crashes, bound: w.bound, tried: w.tried, names: w.names}
}

// Fingerprint implements search.World.
func (w *world) Fingerprint() string {
	key := appendBools(nil, w.begun)
	number := func(n int) { key = binary.AppendVarint(key, int64(n)) }
	number(w.crashes)
	keys := slices.Sorted(slices.Values(w.keys))
	number(len(keys))
	for _, p := range keys {
		key = append(key, p...)
	}
	for _, n := range w.nodes {
		key = append(key, w.name(n.fingerprint(nil))...)
		for _, votes := range w.votes {
			number(int(votes[n.id]))
		}
	}
	return string(key)
}

func (n *node) fingerprint(key []byte) []byte {
	key = n.disk.Fingerprint(n.m.Fingerprint(append(key, n.id...)))
	key = binary.AppendUvarint(key, uint64(n.lost))
	for _, b := range []*books{n.b, n.diskB} {
		key = binary.AppendVarint(key, int64(b.left))
		key = append(key, byte(len(b.offers)), byte(len(b.got)), byte(len(b.ended)))
	}
	return key
}
