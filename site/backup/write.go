package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Writer writes a backup. It writes whole blocks of about 64 KiB before compression,
// each with a single call.
type Writer struct {
	to    io.Writer
	whole hash.Hash
	zstd  *zstd.Encoder
	seed  uint32
	// raw are the records of the present block, count is their number, number is that
	// of the block.
	raw     []byte
	count   uint32
	number  uint64
	records uint64
	out     []byte
	content []byte
	// last is the bucket and the key of the last record.
	last   []byte
	failed error
}

// NewWriter writes the header. The caller must call Close, or abandon the file.
func NewWriter(to io.Writer, h *Header) (*Writer, error) {
	// Every block has a sum of its own.
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("beginning a backup: %w", err)
	}
	b, err := h.encode()
	if err != nil {
		return nil, fmt.Errorf("beginning a backup: %w", err)
	}
	w := &Writer{to: to, whole: sha256.New(), zstd: encoder, seed: crc32.Checksum(b, castagnoli)}
	out := append([]byte(nil), magic[:]...)
	out = le.AppendUint32(out, version)
	out = le.AppendUint32(out, uint32(len(b)))
	out = le.AppendUint32(out, w.seed)
	if err := w.write(append(out, b...)); err != nil {
		return nil, err
	}
	return w, nil
}

var errOrder = errors.New("the records are not in the order of buckets and keys")

// follows reports whether a record may stand behind the record with a bucket and key; an
// empty last stands for no record.
func follows(r *Record, last []byte) bool {
	if len(last) == 0 || r.Bucket > last[0] {
		return true
	}
	return r.Bucket == last[0] && bytes.Compare(r.Key, last[1:]) > 0
}

// Put adds a record behind all earlier records, in the order of buckets and keys. The
// writer retains no part of it.
func (w *Writer) Put(r Record) error {
	if w.failed != nil {
		return w.failed
	}
	if !follows(&r, w.last) {
		return w.fail(errOrder)
	}
	w.last = append(append(w.last[:0], r.Bucket), r.Key...)
	place := len(w.raw)
	w.raw = append(w.raw, r.Bucket)
	w.raw = binary.AppendUvarint(w.raw, uint64(len(r.Key)))
	w.raw = append(w.raw, r.Key...)
	w.raw = binary.AppendUvarint(w.raw, uint64(len(r.Value)))
	w.raw = append(w.raw, r.Value...)
	if size := len(w.raw) - place; size > maxBlock-blockBytes {
		return w.fail(fmt.Errorf("%w: a record of %d bytes, at most %d are possible", errTooLarge, size, maxBlock-blockBytes))
	}
	w.count++
	w.records++
	if len(w.raw) < blockBytes {
		return nil
	}
	return w.flush()
}

// Close writes the end. The backup is complete once Close has returned nil.
func (w *Writer) Close() error {
	if w.failed != nil {
		return w.failed
	}
	if err := w.flush(); err != nil {
		return err
	}
	end := w.whole.Sum(le.AppendUint64(nil, w.records))
	h := head{kind: kindEnd, number: w.number, raw: endBytes, stored: endBytes}
	err := w.write(append(h.encode(nil, w.seed, end), end...))
	if err == nil {
		w.failed = errors.New("the backup is complete")
	}
	return err
}

// flush writes the present block, if it has any records.
func (w *Writer) flush() error {
	if w.count == 0 {
		return nil
	}
	w.content = w.zstd.EncodeAll(w.raw, w.content[:0])
	h := head{kind: kindRecords, number: w.number, raw: uint32(len(w.raw)), stored: uint32(len(w.content)), count: w.count}
	w.out = append(h.encode(w.out[:0], w.seed, w.content), w.content...)
	w.number++
	w.raw, w.count = w.raw[:0], 0
	return w.write(w.out)
}

func (w *Writer) write(b []byte) error {
	w.whole.Write(b)
	if _, err := w.to.Write(b); err != nil {
		return w.fail(err)
	}
	return nil
}

func (w *Writer) fail(err error) error {
	w.failed = fmt.Errorf("writing the backup: %w", err)
	return w.failed
}
