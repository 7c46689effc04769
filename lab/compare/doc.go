// Package compare measures samya beside other stores that can count tokens, on
// one machine and in one run; it refuses to compare what does not do the same
// job: every system must keep the limit, remember each request id with its
// outcome, and have granted exactly what it told.
//
// # What is measured
//
// A [System] is a server, or several settings of one. It is asked in one or more
// ways ([Way]): one operation a call, batches, a stream. A way and a workload
// make a cell of the result. Every operation takes one token of an entity under a
// request id of its own, and the answer to a repeat of an id is the first one.
//
// Runs alternate: each round starts every system anew in an empty directory on
// the disk under test, asks it in all its ways, checks its books, and stops it;
// each round begins with another system. Controls bound what can be reached: a
// file that is synced, and servers that answer at once. Figures are medians over
// the rounds, ratios medians of the ratios within a round, so that a disk that is
// slow for a minute is slow for both sides.
//
// # What is fair
//
// All callers are goroutines of this process, servers are processes of their
// own, all on loopback. A system gets the fastest client, commands and settings
// known for it, not those most alike samya's.
package compare
