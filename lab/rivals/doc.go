// Package rivals holds what samya is measured against in the paper's experiments
// (Samya, Section 5), and what it should be: sites without a constraint or without
// redistribution, sites that borrow escrows from each other, in need or ahead of it,
// a central pool that leases shares, an approximate counter, and one global counter
// without latency; package multipaxsys beside it is the replicated database. It refuses
// to make a rival slower than its design makes it: all run in the same world,
// with the same processors, disks and network as samya's sites.
//
// A site serves a request on its processor and then makes it durable, together
// with all that waits for its disk; answers leave when it is. Requests to other
// sites take a processor too.
package rivals
