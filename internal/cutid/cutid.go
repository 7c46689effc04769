// Package cutid writes a cut of an entity as a word that an operator can copy, and reads
// it back: with the word and a count, any app manager and any site can reconcile the
// entity. A check that covers the entity's name finds typing errors. The package refuses
// to know whether a cut still holds, and keeps nobody from making a cut up: who may
// reconcile is trusted.
package cutid

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"

	"github.com/samya-db/samya/internal/name"
)

// Cut is what the books of an entity's sites counted as in use.
type Cut struct {
	// Entity is the entity's name, Generation and Version are the entity's at the cut:
	// both at least 1.
	Entity              string
	Generation, Version uint64
	// Counted is the number of tokens on the books of the sites, WrittenOff the number of
	// tokens written off: each in -(2^53-1) to 2^53-1.
	Counted, WrittenOff int64
	// Returning bounds the part of Counted that comes back without another request; 0 to
	// 2^53-1.
	Returning int64
	// Leased is the number of tokens that leases held, at least 0.
	Leased int64
}

// InUse is the number of tokens that the books hold to be in use.
func (c *Cut) InUse() int64 { return c.Counted + c.WrittenOff }

const (
	prefix = "cut1-"
	// checked is the number of bytes of the check.
	checked = 5
)

var text = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// String writes the cut as a word of lower-case letters, digits and a hyphen.
func (c *Cut) String() string {
	b := binary.AppendUvarint(nil, c.Generation)
	b = binary.AppendUvarint(b, c.Version)
	for _, n := range []int64{c.Counted, c.Returning, c.WrittenOff, c.Leased} {
		b = binary.AppendVarint(b, n)
	}
	return prefix + text.EncodeToString(append(b, check(c.Entity, b)...))
}

func check(entity string, numbers []byte) []byte {
	sum := sha256.Sum256(append([]byte(entity+"\x00"), numbers...))
	return sum[:checked]
}

// Parse reads a cut of an entity. It refuses a word that String never writes for the
// entity, with a *[name.Error] of the given field.
func Parse(field, entity, word string) (Cut, error) {
	c := Cut{Entity: entity}
	if word == "" {
		return Cut{}, &name.Error{Field: field, Problem: "missing"}
	}
	raw, err := text.DecodeString(strings.TrimPrefix(word, prefix))
	if err != nil || len(raw) <= checked {
		return Cut{}, mistyped(field)
	}
	b := raw[:len(raw)-checked]
	for _, n := range []*uint64{&c.Generation, &c.Version} {
		b = take(b, n, binary.Uvarint)
	}
	for _, n := range []*int64{&c.Counted, &c.Returning, &c.WrittenOff, &c.Leased} {
		b = take(b, n, binary.Varint)
	}
	// The only way to write these numbers, with their check, is the word.
	if c.String() != word || c.Generation == 0 || c.Version == 0 || c.Leased < 0 || c.Returning < 0 || beyond(c.Counted) || beyond(c.Returning) || beyond(c.WrittenOff) || beyond(c.Leased) {
		return Cut{}, mistyped(field)
	}
	return c, nil
}

// take reads a number and returns the rest. After a broken number the word is not the
// one that String writes.
func take[N uint64 | int64](b []byte, n *N, read func([]byte) (N, int)) []byte {
	value, size := read(b)
	*n = value
	return b[max(0, size):]
}

func beyond(n int64) bool { return n > name.MaxTokens || n < -name.MaxTokens }

func mistyped(field string) error {
	return &name.Error{Field: field, Problem: "is none of this entity: it may be mistyped"}
}
