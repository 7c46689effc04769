package coreslab

import (
	"math/rand/v2"
	"time"
)

// The rules of package engine that the model repeats; see site/engine/batch.go.
const (
	mostGathered = 1 << 14 // requests beside a commit
	mostYields   = 3       // yields of the committer
	worthACommit = 1024    // served requests that do not wait for others
	worthATurn   = 32      // inputs handled by the goroutine that hands them over
	mostFinished = 256     // answers that the committer gives itself
	batches      = 3       // batches of effects under way
	maxReplies   = 2048    // answers in a message
	// stripes is the number of locks of a striped table.
	stripes = 64
	// chunk is the number of answers that a finisher gives between two looks at streams.
	chunk = 64
)

// call is a call under way.
type call struct {
	conn *conn
	// sent is when its caller sent it.
	sent time.Duration
}

// phase is the state of the committer; see site/engine/phase.go.
type phase int

const (
	working phase = iota
	awaiting
	syncing
	resting
)

// site is a site in virtual time.
type site struct {
	o      Options
	m      *machine
	c      *Costs
	rnd    *rand.Rand
	conns  []*conn
	shards []*shard
	table  []*lock

	inbox   []call
	atParts int
	turn    *lock
	phase   phase
	// stepped are the calls that stepped the core since the last drain.
	stepped []call

	committer *routine
	finishers []*finisher
	// answered is the number of answers of the last commit, unfinished the number of
	// batches that leave, and flying the number of syncs under way.
	answered, unfinished, flying int
	// disk is the time with a sync under way, since then begun.
	disk, since time.Duration

	// counts since measure.
	answers, messages, commits, committed int
	latencies                             []time.Duration
	before                                struct {
		busy, spun time.Duration
		parts      []time.Duration
	}
}

// shard has a lock, and the calls served since the last drain.
type shard struct {
	lock   *lock
	served []call
}

func newSite(o Options) *site {
	s := &site{o: o, c: o.Costs, rnd: rand.New(rand.NewPCG(o.Seed, 0x636f))} //nolint:gosec // a simulation, to be repeated
	s.m = newMachine(o.Cores, o.Taken, o.Costs, o.Seed)
	s.turn = &lock{m: s.m}
	s.committer = s.m.routine()
	n := 0
	if o.Design.has(Shards) {
		if n = o.Shards; n == 0 {
			n = max(2, o.Cores)
		}
	}
	for range n {
		s.shards = append(s.shards, &shard{lock: &lock{m: s.m, spins: true}})
	}
	locks, finishers := 1, 1
	if o.Design.has(Striped) {
		locks = stripes
	}
	if o.Design.has(OwnReplies) {
		finishers = max(1, n)
	}
	for range locks {
		s.table = append(s.table, &lock{m: s.m, spins: true})
	}
	for range finishers {
		s.finishers = append(s.finishers, &finisher{s: s, r: s.m.routine()})
	}
	for i := range o.Connections {
		c := &conn{s: s, reader: s.m.routine(), sender: s.m.routine()}
		if o.Local {
			c.client = s.m.routine()
		}
		c.callers = o.Callers / o.Connections
		if i < o.Callers%o.Connections {
			c.callers++
		}
		s.conns = append(s.conns, c)
	}
	return s
}

func (s *site) start() {
	s.phase = resting
	s.committer.start(s.rest)
	for _, f := range s.finishers {
		f.r.start(f.look)
	}
	for _, c := range s.conns {
		c.start()
	}
}

// part is a part of the site that does a thing at a time.
type part struct {
	name string
	busy time.Duration
}

// parts are the parts so far.
func (s *site) parts() []part {
	disk := s.disk
	if s.flying > 0 {
		disk += s.m.now() - s.since
	}
	commits := part{"committer", s.committer.busy}
	if !s.two() {
		// It waits for the disk.
		commits = part{"commits", s.committer.busy + disk}
	}
	all := []part{commits, {"disk", disk}, {"turn of the core", s.turn.busy}}
	if len(s.table) == 1 && len(s.shards) > 0 {
		all = append(all, part{"table", s.table[0].busy})
	}
	for _, sh := range s.shards {
		all = append(all, part{"a shard", sh.lock.busy})
	}
	for _, f := range s.finishers {
		all = append(all, part{"finisher", f.r.busy})
	}
	return all
}

