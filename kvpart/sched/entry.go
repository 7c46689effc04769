package sched

import "sync/atomic"

// Entry is a key of a scheduler and its place.
type Entry[V any] struct {
	key string
	// where packs the present partition, the next partition, and the epoch from which the
	// next counts.
	where atomic.Uint64
	// queued is the number of requests with the entry that wait or run at workers.
	queued atomic.Int32
	// dead is set when the entry leaves the directory. A sweep sets it with the
	// partition's lock held, so that no dispatched request has the entry. A request not
	// yet dispatched looks the key up again.
	dead atomic.Bool
	// listed is set while the entry is among the vacancies.
	listed atomic.Bool

	// Slot belongs to the Observer; it is 0 in a new entry.
	Slot atomic.Int32
	// Present says that the key holds a value. It belongs to the job that runs alone on
	// the entry. A job that leaves it false makes the entry vacant: a sweep removes it
	// when nobody waits for it. Jobs that share may read Present.
	Present bool
	// Value is the value of the key; the rules of Present apply.
	Value V
}

// Gone reports whether the entry left the scheduler for good.
func (e *Entry[V]) Gone() bool { return e.dead.Load() }

// Key returns the key.
func (e *Entry[V]) Key() string { return e.key }

// Epoch counts the switches of the map of partitions.
type Epoch uint64

// Unplaced is the partition of a key that is placed as if new at its next use.
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

// place returns w with the partition at epoch set to p.
func place(w uint64, at Epoch, p int) uint64 {
	from := Epoch(w >> (2 * partitionBits))
	if at >= from {
		return pack(p, p, 0)
	}
	return w&^unplaced | uint64(p)
}

// At returns the partition of the entry at an epoch: the present epoch, its predecessor
// or its successor. It returns Unplaced if the entry has no partition.
func (e *Entry[V]) At(epoch Epoch) int { return unpack(e.where.Load(), epoch) }
