// Package finding holds the report of a program built with a bug. The package depends on
// nothing, since it is compiled with the bug.
package finding

// Finding is the result of looking for a bug in a single way.
type Finding struct {
	// Seeds were run, or States found; Closed says that there are no more.
	Seeds  uint64 `json:"seeds,omitempty"`
	States int    `json:"states,omitempty"`
	Closed bool   `json:"closed,omitempty"`
	// Events are simulated events, or steps of a search.
	Events uint64 `json:"events"`
	// Violations is 1 if an invariant does not hold, more if a search finds
	// several at once; the other fields are of the first.
	Violations int    `json:"violations"`
	Invariant  string `json:"invariant,omitempty"`
	Detail     string `json:"detail,omitempty"`
	Seed       uint64 `json:"seed,omitempty"`
	// Event counts the events of the seed, or of the search, up to the violation.
	Event uint64 `json:"event,omitempty"`
	// Panics and Hashes count seeds that tell nothing: the run panicked, or went another
	// way when run again. Panic is the last panic.
	Panics int    `json:"panics,omitempty"`
	Panic  string `json:"panic,omitempty"`
	Hashes int    `json:"hashes,omitempty"`
	// Tests is how many tests ran; Broken holds the names of the failed tests.
	Tests int `json:"tests,omitempty"`
	// Failed are the seeds that violate an invariant: all of them if all seeds were run,
	// else the first. Broken are the violated invariants.
	Failed []uint64 `json:"failed,omitempty"`
	Broken []string `json:"broken,omitempty"`
	// Skipped says that the variant cannot be searched.
	Skipped bool `json:"skipped,omitempty"`
}
