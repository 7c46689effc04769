// Package compare measures samya beside other stores that can count tokens, on a
// single machine and in a single run. It refuses to compare systems that do
// different jobs. Every system must keep the limit, remember each request id with
// its outcome, and have granted exactly the tokens that its answers say.
//
// # What is measured
//
// A [System] is a server, or several settings of a server. Callers ask it in one or
// more ways ([Way]): an operation a call, batches, a stream. A way and a workload
// make a cell of the result. Every operation takes a token of an entity under its
// own request id. A repeat of an id gets the first answer.
//
// Runs alternate. Each round starts every system anew in an empty directory on the
// disk under test. It asks the system in all its ways, checks its books, and stops
// it. Each round begins with another system. Controls bound the possible rates: a
// synced file, and servers that answer at once. Figures are medians over the
// rounds, ratios medians of the ratios within a round: a slow minute of the disk
// slows both sides of a ratio.
//
// # What is fair
//
// All callers are goroutines of this process. Servers are separate processes, all
// on loopback. A system gets the fastest known client, commands and settings, not
// the settings most like samya's.
package compare
