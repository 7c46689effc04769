// Package rivals holds the rivals of samya in the paper's experiments (Samya,
// Section 5), and further rivals. There are sites without a constraint, sites
// without redistribution, and sites that borrow escrows from each other, in need or
// ahead of it. There are a central pool that leases shares, an approximate counter,
// and a single global counter without latency. Package multipaxsys is the
// replicated database. No rival is slower than its design: all run in the same
// world as samya's sites, with the same processors, disks and network.
//
// A site serves a request on its processor and then makes it durable, together with
// all requests that wait for its disk. Answers leave when the request is durable.
// Requests to other sites take a processor too.
package rivals
