package star

import (
	"fmt"
	"math"
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
	switch d.Cmd {
	case "sites":
		left := map[SiteID]Tokens{}
		for _, a := range d.CmdArgs {
			n, err := strconv.Atoi(a.Vals[0])
			if err != nil {
				return err
			}
			left[SiteID(a.Key)] = Tokens(n)
		}
		s.cluster = newCluster(left, 4, func(SiteID) avantan.Rand { return least{} })
	case "begin":
		p := &Proposal{Short: math.MaxInt64}
		if v, ok := story.Value(d, "short"); ok {
			n, err := strconv.Atoi(v)
			if err != nil {
				return err
			}
			p.Short = Tokens(n)
		}
		if d.HasArg("all") {
			p.Press = avantan.PressAll
		}
		s.begin(told, SiteID(story.Site(d)), Input{Begin: p})
	case "refuse":
		s.node(SiteID(story.Site(d))).b.refuses = true
	case "write-off":
		n := SiteID(story.Site(d))
		for _, to := range d.CmdArgs[1].Vals {
			s.writeOff(s.node(SiteID(to)), n)
			s.begin(told, SiteID(to), Input{})
		}
	case "aloof":
		s.node(SiteID(story.Site(d))).b.aloof = true
	default:
		return story.ErrUnknown
	}
	return nil
}

// begin has a site take a step.
func (s *script) begin(told *story.Story[Message], site SiteID, in Input) {
	n := s.node(site)
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
	case "id":
		return m.ID.String(), true
	}
	return "", false
}

var failures = map[Failure]string{
	FailedNothing: "nothing offered", FailedBusy: "others are busy", FailedAborted: "aborted",
	FailedUnacceptable: "unacceptable", FailedFull: "too many slices",
}

func (s *script) show(out *strings.Builder, n *node, did Output) {
	for _, a := range did.Applied {
		fmt.Fprintf(out, "  %s applies %v: %s\n", n.id, a.ID, show(a.Value))
	}
	if did.Failed != FailedNot {
		fmt.Fprintf(out, "  %s: %s\n", n.id, failures[did.Failed])
	}
	if did.Err != nil {
		fmt.Fprintf(out, "  %s: %v\n", n.id, did.Err)
	}
}

func (s *script) State(site string) string {
	n, b := s.node(SiteID(site)), new(strings.Builder)
	st := n.m.State()
	fmt.Fprintf(b, "%s: left=%d", n.id, n.b.left)
	for i := range st.Slices {
		switch sl := &st.Slices[i]; {
		case sl.Concluded:
			fmt.Fprintf(b, " %v:concluded", sl.ID)
		case sl.Committed:
			fmt.Fprintf(b, " %v:committed", sl.ID)
		case sl.Value != nil:
			fmt.Fprintf(b, " %v:accepted(%d)", sl.ID, sl.Pledge.Offered)
		default:
			fmt.Fprintf(b, " %v:pledged(%d)", sl.ID, sl.Pledge.Offered)
		}
	}
	for _, f := range st.Floors {
		fmt.Fprintf(b, " over≤%v", f)
	}
	if st.Reserved > 0 {
		fmt.Fprintf(b, " reserved=%d", st.Reserved)
	}
	if at, ok := n.m.WakeAt(); ok {
		fmt.Fprintf(b, " wakes=%d", at)
	}
	for i, site := range n.cfg.Members {
		if n.lost.has(i) {
			fmt.Fprintf(b, " lost=%s", site)
		}
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
	return "{" + strings.Join(parts, " ") + "}"
}

// line writes a message.
func line(m *Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s->%s %v %v", m.From, m.To, m.Kind, m.ID)
	if m.Press != 0 {
		fmt.Fprint(&b, " all")
	}
	if m.Contribution != nil {
		fmt.Fprintf(&b, " offers %d", m.Contribution.Offered)
	} else if m.Kind == ElectionOk {
		fmt.Fprint(&b, " declines")
	}
	if m.Value != nil {
		fmt.Fprintf(&b, " %s", show(m.Value))
	}
	if m.Lost != nil {
		fmt.Fprintf(&b, " lost %v", m.Lost)
	}
	return b.String()
}
