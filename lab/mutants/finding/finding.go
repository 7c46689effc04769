// Package finding holds what a program built with a bug tells of it. It refuses
// to depend on anything, since it is compiled with the bug.
package finding

// Finding is what came of looking for one bug in one way.
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
	// Event counts the events of that seed, or of the search, up to it.
	Event uint64 `json:"event,omitempty"`
	// Panics and Hashes count seeds that tell nothing: they panicked, or went
	// another way when run again. Panic is the last panic.
	Panics int    `json:"panics,omitempty"`
	Panic  string `json:"panic,omitempty"`
	Hashes int    `json:"hashes,omitempty"`
	// Tests is how many tests ran; the names of those that failed are in Broken.
	Tests int `json:"tests,omitempty"`
	// Failed are the seeds that violate an invariant, if all were run, and Broken
	// those invariants.
	Failed []uint64 `json:"failed,omitempty"`
	Broken []string `json:"broken,omitempty"`
	// Skipped says that the variant cannot be searched.
	Skipped bool `json:"skipped,omitempty"`
}
