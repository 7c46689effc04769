package sched

// The errors that only tests tell from others.
var (
	ErrFull    = errFull
	ErrOptions = errOptions
)
