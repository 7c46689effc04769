package journal

import (
	"errors"
	"fmt"
	"math"
)

// opBytes is the length of an operation's head: kind, bucket, the key's length in 2
// bytes and the value's length in 4. Key and value follow.
const opBytes = 8

// Bounds of logged commits.
const (
	// maxKey is the longest key, in bytes.
	maxKey = math.MaxUint16
	// maxCommit is the longest commit, in bytes.
	maxCommit = 1 << 30
)

// errTooLarge: a commit or a key is too long for the log.
var errTooLarge = errors.New("a commit is too large for the log")

// Batch gathers the operations of one commit. The zero Batch is empty.
type Batch struct {
	// buf begins with room for the frame's head.
	buf []byte
	err error
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	if cap(b.buf) > maxKept {
		b.buf = nil
	}
	b.buf, b.err = append(b.buf[:0], make([]byte, frameBytes)...), nil
}

// maxKept bounds the memory kept between commits.
const maxKept = 4 << 20

// Empty reports whether the batch has no operations.
func (b *Batch) Empty() bool { return len(b.buf) <= frameBytes }

// Len returns the length of the batch's payload in bytes.
func (b *Batch) Len() int { return max(0, len(b.buf)-frameBytes) }

// Err returns why the batch cannot be logged: a key is too long.
func (b *Batch) Err() error { return b.err }

// Payload returns the operations in the form of the log. It shares the batch's memory.
func (b *Batch) Payload() []byte { return b.buf[min(frameBytes, len(b.buf)):] }

// Set gives the batch the operations of a Payload. It fails if the payload is empty or cut off.
func (b *Batch) Set(payload []byte) error {
	if len(payload) == 0 {
		return errPayload
	}
	for rest := payload; len(rest) > 0; {
		var err error
		if _, rest, err = next(rest); err != nil {
			return err
		}
	}
	b.Reset()
	b.buf = append(b.buf, payload...)
	return nil
}

// Put adds a Put.
func (b *Batch) Put(bucket Bucket, key, value []byte) {
	b.head(Put, bucket, key, len(value))
	if b.err == nil {
		b.buf = append(b.buf, value...)
	}
}

// PutWith adds a Put of the value that encode appends to its argument.
func (b *Batch) PutWith(bucket Bucket, key []byte, encode func([]byte) []byte) {
	b.head(Put, bucket, key, 0)
	if b.err != nil {
		return
	}
	from := len(b.buf)
	b.buf = encode(b.buf)
	// valid refuses a batch with a longer value.
	if n := len(b.buf) - from; n <= maxCommit {
		le.PutUint32(b.buf[from-len(key)-4:], uint32(n))
	}
}

// Delete adds a Delete.
func (b *Batch) Delete(bucket Bucket, key []byte) { b.head(Delete, bucket, key, 0) }

// DeleteBelow adds a DeleteBelow.
func (b *Batch) DeleteBelow(bucket Bucket, key []byte) { b.head(DeleteBelow, bucket, key, 0) }

func (b *Batch) head(kind Kind, bucket Bucket, key []byte, value int) {
	if len(b.buf) < frameBytes {
		b.Reset()
	}
	if len(key) > maxKey {
		b.err = fmt.Errorf("%w: a key has %d bytes, at most %d are possible", errTooLarge, len(key), maxKey)
		return
	}
	b.buf = append(b.buf, byte(kind), byte(bucket))
	b.buf = le.AppendUint16(b.buf, uint16(len(key)))
	b.buf = le.AppendUint32(b.buf, uint32(value))
	b.buf = append(b.buf, key...)
}

// valid returns an error if the log cannot take the batch: a key is too long, or the
// batch has more than most bytes.
func (b *Batch) valid(most int) error {
	if b.err == nil && b.Len() > most {
		return fmt.Errorf("%w: it has %d bytes, at most %d are possible", errTooLarge, b.Len(), most)
	}
	return b.err
}

var errPayload = errors.New("its operations are cut off or unknown")

// next decodes the first operation of a payload and returns it with the rest of the
// payload. Both share the payload's memory.
func next(payload []byte) (op Op, rest []byte, err error) {
	if len(payload) < opBytes {
		return Op{}, nil, errPayload
	}
	key := int(le.Uint16(payload[2:]))
	value := uint64(le.Uint32(payload[4:]))
	op = Op{Kind: Kind(payload[0]), Bucket: Bucket(payload[1])}
	rest = payload[opBytes:]
	if op.Kind < Put || op.Kind > DeleteBelow || op.Kind != Put && value != 0 || uint64(key)+value > uint64(len(rest)) {
		return Op{}, nil, errPayload
	}
	op.Key, rest = rest[:key:key], rest[key:]
	op.Value, rest = rest[:value:value], rest[value:]
	return op, rest, nil
}
