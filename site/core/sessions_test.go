package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/internal/session"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// sessionRig is a table of requests beside a slow, obvious one, with clients that name their
// requests in sessions.
type sessionRig struct {
	t      *testing.T
	random *rand.Rand
	table  requestTable
	now    Tick
	// block is being gathered, disk has the blocks that are not deleted.
	block stored.Block
	disk  []stored.Block
	// last has the last record of each key, and in the sequence of its block.
	last    map[attempt.Key]stored.Request
	in      map[attempt.Key]uint64
	clients []*sessionClient
	longest int
	most    int
	seen    struct{ rings, strays, acked, served int }
}

// sessionClient is a client: its requests below acked are acknowledged.
type sessionClient struct {
	id          session.ID
	next, acked uint64
	answered    map[uint64]bool
	hashed      bool
}

const (
	sessionKeep  = 50 // ticks
	sessionSteps = 600
)

func (r *sessionRig) begin() {
	c := &sessionClient{answered: make(map[uint64]bool), hashed: r.random.IntN(5) == 0}
	for i := range c.id {
		c.id[i] = byte(r.random.Uint32())
	}
	r.clients = append(r.clients, c)
}

func (c *sessionClient) key(sequence uint64) attempt.Key {
	if c.hashed {
		return attempt.KeyOf(fmt.Sprintf("%x %d", c.id, sequence))
	}
	return attempt.OfSession(c.id, sequence)
}

// ask has a client make its next request, or repeat a request. A request with an answer must
// not be new to the table before the retention of its answer ends.
func (r *sessionRig) ask() {
	c := r.clients[r.random.IntN(len(r.clients))]
	sequence := c.next
	switch r.random.IntN(10) {
	case 0:
		if c.next > 0 {
			sequence = r.random.Uint64N(c.next) // a repeat, perhaps a late duplicate
		}
	case 1:
		sequence += r.random.Uint64N(40) // requests of a session come in any order, and to several sites
	}
	key := c.key(sequence)
	shard := !c.hashed && r.random.IntN(2) == 0
	if !c.hashed && !shard {
		r.table.acknowledge(&key, min(c.acked, sequence))
	}
	r.check(key, sequence < c.acked && !c.hashed)
	_, known := r.table.find(key)
	known = known || r.table.acknowledged(&key)
	q := stored.Request{
		Key: key, Body: r.random.Uint64(), Kind: stored.AcquireRequest, State: stored.Ran, Attempt: attempt.First,
		Generation: uint64(r.random.IntN(3)), Tokens: Tokens(r.random.IntN(9)), Left: Tokens(r.random.IntN(9) - 4),
	}
	if r.random.IntN(20) == 0 {
		q.Tokens = 1 << 40 // fits no slot
	}
	if r.random.IntN(10) == 0 {
		q.Kind = stored.AllRequest
		q.Parts = make([]stored.Part, 1+r.random.IntN(3))
	}
	if of, _, _ := key.Session(); shard {
		if r.table.ringsOf(of).serve(rememberedOf(&q, portion.Nobody), min(c.acked, sequence), r.table.next) {
			if known {
				r.t.Fatalf("a shard serves a repeat of sequence %d", sequence)
			}
			r.seen.served++
			r.made(c, &q, sequence)
			return
		}
		r.table.acknowledge(&key, min(c.acked, sequence))
	}
	if known {
		return
	}
	tenant := r.table.held.Take(fmt.Sprint("t", r.random.IntN(3)), 1)
	if r.random.IntN(2) == 0 {
		r.table.add(&q, tenant)
	} else if !r.table.addNew(&q, tenant) {
		r.t.Fatalf("a new request of sequence %d is not taken", sequence)
	}
	r.made(c, &q, sequence)
}

// made notes a request that was recorded, and mostly has its client have the answer.
func (r *sessionRig) made(c *sessionClient, q *stored.Request, sequence uint64) {
	c.next = max(c.next, sequence+1)
	r.record(q)
	if r.random.IntN(4) > 0 {
		c.answered[sequence] = true
		for ; c.answered[c.acked]; c.acked++ {
			delete(c.answered, c.acked)
		}
	}
}

// record notes a record that was added.
func (r *sessionRig) record(q *stored.Request) {
	r.block.Records = append(r.block.Records, *q)
	r.last[q.Key], r.in[q.Key] = *q, r.table.next
}

// again records another state of a request.
func (r *sessionRig) again() {
	for key := range r.last {
		old, found := r.table.find(key)
		if !found {
			continue
		}
		q := old.record(key, stored.Undone, old.attempt+1)
		if r.random.IntN(4) == 0 {
			q.Attempt = 1 << 20 // fits no slot
		}
		r.table.held.More(old.tenant, 1)
		r.table.add(&q, old.tenant)
		r.record(&q)
		return
	}
}

