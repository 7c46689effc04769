package transfer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/samya-db/samya/avantan"
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
	out strings.Builder
}

func (s *script) run(d *datadriven.TestData) error {
	var err error
	number := func(text string) Tokens {
		n, e := strconv.ParseInt(text, 10, 64)
		if e != nil {
			err = e
		}
		return Tokens(n)
	}
	switch d.Cmd {
	case "sites":
		left := map[SiteID]Tokens{}
		for _, a := range d.CmdArgs {
			left[SiteID(a.Key)] = number(a.Vals[0])
		}
		s.cluster = newCluster(left, func(SiteID) avantan.Rand { return least{} })
	case "target":
		for _, a := range d.CmdArgs {
			s.node(SiteID(a.Key)).b.target = number(a.Vals[0])
		}
	case "begin":
		n := s.site(d)
		p := &Proposal{Need: number(d.CmdArgs[1].Vals[0])}
		for _, a := range d.CmdArgs[2:] {
			p.Donors = append(p.Donors, Donor{SiteID(a.Key), number(a.Vals[0])})
		}
		if p.Donors == nil {
			p = s.proposal(n, p.Need)
		}
		s.step(n, Input{Begin: p})
	case "full":
		s.site(d).b.full = true
	case "room":
		s.site(d).b.full = false
	case "deliver":
		s.deliver(d)
	case "drop":
		s.net = slices.DeleteFunc(s.net, func(m Message) bool { return matches(d, &m) })
	case "again":
		for i := range len(s.sent) {
			if m := s.sent[i]; matches(d, &m) && !slices.Contains(s.net, m) {
				s.receive(&m)
			}
		}
	case "stabilize":
		for round := 0; slices.ContainsFunc(s.net, func(m Message) bool { return matches(d, &m) }); round++ {
			if round == 1000 {
				return fmt.Errorf("the messages do not come to an end")
			}
			s.deliver(d)
		}
	case "tick":
		s.now += Tick(number(d.CmdArgs[0].Key))
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
	case "state":
		for _, n := range s.nodes {
			if len(d.CmdArgs) == 0 || d.HasArg(string(n.id)) {
				s.state(n)
			}
		}
	default:
		return fmt.Errorf("unknown command %q", d.Cmd)
	}
	return err
}

// step shows what the step did, and makes it durable at once unless held.
func (s *script) step(n *node, in Input) {
	out := s.cluster.step(n, in)
	if r := out.Ended; r != nil {
		fmt.Fprintf(&s.out, "  %s: %s: asked %d, got %d, silent %d\n", n.id, ending(r), r.Asked, r.Got, r.Silent)
	}
	if out.Err != nil {
		fmt.Fprintf(&s.out, "  %s: %v\n", n.id, out.Err)
	}
	if !n.held {
		s.flush(n)
	}
}

func (s *script) receive(m *Message) {
	fmt.Fprintf(&s.out, "> %s\n", line(m))
	if n := s.node(m.To); n.up {
		s.step(n, Input{Receive: new(*m)})
	} else {
		fmt.Fprintf(&s.out, "  lost: %s is down\n", m.To)
	}
}

// deliver hands over what is under way now, not what follows from it.
func (s *script) deliver(d *datadriven.TestData) {
	var now, later []Message
	for _, m := range s.net {
		if matches(d, &m) {
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

// matches reports whether a message is one of those that a command is about.
func matches(d *datadriven.TestData, m *Message) bool {
	for _, a := range d.CmdArgs {
		var of string
		switch a.Key {
		case "from":
			of = string(m.From)
		case "to":
			of = string(m.To)
		case "kind":
			of = m.Kind.String()
		case "ask":
			of = strconv.FormatUint(m.Ask, 10)
		default:
			continue
		}
		if !slices.Contains(a.Vals, of) {
			return false
		}
	}
	return true
}

func (s *script) state(n *node) {
	st := n.m.State()
	fmt.Fprintf(&s.out, "%s: left=%d", n.id, n.b.left)
	for _, d := range st.Debits {
		fmt.Fprintf(&s.out, " %s:given#%d", d.Receiver, d.Seq)
		if d.Amount > 0 {
			fmt.Fprintf(&s.out, "(%d)", d.Amount)
		}
		fmt.Fprintf(&s.out, ",asked=%d", d.Asked)
	}
	for _, c := range st.Credits {
		fmt.Fprintf(&s.out, " %s:got#%d", c.Donor, c.Seq)
	}
	if st.Reserved > 0 {
		fmt.Fprintf(&s.out, " reserved=%d", st.Reserved)
	}
	if at, ok := n.m.WakeAt(); ok {
		fmt.Fprintf(&s.out, " wakes=%d", at)
	}
	if !n.up {
		fmt.Fprint(&s.out, " down")
	}
	fmt.Fprintln(&s.out)
}

// line writes a message.
func line(m *Message) string {
	text := fmt.Sprintf("%s->%s %v", m.From, m.To, m.Kind)
	switch m.Kind {
	case Ask:
		return fmt.Sprintf("%s %d for %d, has #%d", text, m.Ask, m.Amount, m.Seq)
	case Transfer:
		return fmt.Sprintf("%s #%d of %d for ask %d", text, m.Seq, m.Amount, m.Ask)
	case Refuse:
		return fmt.Sprintf("%s %d, has %d", text, m.Ask, m.Left)
	default:
		return fmt.Sprintf("%s #%d", text, m.Seq)
	}
}
