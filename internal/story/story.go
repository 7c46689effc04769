// Package story runs the stories of the protocols' tests: files of commands to the sites
// of a cluster, with the sites' steps as the output. The package has the commands that
// all protocols share: messages arrive, get lost, arrive again; time passes; sites crash
// and are cut off. It knows no protocol: a Cluster implements one.
package story

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// ErrUnknown is returned by Cluster.Do for a command that its protocol does not have.
var ErrUnknown = errors.New("unknown command")

// Cluster is a cluster of a protocol with messages M.
type Cluster[M any] interface {
	// Do runs a command of the protocol itself, such as sites, which makes all sites anew.
	// Steps that follow from the command are shown by Begin.
	Do(d *datadriven.TestData, s *Story[M]) error
	// Check returns an error if an invariant does not hold.
	Check() error
	// Names returns the names of all sites, in order.
	Names() []string
	// Up points to whether a site is up.
	Up(site string) *bool
	// Pass lets ticks of time pass.
	Pass(ticks int64)
	// Due reports whether a site has something to do now.
	Due(site string) bool
	// Step hands a message to a site, or has it do the work that is due if m is nil. It
	// writes a line for each thing that the site tells of the step.
	Step(site string, m *M, out *strings.Builder)
	// Sync makes the oldest step of a site durable and returns the messages that leave
	// with it; false if all steps are durable.
	Sync(site string) ([]M, bool)
	// Crash loses the steps of a site that are not durable.
	Crash(site string)
	// State returns a line about a site.
	State(site string) string
	// Way points to the messages under way; Sent are all messages that ever left.
	Way() *[]M
	Sent() []M
	// Ends returns the sender and the receiver of a message, Line the message as a line.
	Ends(m *M) (from, to string)
	Line(m *M) string
	// Field returns a property of a message by which commands choose messages, such as its
	// kind; false if the protocol has no such property.
	Field(m *M, key string) (string, bool)
}

// Story is a story in the course of being told.
type Story[M any] struct {
	Cluster[M]
	// held are the sites that make nothing durable; side is the side of each site in a
	// partition.
	held map[string]bool
	side map[string]int
	out  strings.Builder
}

// Run tells each story in a directory about a new cluster, and checks the cluster after
// each command.
func Run[M any](t *testing.T, dir string, cluster func() Cluster[M]) {
	t.Helper()
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		t.Helper()
		if strings.HasSuffix(path, ".md") {
			return
		}
		s := &Story[M]{Cluster: cluster(), held: make(map[string]bool), side: make(map[string]int)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			s.out.Reset()
			if err := s.run(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			if err := s.Check(); err != nil {
				d.Fatalf(t, "%v", err)
			}
			if s.out.Len() == 0 {
				return "ok\n"
			}
			return s.out.String()
		})
	})
}

// Site returns the name of the site that a command is about, its first argument.
func Site(d *datadriven.TestData) string { return d.CmdArgs[0].Key }

// Value returns the value of an argument key=value; false if there is none.
func Value(d *datadriven.TestData, key string) (string, bool) {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return a.Vals[0], true
		}
	}
	return "", false
}

