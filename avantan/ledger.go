package avantan

// Ledger is the caller's books of one sequence, as a Machine needs them. It is
// called from within Step, on the caller's goroutine, and must not block. What
// it changes becomes durable in the same transaction as the Machine's State.
type Ledger interface {
	// Pledge sets tokens aside for instance t and returns the contribution, or
	// reports false to take part as an acceptor only (the catalogue does).
	Pledge(t Instance, press Press) (Contribution, bool)
	// TakeBack makes a pledged offer usable again: no value with it can be
	// decided any more, or t was decided without it.
	TakeBack(t Instance, pledge Contribution)
	// CanApply reports whether the value can be applied here: a policy or a
	// change that this build does not know must not be accepted. What it once
	// found good must stay so until the instance is applied.
	CanApply(v *Value) error
	// Apply settles instance t: if the value holds a contribution of this site
	// its slice is gone and its grant is credited; the value's change, if any,
	// takes effect.
	Apply(t Instance, v *Value)
	// Snapshot returns what a site that has applied since must know of this
	// sequence besides its own grants, as of all that is applied here: the limit,
	// the version, results by request id; what the catalogue has changed. By the
	// time it is installed that site may have applied more than since, never less.
	Snapshot(since Instance) []byte
	// Install replaces that knowledge by a snapshot taken at the given instance,
	// or leaves all as it was and returns an error.
	Install(applied Instance, snapshot []byte) error
}

// Rand is the caller's source of randomness, seeded in simulations.
type Rand interface {
	// Uint64N returns a number in [0, n), n > 0.
	Uint64N(n uint64) uint64
}
