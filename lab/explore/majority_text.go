package explore

import (
	"fmt"
	"strings"

	"github.com/samya-db/samya/avantan"
)

// describe returns a value in a few words: who offers how much.
func (v *Majority) describe(id int) string { return describe(v.values.get(id).value) }

func describe(val *avantan.Value) string {
	var parts []string
	for _, c := range val.Contributions {
		parts = append(parts, fmt.Sprintf("%s:%d", c.Site, c.Offered))
	}
	if len(val.Change) > 0 {
		parts = append(parts, "limit+"+string(val.Change))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

// text describes a message.
func (v *Majority) text(m *avantan.Message) string {
	var s strings.Builder
	fmt.Fprint(&s, m.Kind)
	if m.Instance != 0 {
		fmt.Fprintf(&s, "[%d]", m.Instance)
	}
	if !m.Ballot.IsZero() {
		fmt.Fprintf(&s, " %v", m.Ballot)
	}
	if !m.Promised.IsZero() {
		fmt.Fprintf(&s, " promised %v", m.Promised)
	}
	if m.Contribution != nil {
		fmt.Fprintf(&s, " offers %d", m.Contribution.Offered)
	}
	if !m.AcceptedAt.IsZero() {
		fmt.Fprintf(&s, " accepted at %v", m.AcceptedAt)
	}
	if m.Value != nil {
		fmt.Fprintf(&s, " %s", describe(m.Value))
	}
	if m.Instance == 0 {
		fmt.Fprintf(&s, " up to %d", m.Applied)
	}
	for i := range m.Kept {
		fmt.Fprintf(&s, " keeps %d %s for %s", m.Kept[i].Instance, describe(&m.Kept[i].Value), m.Kept[i].Peer)
	}
	return s.String()
}

// String implements Node.
func (n *majority) String() string {
	var s strings.Builder
	state := func(st *avantan.State, b *books) {
		fmt.Fprintf(&s, "applied %d promised %v", st.Applied, st.Promised)
		if st.Accepted != nil {
			fmt.Fprintf(&s, " accepted %v %s", st.AcceptedAt, describe(st.Accepted))
		}
		if len(st.Exposures) > 0 {
			fmt.Fprintf(&s, " exposed to %v", st.Exposures)
		}
		if st.Built {
			s.WriteString(" built")
		}
		fmt.Fprintf(&s, " | %v", b)
	}
	if n.lost != 0 {
		fmt.Fprintf(&s, "knows of a loss %b, ", n.lost)
	}
	if n.variant.drained() {
		s.WriteString(n.handDescribe(&n.live.estate))
	}
	live := n.machine.State()
	state(live, n.live)
	if string(live.Fingerprint(nil)) != string(n.state.Fingerprint(nil)) || string(n.live.key(nil)) != string(n.disk.key(nil)) {
		s.WriteString(" || durable: ")
		state(&n.state, n.disk)
	}
	return s.String()
}
