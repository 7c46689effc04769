package transfer

import (
	"errors"
	"fmt"

	"github.com/samya-db/samya/avantan"
)

// errMessage is matched by Output.Err if a message was refused because it is malformed
// or comes from a stranger. The message had no effect.
var errMessage = errors.New("transfer: malformed message")

// Validate reports an error in the form of a message: an unknown kind, a number or
// amount out of range, a field that the kind does not have, or equal or missing sites.
// It checks nothing against a Machine's members or state.
func (m *Message) Validate() error {
	has := [...]struct{ ask, seq, amount, left bool }{
		Ask:      {ask: true, seq: true, amount: true},
		Transfer: {ask: true, seq: true, amount: true},
		Refuse:   {ask: true, left: true},
		Ack:      {seq: true},
	}
	switch {
	case m.Kind == 0 || int(m.Kind) >= len(has):
		return m.malformed("Kind is unknown")
	case m.From == "" || m.To == "" || m.From == m.To:
		return m.malformed("From and To must be two sites")
	case has[m.Kind].ask != (m.Ask > 0) || m.Ask > avantan.MaxNumber:
		return m.malformed("Ask is out of range")
	case !has[m.Kind].seq && m.Seq > 0, m.Kind != Ask && has[m.Kind].seq && m.Seq == 0, m.Seq > avantan.MaxNumber:
		return m.malformed("Seq is out of range")
	case m.Kind == Transfer && m.Seq > m.Ask:
		return m.malformed("Seq is above Ask")
	case has[m.Kind].amount != (m.Amount > 0) || m.Amount < 0:
		return m.malformed("Amount is out of range")
	case !has[m.Kind].left && m.Left != 0:
		return m.malformed("Left is out of place")
	}
	return nil
}

func (m *Message) malformed(why string) error {
	return fmt.Errorf("%w: %v from %q to %q: %s", errMessage, m.Kind, m.From, m.To, why)
}

var kindNames = [...]string{Ask: "Ask", Transfer: "Transfer", Refuse: "Refuse", Ack: "Ack"}

// String returns the kind's name.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}
