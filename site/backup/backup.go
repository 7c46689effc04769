// Package backup is the file format of a site's backup: all values that the site had
// stored at a single commit, compressed and checksummed. It knows keys and values, and
// not their meaning. It refuses a file if a single bit was changed, removed or added, and
// files of formats that it does not know.
//
// # Format
//
// All numbers are little-endian.
//
//	magic    8  "samyabkp"
//	version  4  1
//	length   4  of the header in bytes, at most 64 KiB
//	sum      4  CRC-32C of the header, which seeds the sums of all blocks
//	header      JSON, see Header
//	blocks      see below
//
// A block has a head of 25 bytes and its content:
//
//	kind     1  1: records, 2: the end
//	number   8  0 for the first block, then counted up
//	raw      4  length of the content before compression, at most 64 MiB
//	stored   4  length of the content as it stands in the file
//	count    4  records in the block; 0 in the end
//	sum      4  CRC-32C of all else in the head and of the content
//
// The content of a block of records is a frame of zstd. Its records stand in the order
// of buckets and keys, in each block and from block to block. A record is
//
//	bucket   1
//	key         its length as a varint of 7 bits a byte, and the key
//	value       the same
//
// The content of the end is the number of records in 8 bytes and the SHA-256 of all
// bytes of the file before the block. Nothing follows it.
package backup

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// Errors of a reader. They wrap more detail.
var (
	// ErrDamaged: the file is not as it was written, or not all of it is there.
	ErrDamaged = errors.New("the backup is damaged")
	// errUnknown: the file is no backup, or a backup of a later version.
	errUnknown = errors.New("the file is no backup that this version can read")
	// errTooLarge: a record or a header is beyond the format's bounds.
	errTooLarge = errors.New("it is too large for a backup")
)

const (
	version    = 1
	fixedBytes = 20
	headBytes  = 25
	// maxHeader and maxBlock bound the memory of a reader, in bytes.
	maxHeader = 64 << 10
	maxBlock  = 64 << 20
	// blockBytes is the length at which a writer ends a block.
	blockBytes = 64 << 10
	endBytes   = 8 + 32

	kindRecords = 1
	kindEnd     = 2
)

var (
	magic      = [8]byte{'s', 'a', 'm', 'y', 'a', 'b', 'k', 'p'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	le         = binary.LittleEndian
)

// Header names the owner of the data in a backup.
type Header struct {
	// Cluster and Site are the names of the owner.
	Cluster string `json:"cluster"`
	Site    string `json:"site"`
	// Members are the members of the cluster as the site knows them, sorted.
	Members []string `json:"members"`
	// Incarnation is the name of the site's data.
	Incarnation uint64 `json:"incarnation"`
	// Commit is the number of the last transaction in the backup, as other members
	// remember it. 0: the site had not changed anything.
	Commit uint64 `json:"commit"`
	// Time is when the backup was begun, by the site's clock.
	Time time.Time `json:"time"`
	// Build is the version of samya that wrote the backup.
	Build string `json:"build"`
}

func (h *Header) encode() ([]byte, error) {
	b, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(b) > maxHeader {
		return nil, fmt.Errorf("%w: a header of %d bytes, at most %d are possible", errTooLarge, len(b), maxHeader)
	}
	return b, nil
}

// Record is a stored value.
type Record struct {
	// Bucket is the set of keys to which Key belongs.
	Bucket     uint8
	Key, Value []byte
}

// head is the head of a block.
type head struct {
	kind        uint8
	number      uint64
	raw, stored uint32
	count       uint32
}

// encode appends the head of a block, with its sum over the content.
func (h *head) encode(dst []byte, seed uint32, content []byte) []byte {
	from := len(dst)
	dst = append(dst, h.kind)
	dst = le.AppendUint64(dst, h.number)
	dst = le.AppendUint32(dst, h.raw)
	dst = le.AppendUint32(dst, h.stored)
	dst = le.AppendUint32(dst, h.count)
	return le.AppendUint32(dst, sum(dst[from:], seed, content))
}

// sum is the sum of a block: of its head without the sum, and of its content.
func sum(head []byte, seed uint32, content []byte) uint32 {
	return crc32.Update(crc32.Update(seed, castagnoli, head), castagnoli, content)
}

func decodeHead(b []byte) (h head, sum uint32) {
	return head{
		kind: b[0], number: le.Uint64(b[1:]), raw: le.Uint32(b[9:]), stored: le.Uint32(b[13:]), count: le.Uint32(b[17:]),
	}, le.Uint32(b[21:])
}
