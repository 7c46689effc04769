package testfuzz

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
)

// mostEdits bounds the edits of each text in a mutation, mostInserted the bytes that an
// edit adds.
const (
	mostEdits    = 4
	mostInserted = 16
)

// telling are bytes at which parsers decide.
const telling = "\x00\x01\x7f\x80\xff \t\n\"'\\{}[]()<>,:;=/.-+%#&?*09aZ_"

// source draws mutations.
type source struct{ *rand.Rand }

// mutation returns a copy of a seed with some value changed, maybe several.
func (s *source) mutation(seeds [][]any) []any {
	seed := slices.Clone(seeds[s.IntN(len(seeds))])
	other := seeds[s.IntN(len(seeds))]
	must := s.IntN(len(seed))
	for i, v := range seed {
		if i != must && s.IntN(2) == 0 {
			continue
		}
		switch v := v.(type) {
		case []byte:
			seed[i] = s.text(v, other[i].([]byte))
		case string:
			seed[i] = string(s.text([]byte(v), []byte(other[i].(string))))
		default:
			seed[i] = s.number(reflect.ValueOf(v)).Interface()
		}
	}
	return seed
}

// text edits a text, now and then with a piece of another.
func (s *source) text(text, other []byte) []byte {
	b := slices.Clone(text)
	for range 1 + s.IntN(mostEdits) {
		b = s.edit(b, other)
	}
	return b
}

func (s *source) edit(b, other []byte) []byte {
	from, to := s.span(len(b))
	switch s.IntN(9) {
	case 0: // A bit is another.
		if len(b) > 0 {
			b[s.IntN(len(b))] ^= 1 << s.IntN(8)
		}
	case 1: // A byte is another.
		if len(b) > 0 {
			b[s.IntN(len(b))] = s.byte()
		}
	case 2: // Bytes are missing.
		b = slices.Delete(b, from, to)
	case 3: // The end is missing.
		b = b[:from]
	case 4: // Bytes come twice, or elsewhere.
		b = slices.Insert(b, s.IntN(len(b)+1), slices.Clone(b[from:to])...)
	case 5: // There are more bytes.
		more := make([]byte, 1+s.IntN(mostInserted))
		for i := range more {
			more[i] = s.byte()
		}
		b = slices.Insert(b, from, more...)
	case 6: // A number is a special one.
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(s.special()))
		if s.IntN(2) == 0 {
			slices.Reverse(n[:])
		}
		copy(b[from:], n[:1<<s.IntN(4)])
	case 7: // A length is a special one: a varint.
		b = slices.Replace(b, from, min(from+1, len(b)), binary.AppendUvarint(nil, uint64(s.special()))...)
	case 8: // A piece is that of another text.
		f, t := s.span(len(other))
		b = slices.Replace(b, from, to, other[f:t]...)
	}
	return b
}

// span draws a part of n bytes, mostly a short part.
func (s *source) span(n int) (from, to int) {
	if n == 0 {
		return 0, 0
	}
	from = s.IntN(n)
	most := n - from
	if s.IntN(4) > 0 {
		most = min(most, mostInserted)
	}
	return from, from + s.IntN(most+1)
}

func (s *source) byte() byte {
	if s.IntN(2) == 0 {
		return telling[s.IntN(len(telling))]
	}
	return byte(s.IntN(256))
}

// special draws a number near a bound of some width, or any number.
func (s *source) special() int64 {
	switch s.IntN(4) {
	case 0:
		return int64(s.IntN(5)) - 2
	case 1:
		return int64(s.Uint64())
	default:
		return int64(uint64(1)<<s.IntN(65)) - int64(s.IntN(3)) // 1<<64 is 0
	}
}

// number returns another value of the type of v, which is a number or a bool.
func (s *source) number(v reflect.Value) reflect.Value {
	n := reflect.New(v.Type()).Elem()
	switch {
	case v.Kind() == reflect.Bool:
		n.SetBool(!v.Bool())
	case v.CanInt():
		n.SetInt(s.special())
		if s.IntN(2) == 0 {
			n.SetInt(v.Int() + int64(s.IntN(21)) - 10)
		}
	case v.CanUint():
		n.SetUint(uint64(s.special()))
	case v.CanFloat():
		all := []float64{0, math.Copysign(0, -1), 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, v.Float() * s.NormFloat64(), s.Float64(), float64(s.special())}
		n.SetFloat(all[s.IntN(len(all))])
	default:
		panic(fmt.Sprintf("testfuzz: seeds of type %s", v.Type()))
	}
	return n
}
