// Package replica keeps the log of a site in a replicated store of keys, so that another
// node of the site can go on. The store is etcd (package etcd), here a KV.
// The package interprets no commit, and refuses to guess: a commit without an answer
// stays open until the store tells.
//
// # Nodes and terms
//
// The nodes of a site are processes on several machines of a region. Each has a base of
// its own and a local log (package journal). At most one of them is active: the node that
// last put its name under the key leader. The revision of that put is the node's term.
//
//	origin              the owner of the log, and the commit before its first; written once
//	leader              the active node; the revision is the term
//	beat                a sign of life of the active node
//	log/<number>        a commit; the commit that the log begins after is empty
//	part/<number>/...   a piece of a long commit
//	nodes/<name>        through which commit a node has the log on its own disk
//	back                changed whenever a node tells for the first time, has less than it told, or begins to copy
//
// # Rules
//
// Fencing is in each transaction, not in time: a commit is put only if leader still has
// the node's term, the commit before is there, and none of its own number is. So an old
// active node that wakes up cannot commit, whatever its clock says, and no number is used
// twice. A failed guard stops the node.
//
// An answer that is lost is an unknown commit. The node repeats the same transaction until
// the store answers: the guard on the number makes the repetition harmless, and a failure
// of that guard tells that the commit is there. Nothing else may have the number meanwhile.
//
// Nothing leaves a node on the strength of an old term, even without a commit: Confirm
// reads the leader after the question came (ReadIndex of Raft, Ongaro's thesis, 6.4).
//
// The log is trimmed to the commits that at least two nodes have on their own disks, or all
// nodes if there are fewer, and never to nothing: the last commit is the guard of the next.
// What a node tells may arrive late, after its disk was replaced by an empty one. So each
// node puts its word in place of its own last word alone, and the guards of trimming
// include that no node went back meanwhile.
//
// A store may be put back to an older copy, against all advice. Nodes with later commits
// refuse it, also when another node has gone on there: each commit names the run of the
// node that made it and the run of the commit before, and each node keeps the runs of its
// commits (Spans).
//
// # The local log
//
// Each node, active or not, appends commits to its local log once they are known to be in
// the store, and carries the local log to its base. Nobody waits for the disk. After a
// crash the node reads the missing commits from the store.
package replica
