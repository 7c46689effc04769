package sched

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// world is a scheduler that takes each step when the test says so: the steps of workers,
// and the steps of callers between which others may come.
type world struct {
	s       *Scheduler[int]
	mode    Mode
	clients []*client
	script  []act // the steps of the control, in this order
	did     int
	seq     int
	ops     []*op // handed over or running, in that order
	giveUps int   // how many requests may be given up
}

// op is a request of a client.
type op struct {
	name  string
	keys  []string // none for a range
	from  string
	limit int
	write bool
	del   bool
	of    bool          // of the entries that the keys have when it is set up
	given []*Entry[int] // the entries of keys, once given

	id     int
	req    Request[int]
	seq    int
	state  opState
	err    error
	failed string
	w      *world
}

type opState uint8

const (
	unborn opState = iota
	pending
	runs
	done
	gone // given up
)

func write(keys ...string) *op { return &op{name: "write", keys: keys, write: true} }
func read(keys ...string) *op  { return &op{name: "read", keys: keys} }
func remove(key string) *op    { return &op{name: "delete", keys: []string{key}, write: true, del: true} }
func scan(from string) *op     { return &op{name: "scan", from: from, limit: 100} }

// of returns o for entries.
func of(o *op) *op {
	o.of = true
	return o
}

func (o *op) covers(key string) bool {
	if o.limit > 0 {
		return key >= o.from
	}
	return slices.Contains(o.keys, key)
}

// conflicts tells whether the order in which two requests run matters. A key that
// was absent when a request was handed over does not make it wait.
func (o *op) conflicts(x *op) bool {
	return (o.write || x.write) && slices.ContainsFunc(o.req.entries, func(e *Entry[int]) bool {
		return e != nil && slices.Contains(x.req.entries, e)
	})
}

// Run checks the order of runs against the order in which requests were handed over.
func (o *op) Run(r *Request[int]) {
	if o.state != pending && o.state != runs {
		o.failed = "ran in state " + fmt.Sprint(o.state)
	}
	o.state = done
	for _, x := range o.w.ops {
		if x == o || !o.conflicts(x) {
			continue
		}
		if x.seq < o.seq && x.state != done && x.state != gone {
			o.failed = fmt.Sprintf("ran before %s %v, which came before", x.name, x.keys)
		}
		if x.seq > o.seq && x.state == done {
			o.failed = fmt.Sprintf("ran after %s %v, which came after", x.name, x.keys)
		}
	}
	for _, e := range r.Entries() {
		if o.write {
			e.Value, e.Present = o.seq, !o.del
		} else if e != nil && e.dead.Load() && !o.of {
			o.failed = "ran on a dead entry"
		}
	}
	if o.of {
		o.look()
		return
	}
	// A key has the value that the requests before have left.
	for _, key := range []string{"a", "b", "c"} {
		if !o.covers(key) || o.write {
			continue
		}
		want := 0
		for _, x := range o.w.ops {
			if x.write && x.seq < o.seq && x.state != gone && x.covers(key) {
				want = x.seq
				if x.del {
					want = 0
				}
			}
		}
		got := 0
		for _, e := range r.Entries() {
			if e != nil && e.key == key && e.Present {
				got = e.Value
			}
		}
		if got != want {
			o.failed = fmt.Sprintf("read %d of %s, want %d", got, key, want)
		}
	}
}

// look checks the values in entries against the writes of the requests before.
func (o *op) look() {
	for _, e := range o.given {
		want := 0
		for _, x := range o.w.ops {
			if x.write && x.seq < o.seq && x.state != gone && slices.Contains(x.given, e) {
				want = x.seq
			}
		}
		if !o.write && e.Value != want {
			o.failed = fmt.Sprintf("read %d of %s, want %d", e.Value, e.key, want)
		}
	}
}

func (o *op) End(err error) {
	if o.state != gone || err == nil {
		o.failed = fmt.Sprintf("ended in state %d: %v", o.state, err)
	}
}

// client hands its requests over in sequence.
type client struct {
	ops    []*op
	next   int
	at     stage
	state  uint64
	locked int
	room   <-chan struct{}
}

type stage uint8

const (
	begin    stage = iota // resolve
	resolved              // take the locks and append, or take the next lock
	starved               // wait for room
	handed                // wait for the end
	inside                // run, in Callers mode
)

type act struct {
	name string
	do   func(w *world)
	free bool // waits for no job
}

// assign moves a key from the next switch on.
func assign(key string, p int) act {
	return act{name: fmt.Sprintf("assign %s %d", key, p), do: func(w *world) {
		if e := w.s.Entry(key); e != nil {
			if _, err := w.s.Assign(e, p); err != nil {
				panic(err)
			}
		}
	}}
}

// inserting adds a key, anew if it is there already.
func inserting(key string, p int) act {
	return act{name: fmt.Sprintf("insert %s %d", key, p), free: true, do: func(w *world) {
		if e := w.s.Entry(key); e != nil {
			w.s.Remove(e)
		}
		if _, err := w.s.Insert(key, p, 0); err != nil {
			panic(err)
		}
	}}
}

