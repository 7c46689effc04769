package engine

import "sync/atomic"

// phase is the state of an engine: the committer's work, or the end of the engine.
type phase int32

// The committer moves between the first five phases. From closing on an engine moves to
// later phases only.
const (
	// working: the committer steps the core, or lets effects leave.
	working phase = iota
	// awaiting: the committer waits until the partitions have served their inputs.
	awaiting
	// holding: the committer waits for answered callers. Goroutines with the turn may step
	// the core.
	holding
	// syncing: a commit is under way. Goroutines with the turn may step the core.
	syncing
	// resting: nothing is to be done, and the committer waits for a nudge.
	resting
	// closing: the engine stops. The committer steps the core a last time and commits; no
	// other goroutine steps the core, and no input goes to the partitions.
	closing
	// stopped: the engine takes no more inputs.
	stopped
	// failed: a commit failed. Effects of earlier commits leave.
	failed
	// refused: the site's data is refused. Nothing leaves.
	refused
)

// helped reports whether other goroutines than the committer may step the core.
func (p phase) helped() bool { return p == holding || p == syncing }

// state is the phase of an engine. Any goroutine may read it.
type state struct{ at atomic.Int32 }

func (s *state) now() phase { return phase(s.at.Load()) }

// move goes to another of the first five phases, and reports whether the engine was in
// the phase from.
func (s *state) move(from, to phase) bool { return s.at.CompareAndSwap(int32(from), int32(to)) }

// end goes to a phase from closing on, unless the engine is in a later phase.
func (s *state) end(to phase) {
	for {
		if now := s.now(); now >= to || s.move(now, to) {
			return
		}
	}
}