// check compares the table's record of a request with the last record added. acked says that the
// client has acknowledged the request.
func (r *sessionRig) check(key attempt.Key, acked bool) {
	r.t.Helper()
	got, found := r.table.find(key)
	want, known := r.last[key]
	kept := known && r.in[key] >= r.oldest()
	switch refused := r.table.acknowledged(&key); {
	case refused && !acked:
		r.t.Fatalf("%x is refused as acknowledged, and is not", key)
	case found && !known:
		r.t.Fatalf("%x was never recorded, and is found", key)
	case found && (got.body != want.Body || got.state != want.State || got.attempt != want.Attempt || got.tokens != want.Tokens || got.left != want.Left):
		r.t.Fatalf("%x is found as %+v, want %+v", key, got, want)
	case kept && !found && !refused:
		r.t.Fatalf("%x was recorded in block %d of %d, and is forgotten", key, r.in[key], r.table.next)
	case kept && !found && !acked:
		r.t.Fatalf("%x was not acknowledged, and is forgotten", key)
	}
	if acked && !found {
		r.seen.acked++
	}
}

// oldest is the sequence of the oldest block that is to be remembered.
func (r *sessionRig) oldest() uint64 {
	if r.table.blocks.len() == 0 {
		return r.table.next
	}
	return r.table.blocks.at(r.table.blocks.begin).sequence
}

// seal ends a block, and forgets old ones.
func (r *sessionRig) seal() {
	r.now++
	if len(r.block.Records) > 0 {
		r.table.seal(&r.block, input.Now{Tick: r.now, Wall: int64(r.now)})
		b := r.block
		b.Records, b.Sessions = slices.Clone(b.Records), slices.Clone(b.Sessions)
		r.disk = append(r.disk, b)
		r.block = stored.Block{Records: r.block.Records[:0]}
	}
	if below := r.table.expire(r.now, sessionKeep, 1000); below > 0 {
		r.disk = slices.DeleteFunc(r.disk, func(b stored.Block) bool { return b.Sequence < below })
	}
	r.measure()
}

// rings are the rings of the table.
func (r *sessionRig) rings() (all []*ring) {
	for i := range r.table.rings {
		for _, ring := range r.table.rings[i].of {
			all = append(all, ring)
		}
	}
	return all
}

// measure compares the counts of the table with its contents.
func (r *sessionRig) measure() {
	t := &r.table
	records, places := 0, 0
	for _, ring := range r.rings() {
		n := 0
		for s := ring.first; s < ring.end; s++ {
			key := attempt.OfSession(ring.of, s)
			if ring.get(&key, s) != nil {
				n++
			}
		}
		if n != ring.records || len(ring.slots) > r.longest {
			r.t.Fatalf("a ring of %d places holds %d records, and counts %d", len(ring.slots), n, ring.records)
		}
		records, places = records+n, places+ringHead+len(ring.slots)
	}
	if counted, placesCounted := t.inRings(); records != counted || places != placesCounted {
		r.t.Fatalf("rings hold %d records in %d places, and count %d in %d", records, places, counted, placesCounted)
	}
	if all, want := t.held.All(), t.index.len+places+t.partCount; all != want || t.size() != want {
		r.t.Fatalf("%d are held, want %d; size %d", all, want, t.size())
	}
	strays := 0
	for i := range t.rings {
		for _, n := range t.rings[i].strays {
			strays += n
		}
	}
	r.seen.rings += records
	r.seen.strays += strays
}

// restart makes another table of what is on the disk.
func (r *sessionRig) restart() {
	r.block = stored.Block{}
	clear(r.last)
	clear(r.in)
	for _, b := range r.disk {
		for _, q := range b.Records {
			r.last[q.Key], r.in[q.Key] = q, b.Sequence
		}
	}
	r.table = newRequestTable(r.most, r.longest)
	from := stored.Restored{Blocks: stored.BlockList(r.disk)}
	if err := r.table.restore(&from, 0, newTenantsOf(&Config{TenantSegments: 1}, &from)); err != nil {
		r.t.Fatal(err)
	}
	r.measure()
}

