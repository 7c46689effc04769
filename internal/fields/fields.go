// Package fields walks through an encoded protobuf message, for decoders that reflect
// nothing and choose their memory. It knows no message, and refuses encodings that
// protobuf does not have.
package fields

import "google.golang.org/protobuf/encoding/protowire"

// Field is a field of a message, with its bytes or its number.
type Field struct {
	// Num is the field's number in the proto file, and Kind its type on the wire.
	Num  protowire.Number
	Kind protowire.Type
	// Bytes is the content of a field of kind BytesType: a part of the message. Number is
	// the value of a field of kind VarintType.
	Bytes  []byte
	Number uint64
}

// Each calls f for every field of a message, in order, and returns the first error of f or
// that of a malformed message. A field of another kind than bytes and varint has no value.
func Each(message []byte, f func(Field) error) error {
	for b := message; len(b) > 0; {
		var at Field
		var n int
		if at.Num, at.Kind, n = protowire.ConsumeTag(b); n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		switch at.Kind {
		case protowire.BytesType:
			at.Bytes, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			at.Number, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(at.Num, at.Kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := f(at); err != nil {
			return err
		}
	}
	return nil
}
