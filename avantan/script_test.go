package avantan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the stories under testdata/scripts, whose README describes the
// commands. After each command the invariants of the simulation are checked.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		t.Helper()
		if strings.HasSuffix(path, ".md") {
			return
		}
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			s.out.Reset()
			if err := s.run(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			if err := s.check(); err != nil {
				d.Fatalf(t, "%v", err)
			}
			if s.out.Len() == 0 {
				return "ok\n"
			}
			return s.out.String()
		})
	})
}

// least is the source of randomness of scripts: always the shortest wait.
type least struct{}

func (least) Uint64N(uint64) uint64 { return 0 }

type script struct {
	*cluster
	// side is the side of a partition that a site is on.
	side map[SiteID]int
	out  strings.Builder
}

func (s *script) run(d *datadriven.TestData) error {
	switch d.Cmd {
	case "sites":
		left := map[SiteID]Tokens{}
		for _, a := range d.CmdArgs {
			if a.Key == "quorum" {
				continue
			}
			n, err := strconv.Atoi(a.Vals[0])
			if err != nil {
				return err
			}
			left[SiteID(a.Key)] = Tokens(n)
		}
		s.cluster = newCluster(left, func(SiteID) Rand { return least{} })
		if d.HasArg("quorum") {
			for _, n := range s.nodes {
				n.cfg.Wait = WaitQuorum
			}
		}
		s.side = map[SiteID]int{}
	case "begin":
		p := &Proposal{}
		if v, ok := value(d, "change"); ok {
			p.Change = []byte(v)
		}
		if d.HasArg("all") {
			p.Press = PressAll
		}
		s.step(s.site(d), Input{Begin: p})
	case "refresh":
		s.step(s.site(d), Input{Refresh: SiteID(d.CmdArgs[1].Key)})
	case "deliver":
		s.deliver(d)
	case "drop":
		s.net = slices.DeleteFunc(s.net, func(m Message) bool { return s.matches(d, &m) })
	case "again":
		n := len(s.sent)
		for i := range n {
			if m := s.sent[i]; s.matches(d, &m) && !slices.ContainsFunc(s.net, func(w Message) bool { return line(&w) == line(&m) }) {
				s.receive(&m)
			}
		}
	case "stabilize":
		match := func(m Message) bool { return s.matches(d, &m) }
		for round := 0; slices.ContainsFunc(s.net, match); round++ {
			if round == 1000 {
				return fmt.Errorf("the messages do not come to an end")
			}
			s.deliver(d)
		}
	case "tick":
		n, err := strconv.Atoi(d.CmdArgs[0].Key)
		if err != nil {
			return err
		}
		s.now += Tick(n)
		for _, n := range s.nodes {
			if at, ok := n.m.WakeAt(); n.up && ok && at <= s.now {
				s.step(n, Input{})
			}
		}
	case "hold":
		s.site(d).held = true
	case "sync":
		n := s.site(d)
		n.held = false
		s.flush(n)
	case "crash":
		n := s.site(d)
		s.crash(n)
		n.held = false
	case "restart":
		s.site(d).up = true
	case "partition":
		side := 0
		for _, a := range d.CmdArgs {
			if a.Key == "|" {
				side++
			} else {
				s.side[SiteID(a.Key)] = side
			}
		}
	case "heal":
		clear(s.side)
	case "pending":
		for i := range s.net {
			fmt.Fprintln(&s.out, line(&s.net[i]))
		}
	case "state":
		for _, n := range s.nodes {
			if len(d.CmdArgs) == 0 || d.HasArg(string(n.id)) {
				s.state(n)
			}
		}
	default:
		return fmt.Errorf("unknown command %q", d.Cmd)
	}
	return nil
}

// step shows what the step did, and makes it durable at once unless held.
func (s *script) step(n *node, in Input) {
	s.show(n, s.cluster.step(n, in))
	if !n.held {
		s.flush(n)
	}
}

func (s *script) receive(m *Message) {
	fmt.Fprintf(&s.out, "> %s\n", line(m))
	n := s.node(m.To)
	switch {
	case !n.up:
		fmt.Fprintf(&s.out, "  lost: %s is down\n", m.To)
	case s.side[m.From] != s.side[m.To]:
		fmt.Fprintln(&s.out, "  lost: partitioned")
	default:
		s.step(n, Input{Receive: new(cloneMessage(m))})
	}
}

