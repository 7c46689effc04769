package star

import "github.com/samya-db/samya/avantan"

// Ledger is the caller's books of a sequence, as a Machine needs them. A Machine calls
// it from within Step, on the caller's goroutine, and it must not block. Its changes
// become durable in the same transaction as the Machine's State.
//
// Several slices may be set aside at once, each for an instance of its own.
type Ledger interface {
	// Pledge sets tokens aside for an instance and returns the contribution, or
	// reports false to take no part: a site with nothing to offer and nothing to
	// ask for is better left out, since every member of R can hold it up.
	Pledge(id ID, press avantan.Press) (avantan.Contribution, bool)
	// TakeBack makes a pledged offer usable again: the instance is aborted.
	TakeBack(id ID, pledge avantan.Contribution)
	// CanApply returns an error if this site cannot apply the value: it must not accept
	// a policy that this build does not know. A value once found good must stay good
	// until the instance is over.
	CanApply(v *avantan.Value) error
	// Apply settles an instance: the slice set aside for it is gone, and this site's
	// grant is credited.
	Apply(id ID, v *avantan.Value)
	// Conclude ends an accepted instance of which no member left can know the outcome: the
	// slice set aside for it is gone, and the lower of this site's offer and its grant is
	// credited. The difference to the outcome is retired: it is in no site's books.
	Conclude(id ID, v *avantan.Value)
}
