package star

import (
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// errMessage is matched by Output.Err if a message was refused because it is malformed
// or comes from a stranger. The message had no effect.
var errMessage = errors.New("star: malformed message")

// Validate reports an error in the form of a message: an unknown kind, a missing field,
// a number out of range, contributions not sorted by site, or a sender or receiver that
// does not fit the kind. It checks nothing against a Machine's members or state.
func (m *Message) Validate() error {
	if m.From == "" || m.To == "" || m.From == m.To {
		return m.malformed("From and To must be two sites")
	}
	if m.ID.Leader == "" || m.ID.Counter == 0 || m.ID.Counter > avantan.MaxNumber {
		return m.malformed("ID must name a leader and a counter within range")
	}
	switch m.Kind {
	case Election, Discard, Settled:
		if m.ID.Leader != m.From {
			return m.malformed("only the leader may say this")
		}
	case ElectionOk, Busy, Applied:
		if m.ID.Leader != m.To {
			return m.malformed("only the leader may be told this")
		}
	}
	switch m.Kind {
	case Election:
		if m.Press > avantan.PressAll {
			return m.malformed("Press is unknown")
		}
	case ElectionOk:
		if m.Contribution == nil {
			break
		}
		if m.Contribution.Site != m.From {
			return m.malformed("Contribution must be the sender's own")
		}
		if err := m.Contribution.Validate(); err != nil {
			return m.malformed(err.Error())
		}
	case Accept:
		return m.validateAccept()
	case Undecided:
		return m.validateUndecided()
	case Busy, Discard, AcceptOk, Abort, Commit, Applied, Settled, Concluded, Ended:
	default:
		return m.malformed("Kind is unknown")
	}
	return nil
}

func (m *Message) validateAccept() error {
	if m.Value == nil {
		return m.malformed("Value is missing")
	}
	if err := validateValue(m.Value); err != nil {
		return m.malformed(err.Error())
	}
	for _, site := range []avantan.SiteID{m.From, m.To, m.ID.Leader} {
		if _, in := m.Value.Of(site); !in {
			return m.malformed("Value must hold the leader, the sender and the receiver")
		}
	}
	return nil
}

func (m *Message) validateUndecided() error {
	switch {
	case len(m.Lost) == 0 || len(m.Lost) > avantan.MaxMembers:
		return m.malformed("Lost must name a site, and as many sites as a cluster may have at most")
	case !increasing(m.Lost, func(a, b *avantan.SiteID) int { return compareSites(*a, *b) }):
		return m.malformed("Lost must be sorted, each site once")
	case slices.Contains(m.Lost, m.From) || slices.Contains(m.Lost, m.To) || slices.Contains(m.Lost, ""):
		return m.malformed("Lost must name other sites than the sender and the receiver")
	}
	return nil
}

// validateValue reports an error in a value of this variant. The value must move tokens
// between two sites or more and change nothing else: majorities decide changes of
// limits.
func validateValue(v *avantan.Value) error {
	if len(v.Contributions) < 2 {
		return errors.New("a value must hold two contributions or more")
	}
	if len(v.Change) > 0 {
		return errors.New("a value must hold no change")
	}
	if err := v.Validate(); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	return nil
}

func (m *Message) malformed(why string) error {
	return fmt.Errorf("%w: %v from %q to %q: %s", errMessage, m.Kind, m.From, m.To, why)
}

// stranger says that a field of the message names a site that is not a member here. The
// receiver may have missed that the site joined.
func (m *Message) stranger(field string) error {
	return fmt.Errorf("%w: %v from %q to %q: %s%w", errMessage, m.Kind, m.From, m.To, field, avantan.ErrStranger)
}

var kindNames = [...]string{
	Election: "Election", ElectionOk: "ElectionOk", Busy: "Busy", Discard: "Discard", Accept: "Accept",
	AcceptOk: "AcceptOk", Abort: "Abort", Commit: "Commit", Applied: "Applied", Settled: "Settled",
	Undecided: "Undecided", Concluded: "Concluded", Ended: "Ended",
}

// String returns the kind's name.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}
