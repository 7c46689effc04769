package avantan

// Ledger is the caller's books of a sequence, as a Machine needs them. A Machine calls
// it from within Step, on the caller's goroutine, and it must not block. Its changes
// become durable in the same transaction as the Machine's State.
type Ledger interface {
	// Pledge sets tokens aside for instance t and returns the contribution, or
	// reports false to take part as an acceptor only (the catalogue does).
	Pledge(t Instance, press Press) (Contribution, bool)
	// TakeBack makes a pledged offer usable again: no value with it can be
	// decided any more, or t was decided without it.
	TakeBack(t Instance, pledge Contribution)
	// Forfeit gives a pledge up: instance t was settled without it, but sites lost for
	// good may have decided t with it, and have granted its tokens. A positive offer is
	// gone; of a debt, nothing is.
	Forfeit(t Instance, pledge Contribution)
	// CanApply returns an error if this site cannot apply the value: it must not accept
	// a policy or a change that this build does not know. A value once found good must
	// stay good until the instance is applied.
	CanApply(v *Value) error
	// Apply settles instance t. If the value holds a contribution of this site, its
	// slice is gone and its grant is credited. The value's change, if any, takes
	// effect.
	Apply(t Instance, v *Value)
	// View returns the voters of the instance after the last one applied or installed.
	// It is valid, and changes only within Apply and Install: the decided instances up
	// to the last determine it.
	View() View
	// Snapshot returns all that a site at instance since must know of this sequence
	// besides its own grants, as of the last instance applied here. That is the limit,
	// the version, the view and results by request id, or the catalogue's changes. Until it
	// installs the snapshot, the site may apply more instances, never fewer.
	Snapshot(since Instance) []byte
	// Install replaces that knowledge by a snapshot taken at instance applied, or
	// returns an error and changes nothing.
	Install(applied Instance, snapshot []byte) error
}

// Rand is the caller's source of randomness, seeded in simulations.
type Rand interface {
	// Uint64N returns a number in [0, n), n > 0.
	Uint64N(n uint64) uint64
}
