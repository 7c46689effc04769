package core

import (
	"encoding/binary"
	"math"

	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/stored"
)

// slot is a packed record of the table of requests. A record takes one slot if its values
// fit into the widths below. Any other record is wide, and takes two slots: the second
// slot holds the values in full. No value is ever cut.
//
//	bytes    one slot                      second slot of a wide record
//	0  - 15  key                           0  -  7  generation
//	16 - 23  body                          8  - 15  tokens
//	24 - 27  generation, unsigned          16 - 23  left
//	28 - 31  tokens, unsigned
//	32 - 38  left, signed                  24 - 27  attempt
//	39 - 40  attempt                       28 - 31  tenant
//	41 - 42  tenant, and the bit of wide   32, 33   kind, state
//	43       kind and state, 4 bits each
//
// A record is most of the memory of a site, and bytes of many millions of records lie in
// no cache: alignment is worth less than fewer bytes.
type slot [slotBytes]byte

const (
	slotBytes = 44
	// leftBits is the width of left, with its sign: every number of tokens up to
	// [input.MaxTokens] fits.
	leftBits = 56
	// tenantBits is the width of tenant. The bit above is set in wide records.
	tenantBits = 15
	// nibble bounds kind and state.
	nibble = 1<<4 - 1
)

// narrow reports whether all values fit into one slot.
func (r *remembered) narrow() bool {
	return r.generation <= math.MaxUint32 &&
		r.tokens >= 0 && r.tokens <= math.MaxUint32 &&
		r.left >= -1<<(leftBits-1) && r.left < 1<<(leftBits-1) &&
		r.attempt <= math.MaxUint16 && r.tenant < 1<<tenantBits &&
		r.kind <= nibble && r.state <= nibble
}

// pack fills the slot of a narrow record.
func (s *slot) pack(r *remembered) {
	s.name(r)
	binary.LittleEndian.PutUint32(s[24:], uint32(r.generation))                        //nolint:gosec // narrow
	binary.LittleEndian.PutUint32(s[28:], uint32(r.tokens))                            //nolint:gosec // narrow
	left := uint64(r.left)<<(64-leftBits)>>(64-leftBits) | uint64(r.attempt)<<leftBits //nolint:gosec // narrow
	binary.LittleEndian.PutUint64(s[32:], left)
	fate := uint32(r.kind)<<4 | uint32(r.state)
	binary.LittleEndian.PutUint32(s[40:], uint32(r.attempt)>>8|uint32(r.tenant)<<8|fate<<24)
}

// packWide fills the two slots of a wide record.
func (s *slot) packWide(r *remembered, second *slot) {
	s.name(r)
	clear(s[24:])
	s[42] = 1 << 7
	binary.LittleEndian.PutUint64(second[0:], r.generation)
	binary.LittleEndian.PutUint64(second[8:], uint64(r.tokens)) //nolint:gosec // all bits
	binary.LittleEndian.PutUint64(second[16:], uint64(r.left))  //nolint:gosec // all bits
	binary.LittleEndian.PutUint32(second[24:], uint32(r.attempt))
	binary.LittleEndian.PutUint32(second[28:], uint32(r.tenant))
	second[32], second[33] = byte(r.kind), byte(r.state)
}

// name fills in what is at the same place in every record.
func (s *slot) name(r *remembered) {
	*(*attempt.Key)(s[:]) = r.key
	binary.LittleEndian.PutUint64(s[16:], r.body)
}

func (s *slot) key() *attempt.Key { return (*attempt.Key)(s[:]) }

// wide reports whether the record goes on in a second slot.
func (s *slot) wide() bool { return s[42]>>7 == 1 }

// width is the number of slots of the record.
func (s *slot) width() uint32 { return 1 + uint32(s[42]>>7) }

// unpack is the record of a slot, or of two if it is wide; else second is not used.
func (s *slot) unpack(second *slot) remembered {
	r := remembered{key: *s.key(), body: binary.LittleEndian.Uint64(s[16:])}
	if s.wide() {
		r.generation = binary.LittleEndian.Uint64(second[0:])
		r.tokens = Tokens(binary.LittleEndian.Uint64(second[8:])) //nolint:gosec // all bits
		r.left = Tokens(binary.LittleEndian.Uint64(second[16:]))  //nolint:gosec // all bits
		r.attempt = attempt.Number(binary.LittleEndian.Uint32(second[24:]))
		r.tenant = portion.Slot(binary.LittleEndian.Uint32(second[28:]))
		r.kind, r.state = stored.RequestKind(second[32]), stored.RequestState(second[33])
		return r
	}
	r.generation = uint64(binary.LittleEndian.Uint32(s[24:]))
	r.tokens = Tokens(binary.LittleEndian.Uint32(s[28:]))
	left, last := binary.LittleEndian.Uint64(s[32:]), binary.LittleEndian.Uint32(s[40:])
	r.left = Tokens(left<<(64-leftBits)) >> (64 - leftBits)                            //nolint:gosec // with its sign
	r.attempt = attempt.Number(left>>leftBits) | attempt.Number(last&math.MaxUint8)<<8 //nolint:gosec // 8 bits
	r.tenant = portion.Slot(last >> 8 & (1<<tenantBits - 1))
	r.kind, r.state = stored.RequestKind(last>>28), stored.RequestState(last>>24&nibble)
	return r
}
