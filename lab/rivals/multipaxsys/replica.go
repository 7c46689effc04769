package multipaxsys

import (
	"fmt"
	"math"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/samya-db/samya/lab/virtual"
)

const (
	// tick is the interval between heartbeats. After electionTicks ticks without a
	// heartbeat, to twice as many, a follower begins an election: the defaults of
	// etcd.
	tick          = 100 * time.Millisecond
	electionTicks = 10
	// inFlight is the most messages on their way to a follower, and the most entries
	// without a majority.
	inFlight = 512
	// keep is the least number of entries that stay in the log for lagging replicas.
	// At twice as many there is a snapshot.
	keep = 5000
	// snapshotTime is the time after which a snapshot on its way to a follower
	// counts as lost.
	snapshotTime = 2 * time.Second
)

// replica is a replica: a raft node, its log on disk and its record in memory.
type replica struct {
	s     *System
	id    uint64
	place virtual.Place
	// store is the durable state.
	store  *raft.MemoryStorage
	record record
	// broken is the reason why it stopped, or nil.
	broken error

	// All fields below are in memory; node is nil while the place is down.
	node    *raft.RawNode
	writing bool
	pumping bool
	// work is being written; committed is called when it is durable.
	work      raft.Ready
	committed func()
	// elapsed is the number of ticks since word of a leader, timeout the number of
	// ticks before an election.
	elapsed, timeout int
	// heard is the time at which the leader sent its last message received here.
	heard time.Duration
	// votes is the earliest time to vote: before a restart, the replica may have
	// promised not to.
	votes time.Duration
	lead  *leadership
}

// newReplica makes a replica with an empty log.
func newReplica(s *System, id uint64, place virtual.Place, limit int) (*replica, error) {
	r := &replica{s: s, id: id, place: place, store: raft.NewMemoryStorage(), record: record{limit: limit}}
	var voters []uint64
	for i := range replicaRegions {
		voters = append(voters, uint64(i+1)) //nolint:gosec // five
	}
	r.committed = func() {
		rd := r.work
		r.writing, r.work = false, raft.Ready{}
		r.written(rd)
		r.pump()
	}
	err := r.store.ApplySnapshot(raftpb.Snapshot{Metadata: raftpb.SnapshotMetadata{
		ConfState: raftpb.ConfState{Voters: voters}, Index: 1, Term: 1,
	}})
	if err != nil {
		return nil, fmt.Errorf("the first snapshot of replica %d: %w", id, err)
	}
	return r, nil
}

// boot starts the replica from its durable state.
func (r *replica) boot() error {
	snapshot, err := r.store.Snapshot()
	if err != nil {
		return err
	}
	r.record.restore(snapshot.Metadata.Index, snapshot.Data)
	r.node, err = raft.NewRawNode(&raft.Config{
		ID: r.id, ElectionTick: electionTicks, HeartbeatTick: 1, Storage: r.store, Applied: snapshot.Metadata.Index,
		MaxSizePerMsg: 1 << 20, MaxCommittedSizePerReady: math.MaxUint64, MaxInflightMsgs: inFlight,
		CheckQuorum: true, PreVote: true, DisableProposalForwarding: true, Logger: quiet{},
	})
	if err != nil {
		return err
	}
	r.writing, r.heard, r.lead = false, 0, nil
	if now := r.s.w.Now(); now > 0 {
		r.votes = now + electionTicks*tick
	}
	r.wait()
	r.s.w.After(r.place, tick, r.tick)
	r.pump()
	return nil
}

// crash loses the state that is not durable. The record stays until the restart,
// for checks.
func (r *replica) crash() { r.node, r.lead = nil, nil }

// wait draws the time of the next election.
func (r *replica) wait() { r.elapsed, r.timeout = 0, electionTicks+r.s.random.IntN(electionTicks) }

// tick advances time. Elections begin here and not in the library, which draws its
// delays from a source that cannot be repeated. So a follower's clock runs without
// elections.
func (r *replica) tick() {
	r.s.w.After(r.place, tick, r.tick)
	if r.lead != nil {
		r.node.Tick()
		r.pump()
		if r.lead != nil {
			r.lead.tick()
		}
		return
	}
	r.node.TickQuiesced()
	if r.elapsed++; r.elapsed >= r.timeout {
		r.campaign()
	}
	r.pump()
}

// campaign begins an election.
func (r *replica) campaign() {
	r.wait()
	r.s.elections++
	if err := r.node.Campaign(); err != nil {
		r.broken = fmt.Errorf("replica %d begins an election: %w", r.id, err)
	}
}

// parcel is a message with a time for the leader's lease: the time at which it left
// or, in an answer, at which the leader sent the newest message that the sender had
// got.
type parcel struct {
	m    raftpb.Message
	sent time.Duration
	to   *replica
	// arrive delivers the parcel.
	arrive func()
}

// pack returns a parcel. Delivered parcels are reused, as there are many.
func (s *System) pack(to *replica, m raftpb.Message, sent time.Duration) *parcel {
	var p *parcel
	if n := len(s.parcels); n > 0 {
		p, s.parcels = s.parcels[n-1], s.parcels[:n-1]
	} else {
		p = &parcel{}
		p.arrive = func() {
			p.to.receive(p)
			p.m = raftpb.Message{}
			s.parcels = append(s.parcels, p)
		}
	}
	p.to, p.m, p.sent = to, m, sent
	return p
}

