// Package local runs a cluster of several regions on one machine, as processes
// that outlive the command that started them; it refuses to touch a directory or
// a process that is not its own.
//
// What is wanted is a [Config]. [Apply] compares it with what runs and changes
// only what differs: it starts what is missing, starts again what has other
// arguments or another program, and stops what is wanted no more. [Down] ends all
// of it and removes what it wrote.
//
// # Whose process is it
//
// A process id is used anew after a while, and all of them after a reboot. So a
// process is known by its id, the instant at which the kernel says it began and,
// on Linux, the boot it began in. What fails to match is somebody else's and is
// neither signalled nor counted as running.
package local