func removing(key string) act {
	return act{name: "remove " + key, free: true, do: func(w *world) { w.s.Remove(w.s.Entry(key)) }}
}

func switching() act { return act{name: "switch", do: func(w *world) { w.s.Switch(nil) }} }
func sweeping() act  { return act{name: "sweep", do: func(w *world) { w.s.Sweep() }} }

func newWorld(mode Mode, partitions, queue, giveUps int, script []act, clients ...[]*op) *world {
	o := Options[int]{Partitions: partitions, Mode: mode, Queue: queue, Place: RoundRobin}
	s, err := New(o)
	if err != nil {
		panic(err)
	}
	w := &world{s: s, mode: mode, script: script, giveUps: giveUps}
	for i, ops := range clients {
		c := &client{}
		for j, o := range ops {
			fresh := &op{id: 10*i + j, name: o.name, keys: o.keys, from: o.from, limit: o.limit, write: o.write, del: o.del, of: o.of, w: w}
			c.ops = append(c.ops, fresh)
		}
		w.clients = append(w.clients, c)
	}
	return w
}

// choices returns the number of possible next steps: the steps of clients, their giving
// up, the steps of workers, and the step of the control.
func (w *world) choices() int { return 2*len(w.clients) + len(w.s.parts) + 1 }

// take takes a choice, and reports whether it was possible.
func (w *world) take(i int) bool {
	n := len(w.clients)
	switch {
	case i < n:
		return w.clients[i].step(w)
	case i < 2*n:
		return w.clients[i-n].giveUp(w)
	case i < 2*n+len(w.s.parts):
		p := w.s.parts[i-2*n]
		if w.mode == Callers || p.parked {
			return false
		}
		p.step()
		return true
	default:
		if w.did == len(w.script) || w.mode == Callers && !w.script[w.did].free && !w.free() {
			return false
		}
		w.script[w.did].do(w)
		w.did++
		return true
	}
}

// free tells whether nobody has the lock of a partition.
func (w *world) free() bool {
	for _, p := range w.s.parts {
		if !p.run.TryLock() {
			return false
		}
		p.run.Unlock()
	}
	return true
}

func (c *client) step(w *world) bool {
	if c.next == len(c.ops) {
		return false
	}
	o := c.ops[c.next]
	r := &o.req
	switch c.at {
	case begin:
		access := Share
		if o.del {
			access = Alone
		} else if o.write {
			access = Create
		}
		switch {
		case o.of:
			if !o.give() { // a key has none
				c.advance()
				return true
			}
			r.Of(o.given, access, o)
		case o.limit > 0:
			r.Range(o.from, o.limit, access, o)
		case len(o.keys) == 1:
			r.One(o.keys[0], access, o)
		default:
			r.Several(o.keys, access, o)
		}
		if r.done == nil {
			r.done = make(chan struct{}, 1)
		}
		c.state, o.err = w.s.resolve(context.Background(), r, false, false)
		if o.err != nil && o.of {
			if !slices.ContainsFunc(o.given, (*Entry[int]).Gone) {
				o.failed = "refused, and all entries are there"
			}
			c.advance()
			return true
		}
		if o.err != nil { // no entry: it takes effect, as of now
			w.hand(o)
			o.Run(r)
			c.advance()
			return true
		}
		c.at = resolved
	case resolved:
		if w.mode == Callers {
			return c.lock(w, o)
		}
		if len(r.parts) == 0 {
			c.at = begin
			if w.s.current(r, c.state) {
				w.hand(o)
				o.Run(r)
				c.advance()
			}
			return true
		}
		r.ready()
		var ok bool
		c.room, ok = w.s.append(r, c.state)
		switch {
		case ok:
			w.hand(o)
			c.at = handed
		case c.room != nil:
			c.at = starved
		default:
			c.at = begin
		}
	case starved:
		select {
		case <-c.room:
			c.at = begin
		default:
			return false
		}
	case handed:
		select {
		case <-r.done:
			if o.state != done {
				o.failed = "ended, and has not run"
			}
			c.advance()
		default:
			return false
		}
	case inside:
		_, o.err = w.s.runLocked(r, r.access == Share)
		c.advance()
	}
	return true
}

// give finds the entries of a request of given entries, once. It reports whether all keys
// have entries.
func (o *op) give() bool {
	if o.given != nil {
		return true
	}
	for _, key := range o.keys {
		e := o.w.s.Entry(key)
		if e == nil {
			return false
		}
		o.given = append(o.given, e)
	}
	return true
}

// lock takes the next lock, or enters with all of them.
func (c *client) lock(w *world, o *op) bool {
	r := &o.req
	share := r.access == Share
	if c.locked < len(r.parts) {
		if !w.s.parts[r.parts[c.locked]].try(share) {
			return false
		}
		c.locked++
		return true
	}
	c.locked = 0
	if !w.s.current(r, c.state) {
		w.s.free(r.parts, share)
		c.at = begin
		return true
	}
	w.hand(o)
	for _, x := range w.ops {
		if x != o && x.state == runs && x.conflicts(o) {
			o.failed = fmt.Sprintf("runs beside %s %v", x.name, x.keys)
		}
	}
	o.state = runs
	c.at = inside
	return true
}

