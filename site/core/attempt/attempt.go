// Package attempt names requests, and numbers their attempts. It refuses to know what a
// request asks for.
package attempt

import (
	"crypto/sha256"

	"github.com/samya-db/samya/internal/session"
)

// Key identifies a request: its session and sequence, or else a collision-resistant hash of
// its id.
type Key [16]byte

// KeyOf is the key of a request id.
func KeyOf(id string) Key {
	if of, sequence, ok := session.Parse(id); ok {
		return OfSession(of, sequence)
	}
	sum := sha256.Sum256([]byte(id))
	return Key(sum[:16])
}

// Number numbers the attempts of a request: the caller's count in the upper 24 bits, an
// app manager's own tries within that count in the lower 8.
type Number uint32

// Max and MaxRelays bound the two parts.
const (
	Max       = 1<<20 - 1
	MaxRelays = 1<<8 - 1
)

// Of is the attempt of a caller's count, from 1, after relay tries of an app
// manager.
func Of(count, relay uint32) Number {
	return Number(min(max(count, 1), Max)<<8 | min(relay, MaxRelays))
}

// First is the number of the first attempt of a request.
const First Number = 1 << 8
