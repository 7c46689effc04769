package avantan

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

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
	case "begin":
		p := &Proposal{}
		if v, ok := story.Value(d, "change"); ok {
			p.Change = []byte(v)
		}
		if d.HasArg("all") {
			p.Press = PressAll
		}
		if d.HasArg("none") {
			p.Press = PressNone
		}
		s.begin(told, d, Input{Begin: p})
	case "refresh":
		s.begin(told, d, Input{Refresh: SiteID(d.CmdArgs[1].Key)})
	default:
		return story.ErrUnknown
	}
	return nil
}

// begin has the site of a command take a step.
func (s *script) begin(told *story.Story[Message], d *datadriven.TestData, in Input) {
	n := s.node(SiteID(story.Site(d)))
	told.Begin(string(n.id), func(out *strings.Builder) { s.show(out, n, s.step(n, in)) })
}

func (s *script) Step(site string, m *Message, out *strings.Builder) {
	n, in := s.node(SiteID(site)), Input{}
	if m != nil {
		in.Receive = new(cloneMessage(m))
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
	case "ballot":
		return m.Ballot.String(), true
	}
	return "", false
}

func (s *script) show(out *strings.Builder, n *node, did Output) {
	for _, a := range did.Applied {
		fmt.Fprintf(out, "  %s applies %d: %s\n", n.id, a.Instance, show(a.Value))
	}
	switch did.Failed {
	case FailedNoQuorum:
		fmt.Fprintf(out, "  %s: no quorum\n", n.id)
	case FailedUnacceptable:
		fmt.Fprintf(out, "  %s: unacceptable\n", n.id)
	case FailedNot:
	}
	if did.Err != nil {
		fmt.Fprintf(out, "  %s: %v\n", n.id, did.Err)
	}
}

func (s *script) State(site string) string {
	n, b := s.node(SiteID(site)), new(strings.Builder)
	st := n.m.State()
	fmt.Fprintf(b, "%s: left=%d limit=%d applied=%d promised=%v", n.id, n.b.left, n.b.limit, st.Applied, st.Promised)
	if st.Accepted != nil {
		fmt.Fprintf(b, " accepted=%v %s", st.AcceptedAt, show(st.Accepted))
	}
	if st.Pledge != nil {
		fmt.Fprintf(b, " pledged=%d exposed=%v", st.Pledge.Offered, st.Exposures)
	}
	if st.Built {
		fmt.Fprint(b, " built")
	}
	for _, k := range st.Kept {
		fmt.Fprintf(b, " keeps=%d@%s", k.Instance, k.Peer)
	}
	if at, ok := n.m.WakeAt(); ok {
		fmt.Fprintf(b, " wakes=%d", at)
	}
	if !n.up {
		fmt.Fprint(b, " down")
	}
	return b.String()
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
	switch m.Press {
	case PressSpare:
	case PressNone:
		fmt.Fprint(&b, " none")
	default:
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
