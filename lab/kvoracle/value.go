package kvoracle

import (
	"encoding/binary"
	"errors"
)

// value is the value of a key. The length of its encoding depends on the id, so
// that a torn value shows.
type value struct {
	key     int
	id      uint64
	version uint64
	amount  int64
}

const (
	valueHead = 4 * 8
	valuePad  = 96
)

func (v value) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(v.key))
	dst = binary.LittleEndian.AppendUint64(dst, v.id)
	dst = binary.LittleEndian.AppendUint64(dst, v.version)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(v.amount))
	for range v.id % valuePad {
		dst = append(dst, byte(v.id))
	}
	return dst
}

var errTorn = errors.New("not a value that was written")

// parse decodes the value of key.
func parse(key int, b []byte) (value, error) {
	if len(b) < valueHead {
		return value{}, errTorn
	}
	v := value{
		key:     int(binary.LittleEndian.Uint64(b)),
		id:      binary.LittleEndian.Uint64(b[8:]),
		version: binary.LittleEndian.Uint64(b[16:]),
		amount:  int64(binary.LittleEndian.Uint64(b[24:])),
	}
	pad := b[valueHead:]
	if v.key != key || uint64(len(pad)) != v.id%valuePad {
		return value{}, errTorn
	}
	for _, c := range pad {
		if c != byte(v.id) {
			return value{}, errTorn
		}
	}
	return v, nil
}