// receive takes a message of another replica.
func (r *replica) receive(p *parcel) {
	from := p.m.From
	if vote := p.m.Type == raftpb.MsgVote || p.m.Type == raftpb.MsgPreVote; vote && r.s.w.Now() < r.votes {
		return
	}
	// An outdated message fails, and is of no use.
	_ = r.node.Step(p.m)
	switch p.m.Type {
	case raftpb.MsgApp, raftpb.MsgHeartbeat, raftpb.MsgSnap:
		if s := r.node.BasicStatus(); s.Lead == from && s.Term == p.m.Term {
			r.elapsed, r.heard = 0, max(r.heard, p.sent)
		}
	case raftpb.MsgAppResp, raftpb.MsgHeartbeatResp:
		if r.lead != nil && r.lead.term == p.m.Term {
			if p.m.Type == raftpb.MsgHeartbeatResp {
				r.lead.flows[from-1].probe = true
			}
			r.lead.promised(from, p.sent)
		}
	}
	r.pump()
}

// pump does the node's work until it waits for the disk.
func (r *replica) pump() {
	if r.pumping {
		return
	}
	r.pumping = true
	defer func() { r.pumping = false }()
	for r.node != nil && !r.writing {
		if r.lead != nil {
			r.lead.propose()
		}
		if !r.node.HasReady() {
			return
		}
		r.ready(r.node.Ready())
	}
}

// ready begins the work of a Ready.
func (r *replica) ready(rd raft.Ready) {
	if rd.SoftState != nil {
		r.role(rd.RaftState == raft.StateLeader)
	}
	// A leader may send entries before it has written them: until then it does not
	// count itself.
	late := rd.Messages[:0]
	for _, m := range rd.Messages {
		switch {
		case r.lead == nil || m.Type != raftpb.MsgApp && m.Type != raftpb.MsgHeartbeat:
			late = append(late, m)
		default:
			r.send(m)
		}
	}
	rd.Messages = late
	if raft.IsEmptySnap(rd.Snapshot) {
		// Committed entries are durable at a majority.
		r.apply(rd.CommittedEntries)
		rd.CommittedEntries = nil
		if !rd.MustSync {
			r.written(rd)
			return
		}
	}
	r.writing, r.work = true, rd
	r.s.w.Commit(r.place, r.committed)
}

// written ends the work that is now durable.
func (r *replica) written(rd raft.Ready) {
	err := r.save(rd)
	if err != nil {
		r.broken = fmt.Errorf("replica %d writes: %w", r.id, err)
	}
	for _, m := range rd.Messages {
		r.send(m)
	}
	r.apply(rd.CommittedEntries)
	r.node.Advance(rd)
	if err := r.compact(); err != nil {
		r.broken = fmt.Errorf("replica %d takes a snapshot: %w", r.id, err)
	}
}

func (r *replica) save(rd raft.Ready) error {
	if !raft.IsEmptySnap(rd.Snapshot) {
		if err := r.store.ApplySnapshot(rd.Snapshot); err != nil {
			return err
		}
		r.record.restore(rd.Snapshot.Metadata.Index, rd.Snapshot.Data)
	}
	if !raft.IsEmptyHardState(rd.HardState) {
		if err := r.store.SetHardState(rd.HardState); err != nil {
			return err
		}
	}
	return r.store.Append(rd.Entries)
}

// compact takes a snapshot of a long log.
func (r *replica) compact() error {
	first, err := r.store.FirstIndex()
	if err != nil || r.record.applied < first+2*keep {
		return err
	}
	if last, err := r.store.LastIndex(); err != nil || r.record.applied > last {
		return err
	}
	if _, err := r.store.CreateSnapshot(r.record.applied, nil, r.record.snapshot()); err != nil {
		return err
	}
	return r.store.Compact(r.record.applied - keep)
}

// send sends a message.
func (r *replica) send(m raftpb.Message) {
	to := r.s.replicas[m.To-1]
	sent := r.s.w.Now()
	switch m.Type {
	case raftpb.MsgAppResp, raftpb.MsgHeartbeatResp:
		sent = r.heard
	case raftpb.MsgApp:
		if r.lead != nil && !r.lead.worth(&m) {
			return
		}
	case raftpb.MsgVoteResp:
		if !m.Reject {
			r.elapsed = 0
		}
	case raftpb.MsgSnap:
		r.s.snapshots++
		// Capture no copy of the message: all messages would pay for it.
		id, term := m.To, m.Term
		r.s.w.After(r.place, snapshotTime, func() {
			// A replica that has got the snapshot ignores the report.
			if r.lead != nil && r.lead.term == term {
				r.node.ReportSnapshot(id, raft.SnapshotFailure)
				r.pump()
			}
		})
	}
	r.s.w.Send(r.place, to.place, m.Size(), r.s.pack(to, m, sent).arrive)
}

// role notes whether the replica leads.
func (r *replica) role(leads bool) {
	term := r.node.BasicStatus().Term
	if r.lead != nil && (!leads || r.lead.term != term) {
		r.lead.lost()
		r.lead = nil
		r.wait()
	}
	if leads && r.lead == nil {
		r.lead = newLeadership(r, term)
	}
}

// apply applies committed entries.
func (r *replica) apply(entries []raftpb.Entry) {
	for i := range entries {
		e := &entries[i]
		var done func(op, verdict)
		if r.lead != nil {
			done = r.lead.decided
		}
		if err := r.record.apply(e.Index, e.Data, done); err != nil {
			r.broken = fmt.Errorf("replica %d, entry %d: %w", r.id, e.Index, err)
		}
		if r.lead != nil && r.lead.term == e.Term {
			r.lead.applied(len(e.Data) == 0)
		}
	}
}