// TestSessions compares the table of requests with a slow, obvious one, while clients repeat and
// acknowledge requests, blocks are forgotten, and the site restarts. The table knows each
// request until its retention ends, and refuses only acknowledged requests as acknowledged.
func TestSessions(t *testing.T) {
	var rings, strays, acked, served int
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			r := &sessionRig{
				t: t, random: random, last: make(map[attempt.Key]stored.Request), in: make(map[attempt.Key]uint64),
				longest: []int{8, 64, session.MaxOpen}[seed%3], most: []int{100, 1 << 20}[seed/3%2], now: 1,
			}
			r.table = newRequestTable(r.most, r.longest)
			for range sessionSteps {
				switch n := random.IntN(100); {
				case n < 3 || len(r.clients) == 0:
					r.begin()
				case n < 75:
					r.ask()
				case n < 80:
					r.again()
				case n < 99:
					r.seal()
				default:
					r.restart()
				}
			}
			for key, q := range r.last {
				if _, sequence, ok := q.Key.Session(); ok {
					at := slices.IndexFunc(r.clients, func(c *sessionClient) bool { return !c.hashed && c.key(sequence) == key })
					r.check(key, sequence < r.clients[at].acked)
				} else {
					r.check(key, false)
				}
			}
			// At the end all is forgotten, and nothing counted.
			for range 4 {
				r.seal()
				r.now += sessionKeep
			}
			if n := r.table.held.All(); n != 0 || r.table.len() != 0 {
				t.Fatalf("%d are held once all is forgotten", n)
			}
			for i := range r.table.rings {
				if in := &r.table.rings[i]; len(in.of) > 0 || len(in.strays) > 0 || in.oldest != nil {
					t.Fatalf("rings are left once all is forgotten: %+v", in)
				}
			}
			rings, strays, acked, served = rings+r.seen.rings, strays+r.seen.strays, acked+r.seen.acked, served+r.seen.served
		})
	}
	t.Logf("%d records in rings, %d outside, %d acknowledged, %d as a shard", rings, strays, acked, served)
	if rings == 0 || strays == 0 || acked == 0 || served == 0 {
		t.Error("some of it was never tried")
	}
}

// TestSessionOfABusyClient: with acknowledgements a session takes the memory of the requests
// under way, however many it has made.
func TestSessionOfABusyClient(t *testing.T) {
	const underWay, requests, most = 64, 200_000, 256
	table := newRequestTable(1<<20, session.MaxOpen)
	for n := range uint64(requests) {
		q := stored.Request{Key: attempt.OfSession(session.ID{1}, n)}
		if n >= underWay {
			table.acknowledge(&q.Key, n-underWay)
		}
		table.add(&q, table.held.Take("t", 1))
		if n%100 == 0 {
			table.seal(&stored.Block{Records: []stored.Request{q}}, input.Now{Tick: Tick(n), Wall: 1})
		}
		if _, places := table.inRings(); places > most {
			t.Fatalf("%d places after %d requests", places, n)
		}
	}
	if n := table.len(); n != underWay+1 {
		t.Errorf("%d are remembered, want %d", n, underWay+1)
	}
}

// TestManySessions: sessions of a single request each are held to the bound of the table, and
// a tenant that has many leaves room for others.
func TestManySessions(t *testing.T) {
	const most = 1000
	table := newRequestTable(most, session.MaxOpen)
	n := 0
	for ; table.held.Fits("greedy", most, 1); n++ {
		q := stored.Request{Key: attempt.OfSession(session.ID{byte(n), byte(n >> 8)}, uint64(n)*1000)}
		table.add(&q, table.held.Take("greedy", 1))
	}
	if n < most/(2*(ringHead+leastPlaces)) || table.held.All() > most || !table.held.Fits("other", most, 1) {
		t.Errorf("%d sessions take %d of %d", n, table.held.All(), most)
	}
}

// TestAfterALongPause: a session that goes on after its ring was dropped has a ring again, from
// what it acknowledges on.
func TestAfterALongPause(t *testing.T) {
	table := newRequestTable(1<<20, 64)
	q := stored.Request{Key: attempt.OfSession(session.ID{1}, 1<<30)}
	table.acknowledge(&q.Key, 1<<30-3)
	table.add(&q, table.held.Take("t", 1))
	if in := table.ringsOf(session.ID{1}); len(in.of) != 1 || in.records != 1 {
		t.Errorf("the session has no ring: %+v", in)
	}
	late := attempt.OfSession(session.ID{1}, 1<<30-3)
	if table.acknowledged(&late) {
		t.Error("a request without acknowledgement is refused")
	}
	table.held.Take("t", 1)
	if !table.addNew(&stored.Request{Key: late}, portion.Slot(1)) {
		t.Error("an earlier request of the session is not taken")
	}
}

// TestMistakenAcknowledgement: a client that acknowledges its own request, or a later one, is
// mistaken, and nothing is dropped.
func TestMistakenAcknowledgement(t *testing.T) {
	table := newRequestTable(1<<20, 64)
	for n := range uint64(4) {
		q := stored.Request{Key: attempt.OfSession(session.ID{1}, n)}
		table.add(&q, table.held.Take("t", 1))
	}
	second := attempt.OfSession(session.ID{1}, 1)
	table.acknowledge(&second, 3)
	if n := table.len(); n != 4 || table.acknowledged(&second) {
		t.Errorf("%d of 4 requests are remembered", n)
	}
	table.acknowledge(&second, 1)
	if n := table.len(); n != 3 || table.acknowledged(&second) {
		t.Errorf("%d of 3 requests are remembered", n)
	}
}