// deliver hands over what is under way now, not what follows from it.
func (s *script) deliver(d *datadriven.TestData) {
	var now, later []Message
	for _, m := range s.net {
		if s.matches(d, &m) {
			now = append(now, m)
		} else {
			later = append(later, m)
		}
	}
	s.net = later
	for i := range now {
		s.receive(&now[i])
	}
}

func (s *script) flush(n *node) {
	for len(n.flushes) > 0 {
		for _, m := range n.flushes[0].out {
			fmt.Fprintf(&s.out, "  %s\n", line(&m))
		}
		s.sync(n)
	}
}

func (s *script) site(d *datadriven.TestData) *node { return s.node(SiteID(d.CmdArgs[0].Key)) }

func value(d *datadriven.TestData, key string) (string, bool) {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return a.Vals[0], true
		}
	}
	return "", false
}

// matches reports whether a message is one of those that a command is about.
func (s *script) matches(d *datadriven.TestData, m *Message) bool {
	for _, a := range d.CmdArgs {
		var of string
		switch a.Key {
		case "from":
			of = string(m.From)
		case "to":
			of = string(m.To)
		case "kind":
			of = m.Kind.String()
		case "ballot":
			of = m.Ballot.String()
		default:
			continue
		}
		if !slices.Contains(a.Vals, of) {
			return false
		}
	}
	return true
}

func (s *script) show(n *node, out Output) {
	for _, a := range out.Applied {
		fmt.Fprintf(&s.out, "  %s applies %d: %s\n", n.id, a.Instance, show(a.Value))
	}
	switch out.Failed {
	case FailedNoQuorum:
		fmt.Fprintf(&s.out, "  %s: no quorum\n", n.id)
	case FailedUnacceptable:
		fmt.Fprintf(&s.out, "  %s: unacceptable\n", n.id)
	case FailedNot:
	}
	if out.Err != nil {
		fmt.Fprintf(&s.out, "  %s: %v\n", n.id, out.Err)
	}
}

func (s *script) state(n *node) {
	st := n.m.State()
	fmt.Fprintf(&s.out, "%s: left=%d limit=%d applied=%d promised=%v", n.id, n.b.left, n.b.limit, st.Applied, st.Promised)
	if st.Accepted != nil {
		fmt.Fprintf(&s.out, " accepted=%v %s", st.AcceptedAt, show(st.Accepted))
	}
	if st.Pledge != nil {
		fmt.Fprintf(&s.out, " pledged=%d exposed=%v", st.Pledge.Offered, st.Exposures)
	}
	if st.Built {
		fmt.Fprint(&s.out, " built")
	}
	for _, k := range st.Kept {
		fmt.Fprintf(&s.out, " keeps=%d@%s", k.Instance, k.Peer)
	}
	if at, ok := n.m.WakeAt(); ok {
		fmt.Fprintf(&s.out, " wakes=%d", at)
	}
	if !n.up {
		fmt.Fprint(&s.out, " down")
	}
	fmt.Fprintln(&s.out)
}

// show writes a value as its offers.
func show(v *Value) string {
	var parts []string
	for _, c := range v.Contributions {
		parts = append(parts, fmt.Sprintf("%s:%d", c.Site, c.Offered))
	}
	if len(v.Change) > 0 {
		parts = append(parts, "change "+string(v.Change))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

// line writes a message.
func line(m *Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s->%s %v", m.From, m.To, m.Kind)
	if m.Instance != 0 {
		fmt.Fprintf(&b, " %d", m.Instance)
	}
	if !m.Ballot.IsZero() {
		fmt.Fprintf(&b, " %v", m.Ballot)
	}
	if m.Press != 0 {
		fmt.Fprint(&b, " all")
	}
	if m.Contribution != nil {
		fmt.Fprintf(&b, " offers %d", m.Contribution.Offered)
	}
	if !m.AcceptedAt.IsZero() {
		fmt.Fprintf(&b, " accepted %v", m.AcceptedAt)
	}
	if m.Value != nil {
		fmt.Fprintf(&b, " %s", show(m.Value))
	}
	if !m.Promised.IsZero() {
		fmt.Fprintf(&b, " promised %v", m.Promised)
	}
	switch m.Kind {
	case Applied, CatchUpAsk, CatchUp:
		fmt.Fprintf(&b, " applied %d", m.Applied)
	}
	for _, k := range m.Kept {
		fmt.Fprintf(&b, " keeps=%d@%s", k.Instance, k.Peer)
	}
	return b.String()
}
