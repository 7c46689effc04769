package attempt

import (
	"github.com/samya-db/samya/internal/session"
)

// The key of a request of a session has two marks, the session's id, and the sequence in the
// rest. So a site finds the session of a request that another site asks about.
const (
	mark0, mark1 = 0x5e, 0x55
	idAt         = 2
	sequenceAt   = idAt + session.Bytes
)

// OfSession is the key of a session's request. The sequence is at most session.MaxSequence.
func OfSession(id session.ID, sequence uint64) Key {
	k := Key{0: mark0, 1: mark1}
	copy(k[idAt:], id[:])
	for i := range len(k) - sequenceAt {
		k[len(k)-1-i] = byte(sequence >> (8 * i))
	}
	return k
}

// InSession reports whether Session finds a session.
func (k *Key) InSession() bool { return k[0] == mark0 && k[1] == mark1 }

// Session returns the session and the sequence of a request. One of 65,536 hashes looks like
// the key of a session that nobody knows.
func (k *Key) Session() (id session.ID, sequence uint64, ok bool) {
	if !k.InSession() {
		return id, 0, false
	}
	for _, b := range k[sequenceAt:] {
		sequence = sequence<<8 | uint64(b)
	}
	return session.ID(k[idAt:sequenceAt]), sequence, true
}
