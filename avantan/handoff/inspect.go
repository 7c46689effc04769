package handoff

import (
	"encoding/binary"

	"github.com/samya-db/samya/avantan"
)

// For a search over all schedules, which copies Machines, compares their future
// behaviour, and lets time-outs come in any order. Nothing else needs this file.

// Clone returns an independent copy of the Machine for a copy of its ledger.
// Both share the Config, with the Rand.
func (m *Machine) Clone(ledger Ledger) *Machine {
	c := *m
	c.ledger = ledger
	c.state = m.state.Clone()
	return &c
}

// Retime replaces the time at which the open bequest is sent again. The behaviour of a
// Machine may depend on the fact of a time-out and on nothing else about it, so any
// choice must be safe.
func (m *Machine) Retime(at avantan.Tick) { m.deadline = at }

// Fingerprint appends an encoding of the State to dst, the same for equal states only.
// Two Machines with the same Config and State differ only in the times of their
// actions. The encoding is not for storage.
func (s *State) Fingerprint(dst []byte) []byte {
	if s.Open == nil {
		dst = append(dst, 0)
	} else {
		dst = binary.AppendUvarint(appendString(append(dst, 1), string(s.Open.Heir)), s.Open.Number)
		dst = s.Open.Estate.fingerprint(dst)
	}
	dst = binary.AppendUvarint(dst, uint64(len(s.Given)))
	for _, g := range s.Given {
		dst = binary.AppendUvarint(appendString(dst, string(g.Heir)), g.Number)
	}
	dst = binary.AppendUvarint(dst, uint64(len(s.Taken)))
	for _, t := range s.Taken {
		dst = binary.AppendUvarint(appendString(dst, string(t.Leaver)), t.Number)
	}
	return dst
}

// Fingerprint appends an encoding of the Message to dst, the same for equal
// messages only. The encoding is not for the wire.
func (m *Message) Fingerprint(dst []byte) []byte {
	dst = appendString(appendString(append(dst, byte(m.Kind)), string(m.From)), string(m.To))
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, m.Number), m.Taken)
	return m.Estate.fingerprint(dst)
}

func (e *Estate) fingerprint(dst []byte) []byte {
	dst = binary.AppendVarint(binary.AppendVarint(dst, int64(e.Left)), int64(e.Owed))
	dst = binary.AppendUvarint(binary.AppendVarint(dst, int64(e.Net)), uint64(len(e.Items)))
	for _, item := range e.Items {
		dst = binary.AppendVarint(appendString(dst, string(item.Data)), int64(item.Tokens))
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}
