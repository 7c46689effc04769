package handoff

import (
	"cmp"
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
	if d.Cmd == "sites" {
		left := map[SiteID]Tokens{}
		for _, a := range d.CmdArgs {
			left[SiteID(a.Key)] = number(a.Vals[0])
		}
		s.cluster = newCluster(left, func(SiteID) avantan.Rand { return least{} })
		return err
	}
	n := s.node(SiteID(story.Site(d)))
	switch d.Cmd {
	case "out":
		s.hold(n, n.b.left, number(d.CmdArgs[1].Key))
	case "lease":
		for _, a := range d.CmdArgs[1:] {
			s.hold(n, n.b.left, 0, lease{a.Key, number(a.Vals[0])})
		}
	case "begin":
		told.Begin(string(n.id), func(out *strings.Builder) {
			s.show(out, n, s.step(n, Input{Begin: SiteID(d.CmdArgs[1].Key)}))
		})
	case "lost":
		told.Begin(string(n.id), func(out *strings.Builder) {
			s.show(out, n, s.lose(n, SiteID(d.CmdArgs[1].Key)))
		})
	case "acquire":
		told.Begin(string(n.id), func(*strings.Builder) {
			s.serve(n, func(b *books) { b.acquire(number(d.CmdArgs[1].Key)) })
		})
	case "release":
		told.Begin(string(n.id), func(*strings.Builder) {
			s.serve(n, func(b *books) { b.release(number(d.CmdArgs[1].Key)) })
		})
	case "end":
		id := d.CmdArgs[1].Key
		if frozen(n.m.State(), id) {
			return fmt.Errorf("%s is frozen", id)
		}
		told.Begin(string(n.id), func(*strings.Builder) { s.serve(n, func(b *books) { b.end(id) }) })
	case "full":
		n.b.full = true
	case "room":
		n.b.full = false
	default:
		return story.ErrUnknown
	}
	return err
}

func (s *script) Step(site string, m *Message, out *strings.Builder) {
	n := s.node(SiteID(site))
	if m != nil {
		s.show(out, n, s.receive(m))
		return
	}
	s.show(out, n, s.step(n, Input{}))
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
	case "number":
		return strconv.FormatUint(cmp.Or(m.Number, m.Taken), 10), true
	}
	return "", false
}

func (s *script) show(out *strings.Builder, n *node, did Output) {
	if did.Empty {
		fmt.Fprintf(out, "  %s: empty\n", n.id)
	}
	if did.Closed {
		fmt.Fprintf(out, "  %s: closed\n", n.id)
	}
	if did.Err != nil {
		fmt.Fprintf(out, "  %s: %v\n", n.id, did.Err)
	}
}

func (s *script) State(site string) string {
	n, b := s.node(SiteID(site)), new(strings.Builder)
	st := n.m.State()
	fmt.Fprintf(b, "%s: left=%d net=%d", n.id, n.b.left, n.b.net)
	for _, l := range n.b.leases {
		fmt.Fprintf(b, " %s=%d", l.id, l.tokens)
	}
	for _, g := range st.Given {
		fmt.Fprintf(b, " %s:given#%d", g.Heir, g.Number)
	}
	if o := st.Open; o != nil {
		fmt.Fprintf(b, " open(%s#%d%s)", o.Heir, o.Number, estate(&o.Estate))
	}
	for _, t := range st.Taken {
		fmt.Fprintf(b, " %s:taken#%d", t.Leaver, t.Number)
	}
	if at, ok := n.m.WakeAt(); ok {
		fmt.Fprintf(b, " wakes=%d", at)
	}
	if !n.up {
		fmt.Fprint(b, " down")
	}
	return b.String()
}

// line writes a message.
func line(m *Message) string {
	text := fmt.Sprintf("%s->%s %v", m.From, m.To, m.Kind)
	if m.Kind == Ack {
		return fmt.Sprintf("%s #%d", text, m.Taken)
	}
	text = fmt.Sprintf("%s #%d%s", text, m.Number, estate(&m.Estate))
	if m.Taken > 0 {
		text += fmt.Sprintf(", has #%d", m.Taken)
	}
	return text
}

// estate writes what a bequest moves.
func estate(e *Estate) string {
	b := new(strings.Builder)
	for _, f := range []struct {
		name   string
		tokens Tokens
	}{{"left", e.Left}, {"owed", e.Owed}, {"net", e.Net}} {
		if f.tokens != 0 {
			fmt.Fprintf(b, " %s=%d", f.name, f.tokens)
		}
	}
	for _, i := range e.Items {
		fmt.Fprintf(b, " %s=%d", i.Data, i.Tokens)
	}
	return b.String()
}
