package transfer

import (
	"encoding/binary"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// For a search over all schedules, which copies Machines, compares their future
// behaviour, and lets time-outs come in any order. Nothing else needs this file.

// Timer names a time that a Machine waits for.
type Timer uint8

const (
	// TimerRound is the end of a round's wait.
	TimerRound Timer = iota + 1
	// TimerRepeat is when a transfer is sent again. Each debit has its own; it counts
	// only while the transfer is not acknowledged.
	TimerRepeat
)

// Clone returns an independent copy of the Machine for a copy of its ledger.
// It shares the Config, its Rand included.
func (m *Machine) Clone(ledger Ledger) *Machine {
	c := *m
	c.ledger = ledger
	c.state = m.state.Clone()
	c.cares = slices.Clone(m.cares)
	if m.round != nil {
		r := *m.round
		r.waits = slices.Clone(r.waits)
		c.round = &r
	}
	return &c
}

// Retime replaces the time of every timer by the result of f; 0 stands for a time long
// past. receiver is the receiver of the debit, empty for TimerRound. The behaviour of a
// Machine may depend on the fact of a time-out and on nothing else about it, so any
// choice must be safe.
func (m *Machine) Retime(f func(t Timer, receiver avantan.SiteID, at avantan.Tick) avantan.Tick) {
	if m.round != nil {
		m.round.deadline = f(TimerRound, "", m.round.deadline)
	}
	for i := range m.cares {
		m.cares[i].deadline = f(TimerRepeat, m.state.Debits[i].Receiver, m.cares[i].deadline)
	}
}

// Fingerprint appends to dst an encoding of everything that determines the Machine's
// future actions and messages, volatile fields included. Two Machines with the same
// Config and fingerprint differ only in the times of their actions. The encoding omits
// times and counts of repetitions. It is not for storage.
func (m *Machine) Fingerprint(dst []byte) []byte {
	dst = binary.AppendUvarint(m.state.Fingerprint(dst), m.next)
	if m.round == nil {
		return append(dst, 0)
	}
	dst = binary.AppendUvarint(append(dst, 1), m.round.ask)
	dst = binary.AppendVarint(binary.AppendVarint(dst, int64(m.round.need)), int64(m.round.got))
	dst = binary.AppendUvarint(dst, uint64(len(m.round.waits)))
	for _, site := range m.round.waits {
		dst = appendString(dst, string(site))
	}
	return dst
}

// Fingerprint appends an encoding of the State to dst, the same for equal
// states only. It is not for storage.
func (s *State) Fingerprint(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, s.Reserved)
	dst = binary.AppendUvarint(dst, uint64(len(s.Debits)))
	for _, d := range s.Debits {
		dst = binary.AppendUvarint(appendString(dst, string(d.Receiver)), d.Asked)
		dst = binary.AppendVarint(binary.AppendUvarint(dst, d.Seq), int64(d.Amount))
	}
	dst = binary.AppendUvarint(dst, uint64(len(s.Credits)))
	for _, c := range s.Credits {
		dst = binary.AppendUvarint(appendString(dst, string(c.Donor)), c.Seq)
	}
	return dst
}

// Fingerprint appends an encoding of the Message to dst, the same for equal
// messages only. It is not for the wire.
func (m *Message) Fingerprint(dst []byte) []byte {
	dst = appendString(appendString(append(dst, byte(m.Kind)), string(m.From)), string(m.To))
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, m.Ask), m.Seq)
	return binary.AppendVarint(binary.AppendVarint(dst, int64(m.Amount)), int64(m.Left))
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}
