package explore

import (
	"fmt"
	"strings"

	"github.com/samya-db/samya/avantan/star"
)

// starText describes a message.
func starText(m *star.Message) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v %v", m.Kind, m.ID)
	switch {
	case m.Contribution != nil:
		fmt.Fprintf(&s, " offers %d", m.Contribution.Offered)
	case m.Kind == star.ElectionOk:
		s.WriteString(" takes no part")
	}
	if m.Value != nil {
		fmt.Fprintf(&s, " %s", describe(m.Value))
	}
	return s.String()
}

// String implements Node.
func (n *starNode) String() string {
	var s strings.Builder
	state := func(st *star.State, b *starBooks) {
		for i := range st.Slices {
			sl := &st.Slices[i]
			switch {
			case sl.Committed:
				fmt.Fprintf(&s, "%v committed, ", sl.ID)
			case sl.Value != nil:
				fmt.Fprintf(&s, "%v accepted %s, ", sl.ID, describe(sl.Value))
			default:
				fmt.Fprintf(&s, "%v pledged, ", sl.ID)
			}
		}
		fmt.Fprintf(&s, "%v", b)
	}
	if n.variant.drained() {
		fmt.Fprintf(&s, "leaves %v clear %b ", n.live.leaves, n.clear)
		s.WriteString(n.handDescribe(&n.live.estate))
	}
	if id, collects := n.machine.Collecting(); collects {
		fmt.Fprintf(&s, "collects %v, ", id)
	}
	live := n.machine.State()
	state(live, n.live)
	if string(live.Fingerprint(nil)) != string(n.state.Fingerprint(nil)) || string(n.live.key(nil)) != string(n.disk.key(nil)) {
		s.WriteString(" || durable: ")
		state(&n.state, n.disk)
	}
	return s.String()
}
