// Package proc runs a samya cluster as real processes on this machine, for the
// demo and for tests that kill and restart them; it knows command lines, ports,
// files and signals, and nothing of what the processes do.
//
// # No process outlives its purpose
//
// Every child is stopped by its own process id, app managers before sites,
// first asked (SIGTERM), then killed. Should the parent itself be killed, two
// things end the children: on Linux the kernel does (the parent-death signal),
// elsewhere the children notice that their standard input, a pipe that nobody
// writes to, has reached its end (see [LifelineFlag]).
//
// Children stand in process groups of their own, so that Ctrl-C at a terminal
// reaches the parent alone, which then stops them in order.
package proc
