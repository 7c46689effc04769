package sched

import "sync/atomic"

// Entry is a key of a scheduler and where it belongs.
type Entry[V any] struct {
	key string
	// where packs the partition at present, the one after, and the epoch from which
	// that counts.
	where atomic.Uint64
	// queued is how many requests that wait or run at workers have the entry.
	queued atomic.Int32
	// dead is set when the entry leaves the directory: by a sweep with the partition's
	// lock held, so that no request that was dispatched has it. Whoever has it looks
	// the key up again.
	dead atomic.Bool
	// listed is set while the entry is among the vacancies.
	listed atomic.Bool

	// Slot is the Observer's, 0 in a new entry.
	Slot atomic.Int32
	// Present tells that the key holds something. It belongs to the job that runs
	// alone on the entry, which sets it; one that leaves it false makes the entry
	// vacant, to be removed when nobody waits for it. Jobs that share may read it.
	Present bool
	// Value is what the key holds; it is used as Present is.
	Value V
}

// Gone tells whether the entry left the scheduler for good.
func (e *Entry[V]) Gone() bool { return e.dead.Load() }

// Key returns the key.
func (e *Entry[V]) Key() string { return e.key }

// Epoch counts the switches of the map of partitions.
type Epoch uint64

// Unplaced is the partition of a key that is placed as if new when it is used next.
const Unplaced = -1

const (
	partitionBits = 12
	unplaced      = 1<<partitionBits - 1
)

func pack(present, next int, from Epoch) uint64 {
	return uint64(from)<<(2*partitionBits) | uint64(next)&unplaced<<partitionBits | uint64(present)&unplaced
}

func unpack(w uint64, at Epoch) int {
	if at < Epoch(w>>(2*partitionBits)) {
		w <<= partitionBits
	}
	p := int(w >> partitionBits & unplaced)
	if p == unplaced {
		return Unplaced
	}
	return p
}

// place returns w with the partition that counts at epoch set to p.
func place(w uint64, at Epoch, p int) uint64 {
	from := Epoch(w >> (2 * partitionBits))
	if at >= from {
		return pack(p, p, 0)
	}
	return w&^unplaced | uint64(p)
}

// At returns the partition of the entry at an epoch that is the present one, the
// one before or the next; Unplaced if it has none.
func (e *Entry[V]) At(epoch Epoch) int { return unpack(e.where.Load(), epoch) }
