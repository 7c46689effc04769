package multipaxsys

import (
	"math"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/samya-db/samya/lab/virtual"
)

const (
	// answerBytes is the size of an answer and of any other message between routers
	// and replicas; askBytes is the size of a request.
	answerBytes, askBytes = 24, 32
	// promise is the time after word from its leader in which a follower elects
	// nobody else. It is the election timeout less two ticks: a tick for counting in
	// ticks, and a tick for safety.
	promise = (electionTicks - 2) * tick
	// lostCount is the count of a session that lost a message.
	lostCount = math.MinInt32
	// mostOps is the most transactions of an entry.
	mostOps = 16384
)

// key names a request.
type key struct {
	of   int32
	kind virtual.Kind
}

// ask is a request at the leader.
type ask struct {
	key
	from *router
	// latest is the latest time for its answer to leave.
	latest time.Duration
}

// stream is the conversation of a leader and a router: the number of the router's
// session, and the numbers of its requests and answers.
type stream struct{ session, got, sent int }

// flow is the state of messages to a replica: the last entry sent, and whether the
// leader probes how far the replica has got.
type flow struct {
	to    uint64
	probe bool
}

// leadership is the state of a leader in memory.
type leadership struct {
	r    *replica
	term uint64
	// serving is set once all entries of earlier leaders are applied: before, the
	// leader does not know the held leases.
	serving bool
	streams map[*router]*stream
	// queue are waiting requests; known are all requests, waiting or in entries.
	queue []ask
	known map[key]ask
	// proposed are the times of the entries without a majority.
	proposed []time.Duration
	buffer   []op
	// round is the mean time of a round, spread the mean deviation from it.
	round, spread time.Duration
	// promises are, by replica, the sending times of the newest received message.
	// transferred is the time of the last offer of leadership to another replica.
	promises    []time.Duration
	transferred time.Duration
	reads       []ask
	// flows are the states of messages, by replica.
	flows []flow
	ticks int
}

func newLeadership(r *replica, term uint64) *leadership {
	r.s.leaders++
	return &leadership{
		r: r, term: term, streams: make(map[*router]*stream), known: make(map[key]ask),
		promises: make([]time.Duration, len(replicaRegions)), transferred: -1,
		flows: make([]flow, len(replicaRegions)),
	}
}

// lost tells routers to look for another leader.
func (l *leadership) lost() {
	for _, p := range l.r.s.routers {
		if st := l.streams[p]; st != nil {
			l.tell(p, func() { p.unled(st.session) })
		}
	}
}

// tell sends a small message to a router.
func (l *leadership) tell(p *router, do func()) { l.r.tell(p, do) }

func (r *replica) tell(p *router, do func()) {
	if p.place == r.place {
		do()
		return
	}
	r.s.w.Send(r.place, p.place, answerBytes, do)
}

// tick does the periodic work.
func (l *leadership) tick() {
	if l.ticks++; l.ticks%electionTicks == 0 {
		l.prefer()
	}
	l.read()
}

// prefer offers leadership to a replica in a better place.
func (l *leadership) prefer() {
	if !l.serving || l.r.node.BasicStatus().LeadTransferee != raft.None {
		return
	}
	var best uint64
	l.r.node.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
		heard := l.r.s.w.Now()-l.promises[id-1] < promise
		if id < l.r.id && heard && pr.State == tracker.StateReplicate && (best == 0 || id < best) {
			best = id
		}
	})
	if best == 0 {
		return
	}
	l.transferred = l.r.s.w.Now()
	l.r.s.transfers++
	l.r.node.TransferLeader(best)
	l.r.pump()
}

// worth reports whether to send a message. A message without entries that only
// carries the commit index is not worth sending: the next entries and heartbeats
// carry it too.
func (l *leadership) worth(m *raftpb.Message) bool {
	f := &l.flows[m.To-1]
	if n := len(m.Entries); n > 0 {
		f.to = m.Entries[n-1].Index
		return true
	}
	if f.to == m.Index && !f.probe {
		return false
	}
	f.probe = false
	return true
}

// promised notes the sending time of the leader's message up to which a replica
// elects nobody else.
func (l *leadership) promised(by uint64, sent time.Duration) {
	l.promises[by-1] = max(l.promises[by-1], sent)
	if len(l.reads) > 0 {
		l.read()
	}
}

// holds reports whether this is the only possible leader now.
func (l *leadership) holds() bool {
	now := l.r.s.w.Now()
	with := 1
	for i, p := range l.promises {
		if uint64(i+1) != l.r.id && p > l.transferred && now-p < promise && p > 0 { //nolint:gosec // five
			with++
		}
	}
	return 2*with > len(l.promises) && l.r.node.BasicStatus().LeadTransferee == raft.None
}

