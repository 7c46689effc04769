// Package proc runs a samya cluster as real processes on this machine, for the demo and
// for tests that kill and restart them; it knows command lines, ports, files and
// signals, but nothing of the processes' work.
//
// # No process outlives its purpose
//
// Stop ends every child by its own process id, app managers before sites, first with
// SIGTERM, then with a kill. If the parent itself is killed, the kernel ends the
// children on Linux (the parent-death signal). On other systems the children notice the
// end of their standard input, a pipe without a writer (see [LifelineFlag]).
//
// Children stand in process groups of their own, so that Ctrl-C at a terminal reaches
// only the parent, which then stops them in order.
package proc
