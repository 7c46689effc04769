package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

const (
	// headerBytes is a sector, so that no frame shares it.
	headerBytes = 512
	// headerSummed is the length of the summed part of the header; the sum's 4 bytes
	// follow.
	headerSummed = 32
	// markAt is the place of the mark in the header's sector, markBytes its length.
	markAt     = 40
	markBytes  = 20
	frameBytes = 24
	alignment  = 8
	version    = 1
)

var (
	magic      = [8]byte{'s', 'a', 'm', 'y', 'a', 'l', 'o', 'g'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	le         = binary.LittleEndian
)

// header names the owner and the first commit of a segment.
type header struct {
	owner uint64
	first Number
}

func (h header) encode() []byte {
	b := make([]byte, headerBytes)
	copy(b, magic[:])
	le.PutUint32(b[8:], version)
	le.PutUint64(b[16:], h.owner)
	le.PutUint64(b[24:], uint64(h.first))
	le.PutUint32(b[headerSummed:], crc32.Checksum(b[:headerSummed], castagnoli))
	return b
}

var (
	errNoHeader = errors.New("it has no header of a log")
	errVersion  = errors.New("it is of a later version")
)

func decodeHeader(b []byte) (header, error) {
	if len(b) < headerBytes || [8]byte(b) != magic || le.Uint32(b[headerSummed:]) != crc32.Checksum(b[:headerSummed], castagnoli) {
		return header{}, errNoHeader
	}
	if le.Uint32(b[8:]) != version {
		return header{}, errVersion
	}
	return header{owner: le.Uint64(b[16:]), first: Number(le.Uint64(b[24:]))}, nil
}

// seed begins the sums of a segment's frames. It is the header's own sum: a sum over
// bytes that include their own sum would be the same for all headers.
func (h header) seed() uint32 { return crc32.Checksum(h.encode()[:headerSummed], castagnoli) }

// mark stands in the header's sector and tells the necessary size and successor of a
// segment. It is written again while the segment is in use, and is not part of the
// header's sum.
type mark struct {
	// size is the least length of the file, in bytes.
	size int64
	// next is the number of the first commit of the following segment; 0 while no
	// following segment is known.
	next Number
}

func (m mark) encode(seed uint32) []byte {
	b := make([]byte, 0, markBytes)
	b = le.AppendUint64(b, uint64(m.size))
	b = le.AppendUint64(b, uint64(m.next))
	return le.AppendUint32(b, crc32.Update(seed, castagnoli, b))
}

// decodeMark reads the mark in a header's sector. Files of earlier versions have no
// mark; a damaged mark counts as none.
func decodeMark(header []byte, seed uint32) mark {
	b := header[markAt : markAt+markBytes]
	m := mark{size: int64(le.Uint64(b)), next: Number(le.Uint64(b[8:]))}
	if le.Uint32(b[16:]) != crc32.Update(seed, castagnoli, b[:16]) || m.size < headerBytes {
		return mark{}
	}
	return m
}

// frame is a valid frame.
type frame struct {
	number, durable Number
	// payload is valid until the next call of its reader.
	payload []byte
	// at is the place of the payload in the file, next the place of the next frame.
	at, next int64
}

// seal completes a frame and pads it. b has room for the head, followed by the payload.
func seal(b []byte, seed uint32, number, durable Number) []byte {
	le.PutUint32(b, uint32(len(b)-frameBytes))
	le.PutUint64(b[8:], uint64(number))
	le.PutUint64(b[16:], uint64(durable))
	le.PutUint32(b[4:], sum(b, seed))
	for len(b)%alignment != 0 {
		b = append(b, 0)
	}
	return b
}

// sum returns the sum of a frame without padding.
func sum(b []byte, seed uint32) uint32 {
	return crc32.Update(crc32.Update(seed, castagnoli, b[:4]), castagnoli, b[8:])
}

// readAhead is how many bytes a reader takes from the file at once.
const readAhead = 1 << 20

// reader reads a segment's frames.
type reader struct {
	file File
	size int64
	seed uint32
	// buf holds the file's bytes from at on.
	buf []byte
	at  int64
}

// bytes returns n bytes of the file that lie within it, valid until the next call.
func (r *reader) bytes(at, n int64) ([]byte, error) {
	if at < r.at || at+n > r.at+int64(len(r.buf)) {
		want := int(min(max(n, readAhead), r.size-at))
		if cap(r.buf) < want {
			r.buf = make([]byte, want)
		}
		r.buf, r.at = r.buf[:want], at
		if got, err := r.file.ReadAt(r.buf, at); err != nil && (!errors.Is(err, io.EOF) || got < want) {
			r.buf = r.buf[:0]
			return nil, err
		}
	}
	return r.buf[at-r.at : at-r.at+n], nil
}

// frame reads the frame at an offset; ok is false if no valid frame stands there.
func (r *reader) frame(at int64) (f frame, ok bool, err error) {
	if at < 0 || r.size-at < frameBytes {
		return frame{}, false, nil
	}
	b, err := r.bytes(at, frameBytes)
	if err != nil {
		return frame{}, false, err
	}
	length := int64(le.Uint32(b))
	if length == 0 || length > maxCommit || length > r.size-at-frameBytes {
		return frame{}, false, nil
	}
	if b, err = r.bytes(at, frameBytes+length); err != nil {
		return frame{}, false, err
	}
	f = frame{
		number: Number(le.Uint64(b[8:])), durable: Number(le.Uint64(b[16:])), payload: b[frameBytes:],
		at: at + frameBytes, next: (at + frameBytes + length + alignment - 1) / alignment * alignment,
	}
	return f, f.durable < f.number && le.Uint32(b[4:]) == sum(b, r.seed), nil
}

// search looks for a valid frame at or behind from whose number and durable satisfy
// proves.
func (r *reader) search(from int64, proves func(number, durable Number) bool) (at int64, found bool, err error) {
	for at = from; at+frameBytes <= r.size; {
		n := min(r.size-at, readAhead) / alignment * alignment
		n = max(n, frameBytes)
		window, err := r.bytes(at, n)
		if err != nil {
			return 0, false, err
		}
		i := int64(0)
		for ; i+frameBytes <= n; i += alignment {
			number, durable := Number(le.Uint64(window[i+8:])), Number(le.Uint64(window[i+16:]))
			if durable >= number || !proves(number, durable) {
				continue
			}
			_, ok, err := r.frame(at + i)
			if err != nil || ok {
				return at + i, ok, err
			}
			if window, err = r.bytes(at, n); err != nil {
				return 0, false, err
			}
		}
		at += i
	}
	return 0, false, nil
}