// stream returns the conversation with a router that has sent n requests in its
// session; said counts a request that arrives now. It returns nil, and tells the
// router, if this replica does not lead or if a request is lost. It returns nil for
// an outdated session.
func (r *replica) stream(p *router, session, n int, said int) *stream {
	l := r.lead
	if l == nil || !l.serving {
		r.tell(p, func() { p.unled(session) })
		return nil
	}
	st := l.streams[p]
	if st == nil || st.session < session {
		st = &stream{session: session}
		l.streams[p] = st
	}
	if st.session > session {
		return nil
	}
	if st.got += said; st.got != n {
		st.got = lostCount
		l.tell(p, func() { p.again(session) })
		return nil
	}
	return st
}

// hear takes the n-th request of a router's session.
func (r *replica) hear(p *router, session, n int, a ask) {
	if r.stream(p, session, n, 1) != nil {
		l := r.lead
		r.s.w.Serve(r.place, func() { l.take(a) })
	}
}

// ping tells a router that it is heard. n is the number of requests in its session.
func (r *replica) ping(p *router, session, n int, asked time.Duration) {
	if st := r.stream(p, session, n, 0); st != nil {
		sent := st.sent
		r.tell(p, func() { p.heard(session, sent, asked) })
	}
}

// take queues a request, or answers it.
func (l *leadership) take(a ask) {
	if l.r.lead != l {
		return
	}
	if a.kind == virtual.ReadExact {
		l.reads = append(l.reads, a)
		l.read()
		return
	}
	if _, twice := l.known[a.key]; twice {
		return
	}
	switch was := l.r.record.lease(a.of); {
	case a.kind == virtual.Acquire && was == leaseHeld, a.kind == virtual.Release && was == leaseEnded:
		l.reply(a, granted)
		return
	case a.kind == virtual.Acquire && was == leaseEnded:
		l.reply(a, tooLate)
		return
	}
	l.known[a.key] = a
	l.queue = append(l.queue, a)
	l.r.pump()
}

// read answers reads if no other replica can lead.
func (l *leadership) read() {
	if len(l.reads) == 0 || !l.serving {
		return
	}
	if !l.holds() {
		now := l.r.s.w.Now()
		l.reads = slices.DeleteFunc(l.reads, func(a ask) bool { return a.latest < now })
		return
	}
	for _, a := range l.reads {
		l.r.s.reads++
		l.reply(a, granted)
	}
	l.reads = l.reads[:0]
}

// propose proposes waiting transactions if another entry may be under way. An entry
// has a single transaction in mode One, else all that fit.
func (l *leadership) propose() {
	room, most := inFlight, mostOps
	if l.r.s.o.Mode == One {
		room, most = 1, 1
	}
	if !l.serving || len(l.queue) == 0 || len(l.proposed) >= room {
		return
	}
	if l.r.node.BasicStatus().LeadTransferee != raft.None {
		return
	}
	now := l.r.s.w.Now()
	l.buffer = l.buffer[:0]
	n := 0
	for ; n < len(l.queue) && len(l.buffer) < most; n++ {
		a := l.queue[n]
		switch {
		case a.kind == virtual.Release:
			l.buffer = append(l.buffer, op{of: a.of, release: true})
		case now+l.round+4*l.spread > a.latest:
			l.r.s.late++
			l.finish(a, tooLate)
		case l.r.record.out >= l.r.record.limit && len(l.proposed) == 0 && len(l.buffer) == 0 && l.holds():
			l.finish(a, refused)
		default:
			l.buffer = append(l.buffer, op{of: a.of, latest: a.latest})
		}
	}
	taken := n
	if len(l.buffer) > 0 {
		if err := l.r.node.Propose(appendEntry(nil, now, l.buffer)); err != nil {
			// It leads no more; routers ask the next leader.
			return
		}
		l.r.s.entries++
		l.r.s.transactions += len(l.buffer)
		l.proposed = append(l.proposed, now)
	}
	l.queue = l.queue[taken:]
}

// decided tells a router the outcome of its request.
func (l *leadership) decided(o op, v verdict) {
	k := key{o.of, virtual.Acquire}
	if o.release {
		k.kind = virtual.Release
	}
	if a, known := l.known[k]; known {
		l.finish(a, v)
	}
}

func (l *leadership) finish(a ask, v verdict) {
	delete(l.known, a.key)
	l.reply(a, v)
}

// reply answers in the router's current session.
func (l *leadership) reply(a ask, v verdict) {
	st := l.streams[a.from]
	if st == nil {
		return
	}
	st.sent++
	session, n := st.session, st.sent
	l.tell(a.from, func() { a.from.answered(session, n, a.key, v) })
}

// applied notes that an entry of this leader is applied; the first entry is empty.
func (l *leadership) applied(empty bool) {
	if empty {
		l.serving = true
		for _, p := range l.r.s.routers {
			l.tell(p, func() { p.led(l.r, l.term) })
		}
		return
	}
	took := l.r.s.w.Now() - l.proposed[0]
	l.proposed = l.proposed[1:]
	l.r.s.rounds++
	l.r.s.roundTime += took
	if l.round == 0 {
		l.round = took
	}
	l.spread += ((took - l.round).Abs() - l.spread) / 8
	l.round += (took - l.round) / 8
}
