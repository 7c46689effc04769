// Package mutants shows that the simulator and the exhaustive search find bugs:
// it seeds known ones into the protocols, one at a time, and has both look for
// them. It refuses to touch the code it changes: a bug is a piece of text and
// what stands in its place, in a file under testdata, and is applied by
// `go build -overlay`. So the product carries no switches.
//
// A bug counts as caught only if a named invariant does not hold. A panic, a
// hash that differs or a build that fails does not count. The unchanged code
// runs over the same seeds and bounds as the control, and must pass.
//
// Bugs in what the simulator does not run are judged by `go test` of the packages
// named in their files: a named test has to fail. The unchanged code passes the same
// tests as the control.
//
// Bugs in the order of kvpart's requests are judged by its oracle, package kvoracle, on
// a store that the file of the bug describes: an invariant has to be violated. A
// deadlock, as the watchdog names it, counts only for a bug that expects one.
package mutants
