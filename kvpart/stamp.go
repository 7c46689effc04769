package kvpart

import (
	"encoding/binary"
	"fmt"
)

// A durable engine may hold an older copy of a key than another one does, after a
// crash. So each value begins with a stamp: what it is, and a version that grows
// with each write of the store. The copy with the highest version is the one that
// counts.
const stampSize = 1 + 8

// mark tells what a copy is.
type mark byte

const (
	markValue mark = 'v'
	// markGone says that the key was removed, in a transaction whose other writes are
	// in the same engine.
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
