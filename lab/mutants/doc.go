// Package mutants shows that the simulator and the exhaustive search find bugs. It seeds
// known bugs into the protocols, each alone, and lets both look for it. It never touches
// the code: a bug is a text and its replacement, in a file under testdata, applied by `go
// build -overlay`. So the product carries no switches.
//
// Bugs are compiled together where possible, see package schemata, and a run switches one
// on. A bug that the finder misses there is compiled alone, and looked for again.
//
// A bug counts as caught only if a named invariant does not hold. A panic, a
// hash that differs or a build that fails does not count. The unchanged code
// runs over the same seeds and bounds as the control, and must pass.
//
// `go test` judges bugs in code that the simulator does not run. A named test, of the
// packages in the bug's file, has to fail. The unchanged code passes the same tests as
// the control.
//
// Bugs in the order of kvpart's requests are judged by its oracle, package kvoracle, on a
// store that the file of the bug describes: an invariant has to be violated. A deadlock
// found by the watchdog counts only for a bug that expects a deadlock.
package mutants
