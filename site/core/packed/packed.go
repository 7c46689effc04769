// Package packed encodes the records of requests for the log, so that each shard of a core
// encodes its own beside others. It refuses to read them, and to know what else a block has:
// see package store, and RequestBlock in store.proto.
package packed

import (
	"encoding/binary"

	"github.com/samya-db/samya/site/core/stored"
)

// Append appends the stored form of a record to dst. A tenant is no part of it.
func Append(dst []byte, r *stored.Request) []byte {
	dst = append(dst, r.Key[:]...)
	dst = binary.BigEndian.AppendUint64(dst, r.Body)
	dst = append(dst, byte(r.Kind)<<4|byte(r.State))
	dst = binary.AppendUvarint(dst, uint64(r.Attempt))
	dst = binary.AppendUvarint(dst, r.Generation)
	dst = binary.AppendUvarint(dst, uint64(r.Tokens))
	dst = binary.AppendVarint(dst, int64(r.Left))
	if r.Kind == stored.AllRequest {
		dst = appendParts(dst, r.Parts)
	}
	return dst
}

func appendParts(dst []byte, parts []stored.Part) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(parts)))
	for i := range parts {
		p := &parts[i]
		dst = binary.AppendUvarint(dst, uint64(len(p.Entity)))
		dst = append(dst, p.Entity...)
		dst = binary.AppendUvarint(dst, p.Generation)
		dst = binary.AppendUvarint(dst, uint64(p.Tokens))
	}
	return dst
}

// Block returns the stored form of all records of a block, in their order. Records that are
// encoded already are taken as they are. The result is the block's own if the block is whole,
// else in the memory of room.
func Block(room []byte, b *stored.Block) []byte {
	if b.Whole() {
		return b.Packed
	}
	room = room[:0]
	next, from := 0, 0
	for _, run := range b.Runs {
		room = all(room, b.Records[next:run.First])
		room = append(room, b.Packed[from:from+run.Bytes]...)
		next, from = run.First+run.Count, from+run.Bytes
	}
	return all(room, b.Records[next:])
}

func all(dst []byte, records []stored.Request) []byte {
	for i := range records {
		dst = Append(dst, &records[i])
	}
	return dst
}
