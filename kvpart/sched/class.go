package sched

// Classer chooses the partitions that a request runs on.
type Classer[V any] interface {
	// Class appends the partitions of r to dst, ascending and without duplicates: at
	// least one if r has entries. Two requests that must not run at the same time share a
	// partition, and are not both of Access Share. Class may be called by several
	// goroutines at the same time, and again if the epoch or the entries of r changed.
	Class(r *Request[V], dst []int32) []int32
}
