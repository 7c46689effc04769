// Package multipaxsys is the paper's MultiPaxSys (Samya, Section 5, i): a database
// replicated over the world that runs consensus for each transaction. It stands on
// etcd's Raft library. It is no straw man. Beside the paper's round for each
// transaction it batches and pipelines. Its leader answers reads under a lease, and
// refuses without a round the requests that it must refuse. A request that would be
// late does not take the place of a request in time.
//
// Five replicas stand as in the paper: three in different regions of the US, one in
// Asia, one in Europe. The leader is in Oregon, the paper's US-West1: a round takes
// the round trip to the farther of the two others in the US. Each client's region
// has a router, on the client's machine and without cost of its own. It passes
// requests on to the leader, finds a new leader, and repeats requests without an
// answer.
//
// # Once and in time
//
// The record is a list of leases, a byte each. A lease goes from none to held to
// ended. So a repeat changes nothing, and a release that comes first bars its
// acquire. Entries hold the time of their proposal and the deadline of each
// acquire; an acquire past its deadline grants nothing. A router gives up on an
// acquire only after the word of the leader that may have got it. If the acquire is
// granted after all, or the leader is lost, the router releases it. A crashed
// router does the same after its restart.
//
// # What it costs
//
// An acquire, a release and an exact read each take the leader's processor for a
// request. A stale read takes the processor of the nearest replica. The leader
// answers exact reads from memory while a majority has promised to elect nobody
// else. A leader sends entries while it writes them itself, as etcd does; followers
// answer when their entries are durable.
package multipaxsys
