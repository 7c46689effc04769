package avantan

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// MaxNumber bounds ballot numbers and instances. Counting never reaches it; a message
// that claims more is refused.
const MaxNumber = 1 << 62

// ErrStranger is matched by Output.Err if a message names a site that Config.Known does
// not know. The receiver may have missed that the site joined.
var ErrStranger = errors.New("a site does not belong to the cluster")

// errMessage is matched by Output.Err if a message was refused because it is malformed
// or comes from a stranger. The message had no effect.
var errMessage = errors.New("avantan: malformed message")

// Validate reports an error in the form of a message: an unknown kind, a missing field,
// a number out of range, contributions not sorted by site, or a sender that may not
// send its kind. It checks nothing against a Machine's members or state.
func (m *Message) Validate() error {
	if m.From == "" || m.To == "" || m.From == m.To {
		return m.malformed("From and To must be two sites")
	}
	if m.Instance > MaxNumber || m.Applied > MaxNumber || m.Ballot.Number > MaxNumber || m.Promised.Number > MaxNumber {
		return m.malformed("a number is too large")
	}
	if m.Value != nil {
		if err := m.Value.Validate(); err != nil {
			return m.malformed(err.Error())
		}
	}
	if m.aboutInstance() && m.Instance == 0 {
		return m.malformed("Instance is missing")
	}
	switch m.Kind {
	case Election, Accept, Abandon:
		if m.Ballot.Number == 0 || m.Ballot.Site != m.From {
			return m.malformed("Ballot must be the sender's own")
		}
	case ElectionOk, Refuse, AcceptOk, Status:
		if m.Ballot.Number == 0 || m.Ballot.Site != m.To {
			return m.malformed("Ballot must be the receiver's own")
		}
	}
	switch m.Kind {
	case Election:
		if m.Press > PressNone {
			return m.malformed("Press is unknown")
		}
	case ElectionOk:
		return m.validateElectionOk()
	case Refuse:
		if m.Promised.Site == "" || m.Promised.Compare(m.Ballot) <= 0 {
			return m.malformed("Promised must be above Ballot")
		}
	case Accept, Decision:
		if m.Value == nil {
			return m.malformed("Value is missing")
		}
	case CatchUp:
		return m.validateCatchUp()
	case AcceptOk, Applied, Abandon, Status, CatchUpAsk:
	default:
		return m.malformed("Kind is unknown")
	}
	return nil
}

func (m *Message) validateElectionOk() error {
	if c := m.Contribution; c != nil {
		if c.Site != m.From {
			return m.malformed("Contribution must be the sender's own")
		}
		if err := c.Validate(); err != nil {
			return m.malformed(err.Error())
		}
	}
	if (m.Value == nil) != m.AcceptedAt.IsZero() {
		return m.malformed("Value and AcceptedAt go together")
	}
	if m.Value != nil && (m.AcceptedAt.Number == 0 || m.AcceptedAt.Site == "" || m.AcceptedAt.Compare(m.Ballot) > 0) {
		return m.malformed("AcceptedAt must be a ballot not above Ballot")
	}
	return nil
}

func (m *Message) validateCatchUp() error {
	if !increasing(m.Kept, func(k Kept) SiteID { return k.Peer }) {
		return m.malformed("Kept must be sorted, each peer once")
	}
	for i := range m.Kept {
		k := &m.Kept[i]
		if k.Instance == 0 || k.Instance > m.Applied {
			return m.malformed("Kept holds an instance that the sender has not applied")
		}
		if _, in := k.Value.Of(k.Peer); !in {
			return m.malformed("Kept holds a value without its peer")
		}
		if err := k.Value.Validate(); err != nil {
			return m.malformed(err.Error())
		}
	}
	return nil
}

// aboutInstance reports whether the message is about a single instance.
func (m *Message) aboutInstance() bool {
	switch m.Kind {
	case Applied, CatchUpAsk, CatchUp:
		return false
	default:
		return true
	}
}

// SenderApplied returns the last instance that the sender has durably applied, as far
// as the message tells. A site takes part in an instance only after it has applied the
// instance before, and announces a decision once it has applied it. The message must be
// valid; see Validate.
func (m *Message) SenderApplied() Instance {
	switch {
	case !m.aboutInstance():
		return m.Applied
	case m.Kind == Decision:
		return m.Instance
	default:
		return m.Instance - 1
	}
}

func (m *Message) malformed(why string) error {
	return fmt.Errorf("%w: %v from %q to %q: %s", errMessage, m.Kind, m.From, m.To, why)
}

// Validate reports a count that is out of its range.
func (c Contribution) Validate() error {
	switch {
	case c.Site == "":
		return errors.New("contribution without a site")
	case c.Wanted < 0:
		return fmt.Errorf("contribution of %q: Wanted is negative", c.Site)
	case c.Window < 0:
		return fmt.Errorf("contribution of %q: Window must be at least 0", c.Site)
	case c.Queued < 0 || c.Queued > c.Wanted:
		return fmt.Errorf("contribution of %q: Queued must be 0 to Wanted", c.Site)
	case c.Kept < 0:
		return fmt.Errorf("contribution of %q: Kept is negative", c.Site)
	}
	return nil
}

// Validate reports contributions that are out of order or out of range.
func (v *Value) Validate() error {
	if !increasing(v.Contributions, func(c Contribution) SiteID { return c.Site }) {
		return errors.New("contributions must be sorted, each site once")
	}
	for _, c := range v.Contributions {
		if err := c.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Equal reports whether two values are the same.
func (v *Value) Equal(w *Value) bool {
	return v.Policy == w.Policy && bytes.Equal(v.Change, w.Change) &&
		slices.Equal(v.Contributions, w.Contributions)
}

// Clone returns a deep copy.
func (v *Value) Clone() *Value {
	return &Value{
		Contributions: slices.Clone(v.Contributions),
		Policy:        v.Policy,
		Change:        bytes.Clone(v.Change),
	}
}

var kindNames = [...]string{
	Election: "Election", ElectionOk: "ElectionOk", Refuse: "Refuse", Accept: "Accept", AcceptOk: "AcceptOk",
	Decision: "Decision", Applied: "Applied", Abandon: "Abandon", Status: "Status",
	CatchUpAsk: "CatchUpAsk", CatchUp: "CatchUp",
}

// String returns the kind's name.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}