// measure begins the measured time.
func (s *site) measure() {
	s.answers, s.messages, s.commits, s.committed, s.latencies = 0, 0, 0, 0, nil
	s.before.busy, s.before.spun, s.before.parts = s.m.busy, s.m.spun, nil
	for _, p := range s.parts() {
		s.before.parts = append(s.before.parts, p.busy)
	}
}

// two reports whether two commits may be in flight.
func (s *site) two() bool { return s.o.Design.has(TwoCommits) }

// gathered is the number of calls served on shards since the last drain.
func (s *site) gathered() int {
	n := 0
	for _, sh := range s.shards {
		n += len(sh.served)
	}
	return n
}

// handedOver sees to the handling of new inputs, and lets the reader go on.
func (s *site) handedOver(r *routine, then func()) {
	switch {
	case s.phase == resting:
		s.wakeCommitter(r, then)
	case len(s.inbox) < worthATurn:
		then()
	case len(s.shards) > 0:
		s.serve(r, then)
	default:
		s.help(r, then)
	}
}

func (s *site) wakeCommitter(r *routine, then func()) {
	s.phase = working
	r.work(s.committer.wake(), then)
}

// help steps the core beside a commit, if nobody else does.
func (s *site) help(r *routine, then func()) {
	if s.phase != syncing || len(s.stepped)+s.gathered() >= mostGathered || !s.turn.try() {
		then()
		return
	}
	s.handle(r, func(int) {
		s.turn.release()
		then()
	})
}

// handle steps the core with the inbox. The routine has the turn.
func (s *site) handle(r *routine, then func(n int)) {
	taken := s.inbox
	s.inbox = nil
	if len(taken) == 0 {
		then(0)
		return
	}
	step := func() {
		r.work(float64(len(taken))*s.c.Step, func() {
			s.stepped = append(s.stepped, taken...)
			s.resume()
			then(len(taken))
		})
	}
	s.alone(r, 0, step)
}

// alone takes the locks of all shards.
func (s *site) alone(r *routine, from int, then func()) {
	if from == len(s.shards) {
		then()
		return
	}
	s.shards[from].lock.take(r, func() { s.alone(r, from+1, then) })
}

func (s *site) resume() {
	for _, sh := range s.shards {
		sh.lock.release()
	}
}

// serve has the shards serve the inbox.
func (s *site) serve(r *routine, then func()) {
	if s.gathered() >= mostGathered {
		then()
		return
	}
	taken := s.inbox
	s.inbox = nil
	s.atParts += len(taken)
	s.serveNext(r, taken, 0, func() {
		s.atParts -= len(taken)
		if s.phase == resting || s.phase == awaiting && !s.unserved() {
			s.wakeCommitter(r, then)
			return
		}
		then()
	})
}

// serveNext serves a call and those after it.
func (s *site) serveNext(r *routine, taken []call, at int, then func()) {
	if at == len(taken) {
		then()
		return
	}
	sh := s.shardOf()
	serve := s.c.Serve
	if s.o.Design.has(OwnLog) {
		serve += s.c.Pack
	}
	held := s.c.Table
	if s.o.Forgets && s.o.Design.has(OwnForgetting) {
		held += s.c.Forget
	}
	sh.lock.take(r, func() {
		r.work(serve, func() {
			table := s.table[s.rnd.IntN(len(s.table))]
			table.take(r, func() {
				r.work(held, func() {
					table.release()
					sh.served = append(sh.served, taken[at])
					sh.lock.release()
					s.serveNext(r, taken, at+1, then)
				})
			})
		})
	})
}

// shardOf is the shard of a call. Load is even. A single entity is split over all shards,
// and any shard will do that seems to be free.
func (s *site) shardOf() *shard {
	n := len(s.shards)
	first := s.rnd.IntN(n)
	if s.c.Entities == 1 {
		for i := range n {
			if sh := s.shards[(first+i)%n]; !sh.lock.held {
				return sh
			}
		}
	}
	return s.shards[first]
}

func (s *site) unserved() bool { return s.atParts > 0 && s.gathered() < worthACommit }
