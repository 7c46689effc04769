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
	// answerBytes is what an answer takes, and everything else that is said between
	// routers and replicas; askBytes a request.
	answerBytes, askBytes = 24, 32
	// promise is how long a follower elects nobody else after it has heard of its
	// leader: its election timeout, less a tick, as it counts in ticks, and as much
	// again to be safe.
	promise = (electionTicks - 2) * tick
	// lostCount counts no messages of a session that lost one.
	lostCount = math.MinInt32
	// mostOps is how many transactions an entry has at most.
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
	// latest is when its answer must leave.
	latest time.Duration
}

// stream is what a leader and a router have told each other: the number of the
// router's session, and how many requests and answers of it came and went.
type stream struct{ session, got, sent int }

// flow is what a replica was sent: up to which entry, and whether it is asked what
// it has got.
type flow struct {
	to    uint64
	probe bool
}

// leadership is what a leader has in memory.
type leadership struct {
	r    *replica
	term uint64
	// serving is set once all entries of earlier leaders are applied: before it does
	// not know what is held.
	serving bool
	streams map[*router]*stream
	// queue are requests that wait, known those and the ones in entries.
	queue []ask
	known map[key]ask
	// proposed are when the entries without a majority were.
	proposed []time.Duration
	buffer   []op
	// round and spread are the mean time of a round and of its difference to that.
	round, spread time.Duration
	// promises are, by replica, when the newest message left that it has got;
	// transferred is when leadership was last offered to another.
	promises    []time.Duration
	transferred time.Duration
	reads       []ask
	// flows are, by replica, what it was sent.
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

// tell sends something small to a router.
func (l *leadership) tell(p *router, do func()) { l.r.tell(p, do) }

func (r *replica) tell(p *router, do func()) {
	if p.place == r.place {
		do()
		return
	}
	r.s.w.Send(r.place, p.place, answerBytes, do)
}

// tick does what is due from time to time.
func (l *leadership) tick() {
	if l.ticks++; l.ticks%electionTicks == 0 {
		l.prefer()
	}
	l.read()
}

// prefer offers leadership to a replica that stands better.
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

// worth tells whether a message is sent. One without entries that only says what is
// committed by now is not: the next entries and heartbeats say the same.
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

// promised notes up to which of its messages a replica elects nobody else.
func (l *leadership) promised(by uint64, sent time.Duration) {
	l.promises[by-1] = max(l.promises[by-1], sent)
	if len(l.reads) > 0 {
		l.read()
	}
}

// holds tells whether it is the only leader there can be now.
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

// stream finds the conversation with a router in which it has said n things so far.
// It is nil if there is none, which the router is told.
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

// ping tells a router, which has asked for n things in its session, that it is
// heard.
func (r *replica) ping(p *router, session, n int, asked time.Duration) {
	if st := r.stream(p, session, n, 0); st != nil {
		sent := st.sent
		r.tell(p, func() { p.heard(session, sent, asked) })
	}
}

// take puts a request where it belongs.
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

// read answers reads, which want that nobody else leads.
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

// propose proposes what waits, if there may be an entry more. A round is one
// transaction's, or all's.
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
			// It does not lead any more; routers ask the next one.
			return
		}
		l.r.s.entries++
		l.r.s.transactions += len(l.buffer)
		l.proposed = append(l.proposed, now)
	}
	l.queue = l.queue[taken:]
}

// decided tells a router what came of its request.
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

// reply answers, in the session in which the router is now.
func (l *leadership) reply(a ask, v verdict) {
	st := l.streams[a.from]
	if st == nil {
		return
	}
	st.sent++
	session, n := st.session, st.sent
	l.tell(a.from, func() { a.from.answered(session, n, a.key, v) })
}

// applied notes that an entry of its own is applied; the first one is empty.
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
