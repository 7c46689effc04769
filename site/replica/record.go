package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/samya-db/samya/site/journal"
)

// recordVersion is the first byte of a record. A later version is for records that an
// earlier build must not read.
const recordVersion = 2

// headBytes is the length of a record's head: version, 1 byte free, the number of parts in
// 2, the term in 8, the length of the commit in 4, its sum in 4, its run in 8 and the run of
// the commit before in 8. Numbers are little-endian. The commit follows unless there are
// parts.
const headBytes = 36

// errRecord: a record of the log cannot be read.
var errRecord = errors.New("a commit in the store of the log cannot be read")

// record is a commit in the form of the store.
type record struct {
	term int64
	// run is the Leader.Run of the node that made the commit: a term's name for ever, also
	// where a store was put back to an older copy and counts terms anew from there. before
	// is the run of the commit before; 0 if it is not known.
	run, before uint64
	// parts is the number of parts that hold the payload; 0: payload holds it.
	parts   int
	length  int
	sum     uint32
	payload []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf is the sum of a commit with its number and runs: a commit under another number is
// damaged.
func (r *record) sumOf(n journal.Number, payload []byte) uint32 {
	var head [24]byte
	binary.LittleEndian.PutUint64(head[:], uint64(n))
	binary.LittleEndian.PutUint64(head[8:], r.run)
	binary.LittleEndian.PutUint64(head[16:], r.before)
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, payload)
}

// encode appends a record to dst.
func (r *record) encode(dst []byte) []byte {
	dst = append(dst, recordVersion, 0)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(r.parts)) //nolint:gosec // at most maxParts
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.term))  //nolint:gosec // a revision is positive
	dst = binary.LittleEndian.AppendUint32(dst, uint32(r.length))
	dst = binary.LittleEndian.AppendUint32(dst, r.sum)
	dst = binary.LittleEndian.AppendUint64(dst, r.run)
	dst = binary.LittleEndian.AppendUint64(dst, r.before)
	return append(dst, r.payload...)
}

// decode reads a record. Its payload shares b's memory.
func decode(n journal.Number, b []byte) (record, error) {
	if len(b) < headBytes {
		return record{}, fmt.Errorf("%w: commit %d has %d bytes", errRecord, n, len(b))
	}
	if b[0] != recordVersion {
		return record{}, fmt.Errorf("%w: commit %d is of version %d, this build reads %d", errRecord, n, b[0], recordVersion)
	}
	r := record{
		parts: int(binary.LittleEndian.Uint16(b[2:])), term: int64(binary.LittleEndian.Uint64(b[4:])), //nolint:gosec // as it was stored
		length: int(binary.LittleEndian.Uint32(b[12:])), sum: binary.LittleEndian.Uint32(b[16:]), run: binary.LittleEndian.Uint64(b[20:]),
		before: binary.LittleEndian.Uint64(b[28:]), payload: b[headBytes:],
	}
	switch {
	case r.term <= 0 || r.length == 0:
		return record{}, fmt.Errorf("%w: commit %d has term %d and %d bytes", errRecord, n, r.term, r.length)
	case r.parts > 0 && len(r.payload) > 0:
		return record{}, fmt.Errorf("%w: commit %d stands in parts and in place", errRecord, n)
	case r.parts == 0:
		return r, r.check(n, r.payload)
	}
	return r, nil
}

// check compares a commit with the record's length and sum.
func (r *record) check(n journal.Number, payload []byte) error {
	if len(payload) != r.length || r.sumOf(n, payload) != r.sum {
		return fmt.Errorf("%w: commit %d is damaged", errRecord, n)
	}
	return nil
}
