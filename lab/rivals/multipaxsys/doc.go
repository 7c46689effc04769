// Package multipaxsys is the paper's MultiPaxSys, a database that is replicated
// over the world and runs consensus for each transaction (Samya, Section 5, i), on
// etcd's Raft library. It refuses to be a straw man: beside the paper's one round
// for each transaction it batches and pipelines, its leader answers reads under a
// lease and refuses without a round what it knows it must, and what cannot be in
// time does not take the place of what can.
//
// Five replicas stand as the paper says: three in different regions of the US, one
// in Asia, one in Europe. The leader is in Oregon, the paper's US-West1, so that
// a round takes as long as the way to the farther of the two others in the US and
// back. In each client's region a router, of the client's machine and at no cost of
// its own, passes requests on to the leader, finds it again when it changes, and
// asks again for what has no answer.
//
// # Once and in time
//
// The record is a list of leases, one byte each, and a lease goes from none to held
// to ended, in this order: so to ask twice changes nothing, and a release that comes
// first bars its acquire. Entries hold the time of their proposal and the deadline
// of each acquire; one that comes later than that grants nothing. A router that has
// given up on an acquire which a leader may have got waits for that leader's word,
// and if it is granted after all, or the leader is lost, releases it. Of a router
// that crashed, the same is done when it is up again.
//
// # What it costs
//
// An acquire, a release and an exact read each take the leader's processor for one
// request, stale reads that of the nearest replica. Exact reads go to the leader,
// which answers from memory while a majority has promised to elect nobody else. A
// leader sends entries while it writes them itself, as etcd does; followers answer
// when theirs are durable.
package multipaxsys
