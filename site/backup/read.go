package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Reader reads a backup. It hands out a record once the sum of its block is right. The
// backup as a whole is right once Next has returned io.EOF, and not before.
type Reader struct {
	from   io.Reader
	whole  hash.Hash
	zstd   *zstd.Decoder
	header Header
	seed   uint32
	// raw are the records of the present block that were not handed out, left is their
	// number.
	raw     []byte
	left    uint32
	number  uint64
	records uint64
	// content and block are the memory of a block.
	content bytes.Buffer
	block   []byte
	// last is the bucket and the key of the last record.
	last []byte
	// offset is the place in the file, in bytes.
	offset int64
	ended  error
}

// NewReader reads the header of a backup. Its errors, like the errors of Next, are
// ErrDamaged and errUnknown, or of the reading itself. Close must follow.
func NewReader(from io.Reader) (*Reader, error) {
	r := &Reader{from: from, whole: sha256.New()}
	fixed := make([]byte, fixedBytes)
	switch err := r.fill(fixed); {
	case errors.Is(err, ErrDamaged) || err == nil && [8]byte(fixed) != magic:
		return nil, fmt.Errorf("%w: it does not begin as a backup does", errUnknown)
	case err != nil:
		return nil, err
	}
	if v := le.Uint32(fixed[8:]); v != version {
		return nil, fmt.Errorf("%w: it has version %d, known is %d", errUnknown, v, version)
	}
	length := le.Uint32(fixed[12:])
	if length > maxHeader {
		return nil, r.damaged("a header of %d bytes, at most %d are possible", length, maxHeader)
	}
	b := make([]byte, length)
	if err := r.fill(b); err != nil {
		return nil, err
	}
	r.seed = crc32.Checksum(b, castagnoli)
	if r.seed != le.Uint32(fixed[16:]) {
		return nil, r.damaged("the sum of the header is wrong")
	}
	if err := json.Unmarshal(b, &r.header); err != nil {
		return nil, r.damaged("the header: %w", err)
	}
	var err error
	r.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
	if err != nil {
		return nil, fmt.Errorf("reading the backup: %w", err)
	}
	return r, nil
}

// Close lets go of the reader's memory.
func (r *Reader) Close() { r.zstd.Close() }

// Header names the owner of the data.
func (r *Reader) Header() Header { return r.header }

// Size is the number of bytes read so far; after io.EOF the length of the backup.
func (r *Reader) Size() int64 { return r.offset }

// Next returns the next record, valid until the next call. It returns io.EOF after the
// last, once all sums of the backup are right and nothing follows.
func (r *Reader) Next() (Record, error) {
	for r.ended == nil && r.left == 0 {
		r.ended = r.next()
	}
	if r.ended != nil {
		return Record{}, r.ended
	}
	rec, err := r.record()
	if err != nil {
		r.ended = err
		return Record{}, err
	}
	return rec, nil
}

// next reads a block. It returns io.EOF for the end.
func (r *Reader) next() error {
	before := r.whole.Sum(nil)
	raw := make([]byte, headBytes)
	if err := r.fill(raw); err != nil {
		return err
	}
	h, want := decodeHead(raw)
	if h.stored > maxBlock || h.raw > maxBlock {
		return r.damaged("a block of %d bytes, at most %d are possible", max(h.stored, h.raw), maxBlock)
	}
	// The memory grows with the bytes read, and not with the number in the head.
	r.content.Reset()
	n, err := io.CopyN(&r.content, r.from, int64(h.stored))
	content := r.content.Bytes()
	r.whole.Write(content)
	r.offset += n
	switch {
	case errors.Is(err, io.EOF):
		return r.damaged("it ends within a block")
	case err != nil:
		return fmt.Errorf("reading the backup: %w", err)
	case sum(raw[:headBytes-4], r.seed, content) != want:
		return r.damaged("the sum of block %d is wrong", r.number)
	case h.number != r.number:
		return r.damaged("block %d stands where block %d belongs", h.number, r.number)
	}
	r.number++
	switch h.kind {
	case kindRecords:
		return r.unpack(&h, content)
	case kindEnd:
		return r.end(&h, content, before)
	default:
		return r.damaged("a block of unknown kind %d", h.kind)
	}
}

// unpack takes up a block of records.
func (r *Reader) unpack(h *head, content []byte) error {
	if h.count == 0 {
		return r.damaged("block %d has no records", h.number)
	}
	var err error
	if r.block, err = r.zstd.DecodeAll(content, r.block[:0]); err != nil {
		return r.damaged("block %d: %w", h.number, err)
	}
	if len(r.block) != int(h.raw) {
		return r.damaged("block %d has %d bytes, and its head says %d", h.number, len(r.block), h.raw)
	}
	r.raw, r.left = r.block, h.count
	return nil
}

// record takes the next record of the present block.
func (r *Reader) record() (Record, error) {
	if len(r.raw) == 0 {
		return Record{}, r.damaged("a block has fewer records than its head says")
	}
	rec := Record{Bucket: r.raw[0]}
	rest := r.raw[1:]
	for _, field := range []*[]byte{&rec.Key, &rec.Value} {
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) {
			return Record{}, r.damaged("a record reaches beyond its block")
		}
		*field, rest = rest[n:n+int(length):n+int(length)], rest[n+int(length):]
	}
	r.raw = rest
	r.left--
	r.records++
	if r.left == 0 && len(rest) > 0 {
		return Record{}, r.damaged("a block has more records than its head says")
	}
	if !follows(&rec, r.last) {
		return Record{}, r.damaged("%w", errOrder)
	}
	r.last = append(append(r.last[:0], rec.Bucket), rec.Key...)
	return rec, nil
}

// end checks the end of the backup; before is the checksum of all bytes before it.
func (r *Reader) end(h *head, content, before []byte) error {
	switch {
	case len(content) != endBytes || h.raw != endBytes || h.count != 0:
		return r.damaged("the end has %d bytes, not %d", len(content), endBytes)
	case le.Uint64(content) != r.records:
		return r.damaged("it has %d records, and its end says %d", r.records, le.Uint64(content))
	case !bytes.Equal(content[8:], before):
		return r.damaged("the checksum of the whole is wrong")
	}
	if n, err := io.ReadFull(r.from, make([]byte, 1)); n > 0 {
		return r.damaged("something follows the end")
	} else if !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the backup: %w", err)
	}
	return io.EOF
}

// fill reads len(b) bytes.
func (r *Reader) fill(b []byte) error {
	n, err := io.ReadFull(r.from, b)
	r.offset += int64(n)
	r.whole.Write(b[:n])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.damaged("it ends too early")
	}
	if err != nil {
		return fmt.Errorf("reading the backup: %w", err)
	}
	return nil
}

// damaged returns the error for a file that is not as it was written.
func (r *Reader) damaged(format string, args ...any) error {
	return fmt.Errorf("%w: before byte %d: %w", ErrDamaged, r.offset, fmt.Errorf(format, args...))
}
