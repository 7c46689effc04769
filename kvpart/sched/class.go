package sched

// Classer says which partitions a request runs on.
type Classer[V any] interface {
	// Class appends the partitions of r to dst, ascending and without doubles: one at
	// least if r has entries. Requests that must not run at the same time have one in
	// common, and are not both of Access Share. It is called by several at the same
	// time, again if the epoch or the entries of r changed.
	Class(r *Request[V], dst []int32) []int32
}
