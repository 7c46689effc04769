package star

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// A search over all schedules needs to copy a Machine, to tell whether two will
// behave alike, and to let time-outs come in any order. Nothing else does.

// Timer names one of the times that a Machine waits for.
type Timer uint8

const (
	// TimerCollect is when a leader settles for the offers it has.
	TimerCollect Timer = iota + 1
	// TimerSlice is when a slice is looked after. There is one for each slice.
	TimerSlice
	// TimerLate is until when others have to wait for a value accepted here. It
	// is looked at when TimerSlice fires.
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

// Retime replaces the time of every timer by what f makes of it; 0 stands for
// one long past. id is the instance of the timer, zero for TimerRetry. What a
// Machine does may depend on time-outs in no other way than that they come, so
// any choice must be safe.
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

// Running reports whether the Machine waits for a timer. Of an instance led
// here that collects offers, of the slices, of those that others have to wait
// for, of a proposal, and of an election, in the order of the timers.
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

// Waiting returns the election that waits until this site is free, if one does.
func (m *Machine) Waiting() (ID, bool) {
	if m.waiting == nil {
		return ID{}, false
	}
	return m.waiting.election.ID, true
}

// Simplify drops all that makes no difference to a search in which any timer may
// fire at any time, any message may come again and any Begin may come at any
// time: back-offs and what waits for them; the election that waits, since it can
// be delivered again; why an instance failed; how often something was repeated;
// and what is known of the others' votes and applies once nothing depends on it.
func (m *Machine) Simplify() {
	m.fails, m.retryAt, m.pending, m.waiting = 0, 0, nil, nil
	if m.lead != nil {
		m.lead.busy = false
	}
	for i := range m.cares {
		c, sl := &m.cares[i], &m.state.Slices[i]
		c.tries, c.begun = 0, false
		if sl.Committed {
			c.accepted = 0
		}
		if sl.ID.Leader != m.cfg.Self {
			c.applied = 0
		}
	}
}

// Fingerprint appends to dst an encoding of all that decides what the Machine
// will do and say, volatile fields included. Two Machines with one Config and
// the same fingerprint differ only in when they do it and in how often they
// repeat it: times, back-offs and counts of failures and repetitions are left
// out. It is not for storage.
func (m *Machine) Fingerprint(dst []byte) []byte {
	dst = m.state.Fingerprint(dst)
	dst = binary.AppendUvarint(dst, m.next)
	for i := range m.cares {
		c := &m.cares[i]
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(c.accepted)), uint64(c.applied))
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
		dst = fingerprint(sl.ID.fingerprint(dst), &sl.Pledge)
		dst = appendBools(sl.Value.Fingerprint(dst), sl.Committed)
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
	if m.Contribution == nil {
		dst = append(dst, 0)
	} else {
		dst = fingerprint(append(dst, 1), m.Contribution)
	}
	return m.Value.Fingerprint(dst)
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
		list = append(list, fingerprint(nil, &l.contributions[i]))
	}
	slices.SortFunc(list, bytes.Compare)
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, c := range list {
		dst = append(dst, c...)
	}
	return dst
}

func fingerprint(dst []byte, c *avantan.Contribution) []byte {
	dst = appendString(dst, string(c.Site))
	for _, n := range [...]avantan.Tokens{c.Offered, c.Wanted, c.Queued, c.Kept} {
		dst = binary.AppendVarint(dst, int64(n))
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