func (c *client) advance() {
	c.next++
	c.at = begin
}

func (c *client) giveUp(w *world) bool {
	if w.giveUps == 0 || c.at != handed {
		return false
	}
	o := c.ops[c.next]
	if !o.req.phase.CompareAndSwap(waiting, skipped) {
		return false
	}
	o.state = gone
	w.giveUps--
	c.advance()
	return true
}

// hand gives a request its place in the order.
func (w *world) hand(o *op) {
	w.seq++
	o.seq, o.state = w.seq, pending
	for _, e := range o.req.entries {
		if e != nil && e.dead.Load() {
			o.failed = "dispatched with a dead entry"
		}
	}
	w.ops = append(w.ops, o)
}

// broken describes a broken invariant, if there is any.
func (w *world) broken() string {
	for _, c := range w.clients {
		for _, o := range c.ops {
			if o.failed != "" {
				return fmt.Sprintf("%s %v: %s", o.name, o.keys, o.failed)
			}
		}
	}
	for _, p := range w.s.parts {
		waiting := int64(len(p.taken) - p.next)
		for _, r := range p.queue {
			if !r.synch {
				waiting++
			}
		}
		for _, r := range p.taken[p.next:] {
			if r.synch {
				waiting--
			}
		}
		if waiting != p.count.Load() || waiting > w.s.queue {
			return fmt.Sprintf("%d requests wait at %d, counted %d", waiting, p.id, p.count.Load())
		}
	}
	return ""
}

// stuck describes work left when nothing more can happen.
func (w *world) stuck() string {
	for i, c := range w.clients {
		if c.next < len(c.ops) {
			return fmt.Sprintf("client %d is stuck at its request %d", i, c.next)
		}
	}
	for _, p := range w.s.parts {
		if p.at.Load() != nil || len(p.queue) > 0 {
			return fmt.Sprintf("worker %d is stuck", p.id)
		}
	}
	for _, e := range w.s.Entries(nil, "", 100) {
		if e.queued.Load() != 0 {
			return fmt.Sprintf("%d requests wait for %s", e.queued.Load(), e.key)
		}
	}
	return ""
}

// mark returns the whole state that decides the possible next steps.
func (w *world) mark() string {
	var b strings.Builder
	name := func(r *Request[int]) string {
		if r == nil {
			return "-"
		}
		if r.synch {
			return fmt.Sprintf("s%d", r.arrived.Load())
		}
		return fmt.Sprintf("%d.%d.%d ", r.job.(*op).id, r.arrived.Load(), r.phase.Load())
	}
	state := w.s.state.Load()
	entry := func(e *Entry[int]) {
		if e == nil {
			b.WriteString(" nil")
			return
		}
		fmt.Fprintf(&b, " %s:%d:%d:%d:%t:%t", e.key, e.At(Epoch(state>>epochShift)),
			e.At(Epoch(state>>epochShift)+1), e.queued.Load(), e.dead.Load(), e.Present)
	}
	for i, c := range w.clients {
		fmt.Fprintf(&b, "|c%d %d %d %d", i, c.next, c.at, c.locked)
		if c.next < len(c.ops) {
			for _, e := range c.ops[c.next].given {
				last := slices.IndexFunc(w.ops, func(o *op) bool { return o.seq == e.Value })
				if last >= 0 {
					last = w.ops[last].id
				}
				fmt.Fprintf(&b, " %t:%d", e.dead.Load(), last)
			}
		}
		if c.next < len(c.ops) && c.at != begin {
			r := &c.ops[c.next].req
			fmt.Fprint(&b, r.parts, c.state == state, r.version == w.s.dir.version.Load(), r.versioned)
			for _, e := range r.entries {
				entry(e)
			}
			if c.room != nil {
				select {
				case <-c.room:
					b.WriteString(" room")
				default:
				}
			}
		}
	}
	for _, p := range w.s.parts {
		fmt.Fprintf(&b, "|p%d %t %s:", p.id, p.parked, name(p.at.Load()))
		for _, r := range slices.Concat(p.taken[p.next:], []*Request[int]{nil}, p.queue) {
			b.WriteString(name(r))
		}
	}
	for _, e := range w.s.Entries(nil, "", 100) {
		entry(e)
	}
	// Of the requests done before any open request, only the last writes are seen later.
	first := slices.IndexFunc(w.ops, func(o *op) bool { return o.state != done && o.state != gone })
	if first < 0 {
		first = len(w.ops)
	}
	for _, key := range []string{"a", "b", "c"} {
		last := -1
		for _, o := range w.ops[:first] {
			if o.write && o.state == done && o.covers(key) {
				last = o.id
			}
		}
		fmt.Fprintf(&b, "|%d", last)
	}
	for _, o := range w.ops[first:] {
		fmt.Fprintf(&b, "|%d %d", o.id, o.state)
	}
	fmt.Fprintf(&b, "|%d %d", w.did, w.giveUps)
	return b.String()
}
