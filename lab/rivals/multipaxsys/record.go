package multipaxsys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The states of a lease.
const (
	leaseNone byte = iota
	leaseHeld
	leaseEnded
)

// mostLeases is the most leases.
const mostLeases = 1 << 24

// op is a transaction.
type op struct {
	of      int32
	release bool
	// latest is the latest time to propose an acquire.
	latest time.Duration
}

// verdict is the outcome of a transaction.
type verdict uint8

const (
	granted verdict = iota + 1
	refused
	tooLate
)

// record is the replicated state: replicas are equal after the same entries.
type record struct {
	limit, out int
	leases     []byte
	// applied is the index of the last applied entry.
	applied uint64
}

// lease returns the state of a lease.
func (r *record) lease(of int32) byte {
	if int(of) >= len(r.leases) {
		return leaseNone
	}
	return r.leases[of]
}

func (r *record) set(of int32, to byte) {
	if n := int(of) + 1; n > len(r.leases) {
		r.leases = append(r.leases, make([]byte, n-len(r.leases))...)
	}
	r.leases[of] = to
}

// do applies a transaction proposed at a time.
func (r *record) do(o op, proposed time.Duration) verdict {
	was := r.lease(o.of)
	switch {
	case o.release:
		if was == leaseHeld {
			r.out--
		}
		r.set(o.of, leaseEnded)
		return granted
	case was == leaseHeld:
		return granted
	case was == leaseEnded || proposed > o.latest:
		return tooLate
	case r.out >= r.limit:
		return refused
	}
	r.out++
	r.set(o.of, leaseHeld)
	return granted
}

// errEntry is the error of a malformed entry.
var errEntry = errors.New("not an entry")

// appendEntry encodes transactions that are proposed together.
func appendEntry(b []byte, proposed time.Duration, ops []op) []byte {
	b = binary.AppendUvarint(b, uint64(proposed)) //nolint:gosec // times of a run are not negative
	for _, o := range ops {
		if o.release {
			b = binary.AppendUvarint(b, uint64(o.of)<<1|1) //nolint:gosec // leases are numbered from 0
			continue
		}
		b = binary.AppendUvarint(b, uint64(o.of)<<1) //nolint:gosec // as above
		b = binary.AppendVarint(b, int64(o.latest-proposed))
	}
	return b
}

// apply applies an entry; done is called with each of its transactions.
func (r *record) apply(index uint64, entry []byte, done func(op, verdict)) error {
	r.applied = index
	if len(entry) == 0 {
		return nil
	}
	at, n := binary.Uvarint(entry)
	if n <= 0 {
		return errEntry
	}
	proposed := time.Duration(at) //nolint:gosec // as it was encoded
	for entry = entry[n:]; len(entry) > 0; {
		v, n := binary.Uvarint(entry)
		if n <= 0 || v>>1 >= mostLeases {
			return errEntry
		}
		entry = entry[n:]
		o := op{of: int32(v >> 1), release: v&1 == 1} //nolint:gosec // as it was encoded
		if !o.release {
			left, n := binary.Varint(entry)
			if n <= 0 {
				return errEntry
			}
			entry = entry[n:]
			o.latest = proposed + time.Duration(left)
		}
		what := r.do(o, proposed)
		if done != nil {
			done(o, what)
		}
	}
	return nil
}

// snapshot encodes the leases. The log knows the index.
func (r *record) snapshot() []byte { return slices.Clone(r.leases) }

// restore replaces the record by a snapshot.
func (r *record) restore(index uint64, leases []byte) {
	r.applied, r.leases, r.out = index, slices.Clone(leases), 0
	for _, l := range leases {
		if l == leaseHeld {
			r.out++
		}
	}
}

// check checks that the counts add up.
func (r *record) check() error {
	held := 0
	for _, l := range r.leases {
		if l == leaseHeld {
			held++
		}
	}
	if held != r.out || r.out > r.limit {
		return fmt.Errorf("%d leases are held and %d counted, the limit is %d", held, r.out, r.limit)
	}
	return nil
}
