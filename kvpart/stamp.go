package kvpart

import (
	"encoding/binary"
	"fmt"
)

// After a crash a durable engine may hold an older copy of a key than another engine
// does. So each value begins with a stamp: a mark, and a version that grows with each
// write of the store. The copy with the highest version counts.
const stampSize = 1 + 8

// mark is the kind of a copy.
type mark byte

const (
	markValue mark = 'v'
	// markGone says that a transaction removed the key. The other writes of the
	// transaction are in the same engine.
	markGone mark = 'g'
)

func putStamp(b []byte, m mark, version uint64) {
	b[0] = byte(m)
	binary.BigEndian.PutUint64(b[1:], version)
}

func readStamp(b []byte) (mark, uint64, error) {
	if len(b) < stampSize || mark(b[0]) != markValue && mark(b[0]) != markGone {
		return 0, 0, fmt.Errorf("%w: a value without a stamp", ErrFormat)
	}
	return mark(b[0]), binary.BigEndian.Uint64(b[1:]), nil
}
