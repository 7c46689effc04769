package avantan

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// For a search over all schedules, which copies Machines, compares their future
// behaviour, and lets time-outs come in any order. Nothing else needs this file.

// Timer names a time that a Machine waits for.
type Timer uint8

const (
	// TimerInstance is when an open instance is looked after.
	TimerInstance Timer = iota + 1
	// TimerAsk is when to ask a peer for a decision that the peer has told of.
	TimerAsk
	// TimerRetry is the end of the back-off: before it nothing is begun. It wakes
	// the Machine only if a proposal waits for it.
	TimerRetry
	// TimerTell is when a decision is told again.
	TimerTell
)

// Clone returns an independent copy of the Machine for a copy of its ledger.
// It shares the Config, its Rand included, and the values, which never change.
func (m *Machine) Clone(ledger Ledger) *Machine {
	c := *m
	c.ledger = ledger
	c.state = m.state.Clone()
	c.early = slices.Clone(m.early)
	if m.lead != nil {
		l := *m.lead
		l.contributions = slices.Clone(l.contributions)
		c.lead = &l
	}
	if m.tell != nil {
		c.tell = new(*m.tell)
	}
	if m.pending != nil {
		c.pending = new(*m.pending)
	}
	return &c
}

// Retime replaces the time of every running timer by the result of f; 0 stands for a
// time long past. The behaviour of a Machine may depend on the fact of a time-out and
// on nothing else about it, so any choice must be safe.
func (m *Machine) Retime(f func(t Timer, at Tick) Tick) {
	for _, t := range []struct {
		timer Timer
		at    *Tick
	}{{TimerInstance, &m.deadline}, {TimerAsk, &m.askAt}, {TimerRetry, &m.retryAt}} {
		if *t.at != 0 {
			*t.at = f(t.timer, *t.at)
			if t.timer != TimerRetry {
				*t.at = max(*t.at, 1) // 0 would stop it
			}
		}
	}
	if m.tell != nil {
		m.tell.at = f(TimerTell, m.tell.at)
	}
}

// Simplify drops all state without effect on a search. In such a search any timer may
// fire at any time, and any Begin and Refresh may come at any time. A site that times
// out may lead an instance whether it has asked for its Status or not.
//
// Simplify drops back-offs and the proposals that wait for them, repeats of a decision,
// reminders to ask a peer, and early acknowledgements (they can come again). Once the
// second phase has begun, it drops the answers that the first phase collected. With
// mayElect unset it also drops all state that only the next election depends on.
func (m *Machine) Simplify(mayElect bool) {
	m.fails, m.retryAt, m.askAt, m.askFrom = 0, 0, 0, ""
	m.pending, m.tell, m.early, m.asked = nil, nil, nil, false
	if !mayElect || m.seen <= m.state.Promised.Number {
		m.seen = 0
	}
	if m.lead == nil && !m.state.atStake() {
		m.deadline = 0
	}
	if l := m.lead; l != nil {
		l.own = false
		if l.value != nil {
			l.answers, l.contributions = 0, nil
			l.adoptedAt, l.adopted = Ballot{}, nil
			if !mayElect {
				l.proposal, l.refused = Proposal{}, false
			}
		}
	}
}

// Running reports whether the Machine waits for the timer.
func (m *Machine) Running(t Timer) bool {
	switch t {
	case TimerInstance:
		return m.deadline != 0
	case TimerAsk:
		return m.askAt != 0
	case TimerRetry:
		return m.pending != nil
	case TimerTell:
		return m.tell != nil
	default:
		return false
	}
}

// Fingerprint appends to dst an encoding of everything that determines the Machine's
// future actions and messages, volatile fields included. Two Machines with the same
// Config and fingerprint differ only in the times of their actions and in how often
// they repeat a Decision. The encoding omits times, back-offs and the members that
// still need a repeated decision. It is not for storage.
func (m *Machine) Fingerprint(dst []byte) []byte {
	dst = m.state.Fingerprint(dst)
	dst = m.lead.fingerprint(dst)
	dst = m.pending.fingerprint(dst)
	early := slices.SortedFunc(slices.Values(m.early), func(a, b ack) int { return cmp.Compare(a.peer, b.peer) })
	dst = binary.AppendUvarint(dst, uint64(len(early)))
	for _, a := range early {
		dst = binary.AppendUvarint(appendString(dst, string(a.peer)), uint64(a.applied))
	}
	dst = appendBool(dst, m.deadline != 0)
	dst = appendBool(dst, m.askAt != 0)
	if m.askAt != 0 {
		dst = appendString(dst, string(m.askFrom))
	}
	dst = binary.AppendUvarint(dst, m.seen)
	dst = appendBool(dst, m.asked)
	return appendBool(dst, m.restored)
}