// run runs a command.
func (s *Story[M]) run(d *datadriven.TestData) error {
	switch d.Cmd {
	case "deliver":
		s.deliver(d)
	case "drop":
		way := s.Way()
		*way = slices.DeleteFunc(*way, func(m M) bool { return s.matches(d, &m) })
	case "again":
		s.again(d)
	case "stabilize":
		return s.stabilize(d)
	case "tick":
		ticks, err := strconv.ParseInt(d.CmdArgs[0].Key, 10, 64)
		if err != nil {
			return err
		}
		s.Pass(ticks)
		for _, site := range s.Names() {
			if *s.Up(site) && s.Due(site) {
				s.step(site, nil)
			}
		}
	case "hold":
		s.held[Site(d)] = true
	case "sync":
		delete(s.held, Site(d))
		s.flush(Site(d))
	case "crash":
		s.Crash(Site(d))
		delete(s.held, Site(d))
	case "restart":
		*s.Up(Site(d)) = true
	case "partition":
		side := 0
		for _, a := range d.CmdArgs {
			if a.Key == "|" {
				side++
			} else {
				s.side[a.Key] = side
			}
		}
	case "heal":
		clear(s.side)
	case "pending":
		for i := range *s.Way() {
			fmt.Fprintln(&s.out, s.Line(&(*s.Way())[i]))
		}
	case "state":
		for _, site := range s.Names() {
			if len(d.CmdArgs) == 0 || d.HasArg(site) {
				fmt.Fprintln(&s.out, s.State(site))
			}
		}
	default:
		if err := s.Do(d, s); err != nil {
			return fmt.Errorf("%s: %w", d.Cmd, err)
		}
		if d.Cmd == "sites" {
			clear(s.held)
			clear(s.side)
		}
	}
	return nil
}

// Begin shows a step that a command of the protocol has a site take.
func (s *Story[M]) Begin(site string, step func(out *strings.Builder)) {
	step(&s.out)
	if !s.held[site] {
		s.flush(site)
	}
}

// step shows a step, and makes it durable at once unless the site is held.
func (s *Story[M]) step(site string, m *M) {
	s.Begin(site, func(out *strings.Builder) { s.Step(site, m, out) })
}

// receive has a message arrive, or be lost.
func (s *Story[M]) receive(m *M) {
	from, to := s.Ends(m)
	fmt.Fprintf(&s.out, "> %s\n", s.Line(m))
	switch {
	case !*s.Up(to):
		fmt.Fprintf(&s.out, "  lost: %s is down\n", to)
	case s.side[from] != s.side[to]:
		fmt.Fprintln(&s.out, "  lost: partitioned")
	default:
		s.step(to, m)
	}
}

// deliver hands over the messages under way now, not the messages that follow from them.
func (s *Story[M]) deliver(d *datadriven.TestData) {
	var now, later []M
	for _, m := range *s.Way() {
		if s.matches(d, &m) {
			now = append(now, m)
		} else {
			later = append(later, m)
		}
	}
	*s.Way() = later
	for i := range now {
		s.receive(&now[i])
	}
}

// again hands over messages that ever left and are not under way.
func (s *Story[M]) again(d *datadriven.TestData) {
	for i := range len(s.Sent()) {
		m := s.Sent()[i]
		under := func(w M) bool { return s.Line(&w) == s.Line(&m) }
		if s.matches(d, &m) && !slices.ContainsFunc(*s.Way(), under) {
			s.receive(&m)
		}
	}
}

// mostRounds is how often messages may follow from messages until a story is endless.
const mostRounds = 1000

// stabilize delivers until no message is under way.
func (s *Story[M]) stabilize(d *datadriven.TestData) error {
	for round := 0; slices.ContainsFunc(*s.Way(), func(m M) bool { return s.matches(d, &m) }); round++ {
		if round == mostRounds {
			return errors.New("the messages do not come to an end")
		}
		s.deliver(d)
	}
	return nil
}

// flush makes all steps of a site durable.
func (s *Story[M]) flush(site string) {
	for {
		leave, more := s.Sync(site)
		if !more {
			return
		}
		for i := range leave {
			fmt.Fprintf(&s.out, "  %s\n", s.Line(&leave[i]))
		}
	}
}

// matches reports whether a command is about a message.
func (s *Story[M]) matches(d *datadriven.TestData, m *M) bool {
	from, to := s.Ends(m)
	for _, a := range d.CmdArgs {
		var of string
		ok := true
		switch a.Key {
		case "from":
			of = from
		case "to":
			of = to
		default:
			of, ok = s.Field(m, a.Key)
		}
		if ok && !slices.Contains(a.Vals, of) {
			return false
		}
	}
	return true
}
