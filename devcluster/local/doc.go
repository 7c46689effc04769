// Package local runs a cluster of several regions on this machine, as processes that
// outlive the command that started them; it refuses to touch a directory or a process
// that is not its own.
//
// A [Config] describes the wanted cluster. [Apply] compares it with the running
// processes and changes only the differences: it starts missing processes, restarts
// processes with other arguments or another program, and stops surplus processes. [Down]
// ends all processes and removes their files.
//
// # The identity of a process
//
// The system reuses process ids after a while, and all of them after a reboot. So the id
// alone does not identify a process. Its start according to the kernel must match too
// and, on Linux, the boot in which it began. A process that does not match is foreign:
// it gets no signal and does not count as running.
package local