// Fingerprint appends an encoding of the State to dst, the same for equal
// states only. It is not for storage.
func (s *State) Fingerprint(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(s.Applied))
	dst = s.Promised.fingerprint(dst)
	dst = s.AcceptedAt.fingerprint(dst)
	dst = s.Accepted.Fingerprint(dst)
	dst = s.Pledge.Fingerprint(dst)
	dst = binary.AppendUvarint(dst, uint64(len(s.Exposures)))
	for _, b := range s.Exposures {
		dst = b.fingerprint(dst)
	}
	dst = appendBool(dst, s.Built)
	return fingerprintKept(dst, s.Kept)
}

// Fingerprint appends an encoding of the Message to dst, the same for equal
// messages only. It is not for the wire.
func (m *Message) Fingerprint(dst []byte) []byte {
	dst = append(dst, byte(m.Kind))
	dst = appendString(appendString(dst, string(m.From)), string(m.To))
	dst = binary.AppendUvarint(dst, uint64(m.Instance))
	dst = m.Ballot.fingerprint(dst)
	dst = m.Promised.fingerprint(dst)
	dst = append(dst, byte(m.Press))
	dst = m.Contribution.Fingerprint(dst)
	dst = m.AcceptedAt.fingerprint(dst)
	dst = m.Value.Fingerprint(dst)
	dst = binary.AppendUvarint(dst, uint64(m.Applied))
	dst = fingerprintKept(dst, m.Kept)
	return appendString(dst, string(m.Snapshot))
}

// Fingerprint appends an encoding of the Value to dst, the same for equal
// values only; v may be nil. It is not for storage.
func (v *Value) Fingerprint(dst []byte) []byte {
	if v == nil {
		return append(dst, 0)
	}
	dst = binary.AppendUvarint(append(dst, 1), uint64(len(v.Contributions)))
	for i := range v.Contributions {
		dst = v.Contributions[i].Fingerprint(dst)
	}
	return appendString(appendString(dst, v.Policy), string(v.Change))
}

func (b Ballot) fingerprint(dst []byte) []byte {
	return appendString(binary.AppendUvarint(dst, b.Number), string(b.Site))
}

// Fingerprint appends an encoding of the Contribution to dst, the same for equal
// contributions only; c may be nil.
func (c *Contribution) Fingerprint(dst []byte) []byte {
	if c == nil {
		return append(dst, 0)
	}
	dst = appendString(append(dst, 1), string(c.Site))
	for _, n := range [...]Tokens{c.Offered, c.Wanted, c.Queued, c.Median, c.Kept} {
		dst = binary.AppendVarint(dst, int64(n))
	}
	return binary.AppendVarint(dst, c.Window)
}

func (p *Proposal) fingerprint(dst []byte) []byte {
	if p == nil {
		return append(dst, 0)
	}
	return append(appendString(appendString(append(dst, 1), p.Policy), string(p.Change)), byte(p.Press))
}

// fingerprint leaves out the order in which the contributions came.
func (l *lead) fingerprint(dst []byte) []byte {
	if l == nil {
		return append(dst, 0)
	}
	dst = l.ballot.fingerprint(append(dst, 1))
	dst = l.proposal.fingerprint(dst)
	dst = appendBool(dst, l.own)
	dst = binary.AppendUvarint(dst, uint64(l.answers))
	var list [][]byte
	for i := range l.contributions {
		list = append(list, l.contributions[i].Fingerprint(nil))
	}
	slices.SortFunc(list, bytes.Compare)
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, c := range list {
		dst = append(dst, c...)
	}
	dst = l.adoptedAt.fingerprint(dst)
	dst = l.adopted.Fingerprint(dst)
	dst = l.value.Fingerprint(dst)
	dst = binary.AppendUvarint(dst, uint64(l.oks))
	return appendBool(dst, l.refused)
}

func fingerprintKept(dst []byte, kept []Kept) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(kept)))
	for i := range kept {
		dst = binary.AppendUvarint(appendString(dst, string(kept[i].Peer)), uint64(kept[i].Instance))
		dst = kept[i].Value.Fingerprint(dst)
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}
