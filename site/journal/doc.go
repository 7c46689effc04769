// Package journal makes commits durable with one append and one sync each, and carries
// them over to an ordered base in the background. It does not interpret commits: a
// commit is a list of operations on keys of buckets. It refuses to lose an acknowledged
// commit: damage is refused, not skipped.
//
// # Files
//
//	Append ──> journal-000000000000002a   frames of commits 42, 43, ...: the current segment
//	           journal-0000000000000007   frames 7 to 41: sealed, being carried over
//	               │ overlay: of each key the last operation, and where its value stands
//	               ▼
//	           Base                       all through commit 6; then through 41
//
// A checkpoint seals the current segment by beginning the next, and reads the sealed
// segments into an overlay. It writes the overlay to the base in several small
// transactions. The last transaction also stores the number through which the base is
// complete. Then the checkpoint takes the sealed files out of use. Operations hold
// absolute values, so a checkpoint that was cut off anywhere is done again from the
// beginning. Open carries over all it finds in the same way.
//
// A checkpoint makes its overlay by reading the segment again, which is still in the
// system's cache. So a commit costs no more than its frame, and an overlay holds no
// values, only their places.
//
// # Segments and frames
//
// A segment is named by the number of its first commit, in 16 hex digits. Its first
// sector is a header that names the owner. The header is durable before the file gets
// its name, so a segment without a right header is damaged or another's. Frames follow,
// at multiples of 8 bytes, all numbers little-endian:
//
//	length    4  bytes of the payload, above 0
//	sum       4  CRC-32C of all else in the frame, seeded with that of the header
//	number    8  of the commit: that of the frame before and 1
//	durable   8  the highest number that was known durable when this was written
//	payload      operations, see Batch
//
// Files are extended by zeros ahead of the frames and used again for later segments,
// since a sync is faster after overwriting than after growing. Remains of an earlier
// use never count, as no two uses have the same seed.
//
// The header's sector also has a mark, with a sum of its own. The mark tells the least
// size of the file and, once there is a following segment, that segment's first number.
// Both are written after the fact is durable, and before any commit counts on it. So a
// file shorter than its mark says was cut, and a following segment that is not there
// was lost. Marks came later than version 1; a file without a mark tells neither.
//
// # The end of the log
//
// The log ends at the first frame that is not valid. A crash cut the log off there,
// unless a later frame says in durable that the missing commits had been acknowledged:
// then Open refuses with ErrDamaged. Commits under way at a crash are there whole or
// not at all, and in order. Damage to the last commit alone leaves no proof; such a
// commit counts as cut off. Nothing is ever written behind such an end: Open begins a
// new segment.
//
// # A sync of the base that failed
//
// After a failed sync, processes read data that the disk does not have, until the power
// is lost. So Open does not count on the number that the base tells. It carries over
// again all that the log still has. It takes segments out of use only after a call of
// Apply that stored the last number has succeeded since.
//
// # Why not a library
//
// The package was compared with four others. The sync watermark of pebble's record
// package counts neither full blocks nor, without a latency histogram, anything else.
// So damage in the middle may pass for a torn end there, and its signature has an
// internal type. In hashicorp/raft-wal damage in the last segment passes for a torn
// end, and the rest is dropped silently; it syncs under a lock and needs a second
// database. tidwall/wal has no checksums. etcd's wal comes with the server's module.
package journal
