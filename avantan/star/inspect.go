package star

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// For a search over all schedules, which copies Machines, compares their future
// behaviour, and lets time-outs come in any order. Nothing else needs this file.

// Timer names a time that a Machine waits for.
type Timer uint8

const (
	// TimerCollect is when a leader settles for the offers it has.
	TimerCollect Timer = iota + 1
	// TimerSlice is when a slice is looked after. Each slice has its own.
	TimerSlice
	// TimerLate is the time until which a Begin waits for a value accepted here.
	// The Machine checks it when TimerSlice fires.
	TimerLate
	// TimerRetry is the end of the back-off. It wakes the Machine only if a
	// proposal waits for it.
	TimerRetry
	// TimerWaiting is when a waiting election is no longer worth an answer. It
	// wakes nobody.
	TimerWaiting
)

// Clone returns an independent copy of the Machine for a copy of its ledger.
// It shares the Config, its Rand included, values and messages, which never
// change.
func (m *Machine) Clone(ledger Ledger) *Machine {
	c := *m
	c.ledger = ledger
	// Unlike State.Clone: values may be shared.
	c.state.Slices, c.state.Floors = slices.Clone(m.state.Slices), slices.Clone(m.state.Floors)
	c.cares = slices.Clone(m.cares)
	if m.lead != nil {
		l := *m.lead
		l.contributions = slices.Clone(l.contributions)
		c.lead = &l
	}
	if m.waiting != nil {
		c.waiting = new(*m.waiting)
	}
	if m.pending != nil {
		c.pending = new(*m.pending)
	}
	return &c
}

// Retime replaces the time of every timer by the result of f; 0 stands for a time long
// past. id is the instance of the timer, zero for TimerRetry. The behaviour of a
// Machine may depend on the fact of a time-out and on nothing else about it, so any
// choice must be safe.
func (m *Machine) Retime(f func(t Timer, id ID, at avantan.Tick) avantan.Tick) {
	if m.lead != nil {
		m.lead.deadline = f(TimerCollect, m.lead.id, m.lead.deadline)
	}
	for i := range m.cares {
		c, id := &m.cares[i], m.state.Slices[i].ID
		c.deadline, c.lateAt = f(TimerSlice, id, c.deadline), f(TimerLate, id, c.lateAt)
	}
	if m.waiting != nil {
		m.waiting.until = f(TimerWaiting, m.waiting.election.ID, m.waiting.until)
	}
	m.retryAt = f(TimerRetry, ID{}, m.retryAt)
}

// Running reports whether the Machine waits for a timer. TimerCollect runs while id is
// led here and collects offers, TimerSlice while id has a slice, and TimerLate while
// a Begin has to wait for the slice. TimerRetry runs while a proposal is
// pending, TimerWaiting while the election of id waits.
func (m *Machine) Running(t Timer, id ID) bool {
	switch t {
	case TimerCollect:
		return m.lead != nil && m.lead.id == id
	case TimerSlice:
		_, found := m.state.find(id)
		return found
	case TimerLate:
		i, found := m.state.find(id)
		return found && !m.state.Slices[i].unvoted() && m.state.Slices[i].undecided() && !m.cares[i].late
	case TimerRetry:
		return m.pending != nil
	case TimerWaiting:
		return m.waiting != nil && m.waiting.election.ID == id
	default:
		return false
	}
}

// Collecting returns the instance led here that collects offers, if there is one.
func (m *Machine) Collecting() (ID, bool) {
	if m.lead == nil {
		return ID{}, false
	}
	return m.lead.id, true
}

// Waiting returns the election that waits until this site is free, if there is one.
func (m *Machine) Waiting() (ID, bool) {
	if m.waiting == nil {
		return ID{}, false
	}
	return m.waiting.election.ID, true
}

