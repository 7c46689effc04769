package handoff

import (
	"errors"
	"fmt"
	"math"

	"github.com/samya-db/samya/avantan"
)

// maxData bounds the bytes of an item.
const maxData = 4 << 10

// maxBytes bounds the bytes of all items of a bequest: it is stored, and sent, as a
// whole.
const maxBytes = 128 << 10

// errMessage is matched by Output.Err if a message was refused because it is malformed
// or for another site. The message had no effect.
var errMessage = errors.New("handoff: malformed message")

// Validate reports an error in the form of a message: an unknown kind, a number or
// amount out of range, a field that the kind does not have, or equal or missing sites.
// It checks nothing against a Machine's state.
func (m *Message) Validate() error {
	switch {
	case m.Kind == 0 || m.Kind > Ack:
		return m.malformed("Kind is unknown")
	case m.From == "" || m.To == "" || m.From == m.To:
		return m.malformed("From and To must be two sites")
	case (m.Kind == Bequeath) != (m.Number > 0) || m.Number > avantan.MaxNumber:
		return m.malformed("Number is out of range")
	case m.Kind == Ack && m.Taken == 0 || m.Taken > avantan.MaxNumber:
		return m.malformed("Taken is out of range")
	case (m.Kind == Bequeath) == m.Estate.empty():
		return m.malformed("Estate is missing or out of place")
	}
	if why := m.Estate.fault(); why != "" {
		return m.malformed(why)
	}
	return nil
}

func (m *Message) malformed(why string) error {
	return fmt.Errorf("%w: %v from %q to %q: %s", errMessage, m.Kind, m.From, m.To, why)
}

// empty reports whether there is nothing to move.
func (e *Estate) empty() bool {
	return e.Left == 0 && e.Owed == 0 && e.Net == 0 && len(e.Items) == 0
}

// fault says what is out of range; empty for nothing.
func (e *Estate) fault() string {
	switch {
	case e.Left < 0 || e.Owed < 0:
		return "Left and Owed must be at least 0"
	case e.Left > 0 && e.Owed > 0:
		return "Left and Owed exclude each other"
	case e.Net == math.MinInt64:
		return "Net is out of range"
	case len(e.Items) > MaxItems:
		return fmt.Sprintf("%d Items, must be at most %d", len(e.Items), MaxItems)
	}
	room, bytes := math.MaxInt64-max(e.Net, -e.Net), 0
	for i := range e.Items {
		item := &e.Items[i]
		switch {
		case len(item.Data) == 0 || len(item.Data) > maxData:
			return fmt.Sprintf("an item of %d bytes, must have 1 to %d", len(item.Data), maxData)
		case item.Tokens < 0:
			return "an item's Tokens must be at least 0"
		case item.Tokens > room:
			return "the sum of Net and Items does not fit 63 bits"
		}
		room -= item.Tokens
		bytes += len(item.Data)
	}
	if bytes > maxBytes {
		return fmt.Sprintf("Items of %d bytes, must have at most %d", bytes, maxBytes)
	}
	return ""
}

// held returns the tokens of all items.
func (e *Estate) held() avantan.Tokens {
	var sum avantan.Tokens
	for i := range e.Items {
		sum += e.Items[i].Tokens
	}
	return sum
}

var kindNames = [...]string{Bequeath: "Bequeath", Ack: "Ack"}

// String returns the kind's name.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}
