package transfer

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/story"
)

// TestScripts runs the stories under testdata/scripts, and checks the invariants of the
// simulation after each command. The README there describes the commands.
func TestScripts(t *testing.T) {
	story.Run(t, "testdata/scripts", func() story.Cluster[Message] { return &script{} })
}

// least is the source of randomness of scripts: always the shortest wait.
type least struct{}

func (least) Uint64N(uint64) uint64 { return 0 }

// script is a cluster as a story knows it.
type script struct{ *cluster }

func (s *script) Do(d *datadriven.TestData, told *story.Story[Message]) error {
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
		p := &Proposal{Need: number(d.CmdArgs[1].Vals[0])}
		for _, a := range d.CmdArgs[2:] {
			p.Donors = append(p.Donors, Donor{SiteID(a.Key), number(a.Vals[0])})
		}
		if p.Donors == nil {
			p = s.proposal(s.node(SiteID(story.Site(d))), p.Need)
		}
		s.begin(told, SiteID(story.Site(d)), Input{Begin: p})
	case "write-off":
		for _, to := range d.CmdArgs[1].Vals {
			s.writeOff(s.node(SiteID(to)), SiteID(story.Site(d)))
			s.begin(told, SiteID(to), Input{})
		}
	case "full":
		s.node(SiteID(story.Site(d))).b.full = true
	case "room":
		s.node(SiteID(story.Site(d))).b.full = false
	default:
		return story.ErrUnknown
	}
	return err
}

// begin has a site take a step.
func (s *script) begin(told *story.Story[Message], site SiteID, in Input) {
	n := s.node(site)
	told.Begin(string(n.id), func(out *strings.Builder) { s.show(out, n, s.step(n, in)) })
}

func (s *script) Step(site string, m *Message, out *strings.Builder) {
	n, in := s.node(SiteID(site)), Input{}
	if m != nil {
		in.Receive = new(*m)
	}
	s.show(out, n, s.step(n, in))
}

func (s *script) Check() error { return s.check() }

func (s *script) Names() []string {
	var names []string
	for _, n := range s.nodes {
		names = append(names, string(n.id))
	}
	return names
}

func (s *script) Up(site string) *bool { return &s.node(SiteID(site)).up }

func (s *script) Pass(ticks int64) { s.now += Tick(ticks) }

func (s *script) Due(site string) bool {
	at, ok := s.node(SiteID(site)).m.WakeAt()
	return ok && at <= s.now
}

func (s *script) Sync(site string) ([]Message, bool) {
	n := s.node(SiteID(site))
	if len(n.flushes) == 0 {
		return nil, false
	}
	out := n.flushes[0].out
	s.sync(n)
	return out, true
}

func (s *script) Crash(site string) { s.crash(s.node(SiteID(site))) }

func (s *script) Way() *[]Message { return &s.net }

func (s *script) Sent() []Message { return s.sent }

func (s *script) Ends(m *Message) (from, to string) { return string(m.From), string(m.To) }

func (s *script) Line(m *Message) string { return line(m) }

func (s *script) Field(m *Message, key string) (string, bool) {
	switch key {
	case "kind":
		return m.Kind.String(), true
	case "ask":
		return strconv.FormatUint(m.Ask, 10), true
	}
	return "", false
}

func (s *script) show(out *strings.Builder, n *node, did Output) {
	if r := did.Ended; r != nil {
		fmt.Fprintf(out, "  %s: %s: asked %d, got %d, silent %d\n", n.id, ending(r), r.Asked, r.Got, r.Silent)
	}
	if did.Err != nil {
		fmt.Fprintf(out, "  %s: %v\n", n.id, did.Err)
	}
}

func (s *script) State(site string) string {
	n, b := s.node(SiteID(site)), new(strings.Builder)
	st := n.m.State()
	fmt.Fprintf(b, "%s: left=%d", n.id, n.b.left)
	for _, d := range st.Debits {
		fmt.Fprintf(b, " %s:given#%d", d.Receiver, d.Seq)
		if d.Amount > 0 {
			fmt.Fprintf(b, "(%d)", d.Amount)
		}
		fmt.Fprintf(b, ",asked=%d", d.Asked)
	}
	for _, c := range st.Credits {
		fmt.Fprintf(b, " %s:got#%d", c.Donor, c.Seq)
	}
	if st.Reserved > 0 {
		fmt.Fprintf(b, " reserved=%d", st.Reserved)
	}
	if at, ok := n.m.WakeAt(); ok {
		fmt.Fprintf(b, " wakes=%d", at)
	}
	for _, site := range n.lost {
		fmt.Fprintf(b, " lost=%s", site)
	}
	if !n.up {
		fmt.Fprint(b, " down")
	}
	return b.String()
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