// Simplify drops all state without effect on a search. In such a search any timer may
// fire at any time, any message may come again, and any Begin may come at any time.
//
// Simplify drops back-offs and the proposals that wait for them, the waiting election
// (it can be delivered again), the reason of a failure, and counts of repetitions. It
// also drops the votes and applies of other members once nothing depends on them.
func (m *Machine) Simplify() {
	m.fails, m.retryAt, m.pending, m.waiting = 0, 0, nil, nil
	if m.lead != nil {
		m.lead.busy = false
	}
	for i := range m.cares {
		c, sl := &m.cares[i], &m.state.Slices[i]
		c.tries, c.begun = 0, false
		if sl.Committed {
			c.accepted, c.undecided = 0, 0
		}
		if sl.ID.Leader != m.cfg.Self && m.cfg.allLost() == 0 {
			c.applied = 0
		}
	}
}

// Fingerprint appends to dst an encoding of everything that determines the Machine's
// future actions and messages, volatile fields included. Two Machines with the same
// Config and fingerprint differ only in the times of their actions and in how often
// they repeat them. The encoding omits times, back-offs and counts of failures and
// repetitions. It is not for storage.
func (m *Machine) Fingerprint(dst []byte) []byte {
	dst = m.state.Fingerprint(dst)
	dst = binary.AppendUvarint(dst, m.next)
	for i := range m.cares {
		c := &m.cares[i]
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(c.accepted)), uint64(c.applied))
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(c.lost)), uint64(c.undecided))
		dst = appendBools(dst, c.late, c.begun)
	}
	dst = m.lead.fingerprint(dst)
	dst = appendBools(dst, m.restored, m.waiting != nil, m.pending != nil)
	if m.waiting != nil {
		dst = m.waiting.election.Fingerprint(dst)
	}
	if m.pending != nil {
		dst = m.pending.fingerprint(dst)
	}
	return dst
}

// Fingerprint appends an encoding of the State to dst, the same for equal
// states only. It is not for storage.
func (s *State) Fingerprint(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, s.Reserved)
	dst = binary.AppendUvarint(dst, uint64(len(s.Slices)))
	for i := range s.Slices {
		sl := &s.Slices[i]
		dst = sl.Pledge.Fingerprint(sl.ID.fingerprint(dst))
		dst = appendBools(sl.Value.Fingerprint(dst), sl.Committed, sl.Concluded)
	}
	dst = binary.AppendUvarint(dst, uint64(len(s.Floors)))
	for _, f := range s.Floors {
		dst = f.fingerprint(dst)
	}
	return dst
}

// Fingerprint appends an encoding of the Message to dst, the same for equal
// messages only. It is not for the wire.
func (m *Message) Fingerprint(dst []byte) []byte {
	dst = append(dst, byte(m.Kind))
	dst = appendString(appendString(dst, string(m.From)), string(m.To))
	dst = append(m.ID.fingerprint(dst), byte(m.Press))
	dst = m.Value.Fingerprint(m.Contribution.Fingerprint(dst))
	dst = binary.AppendUvarint(dst, uint64(len(m.Lost)))
	for _, site := range m.Lost {
		dst = appendString(dst, string(site))
	}
	return dst
}

func (id ID) fingerprint(dst []byte) []byte {
	return binary.AppendUvarint(appendString(dst, string(id.Leader)), id.Counter)
}

func (p *Proposal) fingerprint(dst []byte) []byte {
	return binary.AppendVarint(append(appendString(dst, p.Policy), byte(p.Press)), int64(p.Short))
}

// fingerprint leaves out the order in which the contributions came.
func (l *lead) fingerprint(dst []byte) []byte {
	if l == nil {
		return append(dst, 0)
	}
	dst = l.proposal.fingerprint(l.id.fingerprint(append(dst, 1)))
	dst = appendBools(binary.AppendUvarint(dst, uint64(l.answers)), l.busy)
	var list [][]byte
	for i := range l.contributions {
		list = append(list, l.contributions[i].Fingerprint(nil))
	}
	slices.SortFunc(list, bytes.Compare)
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, c := range list {
		dst = append(dst, c...)
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendBools(dst []byte, bits ...bool) []byte {
	var b byte
	for i, set := range bits {
		if set {
			b |= 1 << i
		}
	}
	return append(dst, b)
}
