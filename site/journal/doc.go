// Package journal makes commits durable with one append and one sync each, and
// carries them over to an ordered base in the background. It refuses to know
// what commits mean: a commit is a list of operations on keys of buckets, and to
// lose one that was acknowledged: what is damaged is refused, not skipped.
//
// # What is where
//
//	Append ──> journal-000000000000002a   frames of commits 42, 43, ...: the current segment
//	           journal-0000000000000007   frames 7 to 41: sealed, being carried over
//	               │ overlay: of each key the last operation, and where its value stands
//	               ▼
//	           Base                       all through commit 6; then through 41
//
// A checkpoint seals the current segment by beginning the next, reads what is
// sealed into an overlay, writes that to the base in several small transactions,
// of which the last also stores the number through which the base is complete,
// and takes the sealed files out of use. Operations say absolute values, so a
// checkpoint that was cut off anywhere is done again from the beginning. Open
// does the same with all that it finds.
//
// The overlay is made when a checkpoint needs it, by reading the segment again,
// which is still in the system's cache. So a commit costs no more than its
// frame, and an overlay holds no values, only where they are.
//
// # Segments and frames
//
// A segment is named by the number of its first commit, in 16 hex digits. Its
// first sector is a header that tells whose it is; it is durable before the file
// gets its name, so a segment without a right header is damaged or another's.
// Frames follow, at multiples of 8 bytes, all numbers little-endian:
//
//	length    4  bytes of the payload, above 0
//	sum       4  CRC-32C of all else in the frame, seeded with that of the header
//	number    8  of the commit: that of the frame before and 1
//	durable   8  the highest number that was known durable when this was written
//	payload      operations, see Batch
//
// Files are extended by zeros ahead of the frames and used again for later
// segments, as overwriting is faster to sync than growing. What stays in them of
// an earlier use never counts, as no two uses have the same seed.
//
// The header's sector also has a mark, with a sum of its own: how long the file is at
// least, and the number that the segment begins with that follows, once there is
// one. Either is written after what it tells is durable, and before any commit counts
// on it: a file that is shorter was cut, and a segment that follows and is not there
// was lost. Marks came later than version 1; a file without one tells neither.
//
// # The end of the log
//
// Where a frame is not valid, the log ends. It was cut off there by a crash,
// unless a frame further on says in durable that what is missing had been
// acknowledged: then Open refuses with ErrDamaged. Commits that were under way at
// a crash are there whole or not at all, and in order. The last commit alone can
// be damaged without a proof; it is taken for one that was cut off.
// Nothing is ever written behind such an end: Open begins a new segment.
//
// # A sync of the base that failed
//
// After a sync that failed, processes read what the disk does not have, until the
// power is lost. So Open does not count on what the base tells: it carries over again
// what the log still has, and takes segments out of use only after a call of Apply
// that stored the last number has succeeded since.
//
// # Why not a library
//
// Compared were pebble's record package (its sync watermark counts neither full
// blocks nor anything without a latency histogram, so that damage in the middle
// may pass for a torn end, and an internal type is in its signature),
// hashicorp/raft-wal (damage in the last segment passes for a torn end, and what
// follows is dropped silently; it syncs under a lock and needs a second
// database), tidwall/wal (no checksums), and etcd's wal (comes with the server's
// module).
package journal
