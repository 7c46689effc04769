package transfer

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/samya-db/samya/avantan"
)

var (
	simSeeds = flag.Int("sim.seeds", 200, "seeds to simulate for each size of cluster")
	simSeed  = flag.Uint64("sim.seed", 0, "simulate this seed only")
)

// TestSimulation runs clusters under random schedules with every fault there
// is, checks the invariants after every event, then heals all and checks that
// nothing stays under way. A seed that fails is replayed with -sim.seed.
func TestSimulation(t *testing.T) {
	for _, size := range []int{2, 3, 5} {
		t.Run(fmt.Sprintf("sites=%d", size), func(t *testing.T) {
			t.Parallel()
			first, last := uint64(1), uint64(*simSeeds)
			if *simSeed != 0 {
				first, last = *simSeed, *simSeed
			}
			seen := tally{ended: map[string]int{}}
			for seed := first; seed <= last; seed++ {
				if err := simulate(size, seed, &seen); err != nil {
					t.Fatalf("sites=%d seed=%d: %v", size, seed, err)
				}
			}
			t.Logf("%d runs: %+v", last-first+1, seen)
			if *simSeed != 0 {
				return
			}
			for _, how := range []string{"satisfied", "nobody to ask", "window over", "all answered"} {
				if seen.ended[how] == 0 {
					t.Errorf("no round ended with %q", how)
				}
			}
			if seen.transfers == 0 || seen.crashes == 0 || seen.undone == 0 || seen.full == 0 || seen.stuck == 0 || seen.repeats <= 0 {
				t.Error("something was never seen")
			}
		})
	}
}

// tally counts events by kind, so that a simulation of nothing is noticed.
type tally struct {
	events, transfers, repeats, crashes int
	// undone are crashes that lost a transaction, full the credits refused, stuck
	// the runs that ended with transfers to a site that is down.
	undone, full, stuck int
	ended               map[string]int
}

type sim struct {
	*cluster
	r *rand.Rand
	// groups is the side of a partition that each site is on.
	groups []int
	seen   *tally
	// faults are the chances, in thousandths, of this run.
	drop, repeat, crash, partition, begin, wake, serve int
	// mute is a kind of message that mostly gets lost.
	mute Kind
	// lost is a site that is written off in this run; empty for none. It does not learn that.
	lost SiteID
}

func simulate(size int, seed uint64, seen *tally) error {
	r := rand.New(rand.NewPCG(seed, uint64(size)))
	left := map[SiteID]Tokens{}
	for i := range size {
		left[SiteID(rune('a'+i))] = Tokens(r.IntN(200))
	}
	s := &sim{
		cluster: newCluster(left, func(SiteID) avantan.Rand { return rand.New(rand.NewPCG(r.Uint64(), 0)) }),
		r:       r, groups: make([]int, size), seen: seen,
		drop: r.IntN(150), repeat: r.IntN(200), crash: r.IntN(25), partition: r.IntN(10), begin: 5 + r.IntN(100),
		wake: 1 + r.IntN(30), serve: r.IntN(50), mute: Kind(r.IntN(int(2 * Ack))),
	}
	if s.chance(300) {
		s.lost = s.nodes[r.IntN(size)].id
	}
	if s.chance(700) {
		// Calmer: more rounds end well.
		s.drop, s.crash, s.partition = s.drop/5, s.crash/5, s.partition/5
	}
	for event := range 200 + r.IntN(400*size) {
		s.event()
		seen.events++
		if err := s.check(); err != nil {
			return fmt.Errorf("event %d: %w", event, err)
		}
	}
	if slices.ContainsFunc(s.nodes, func(n *node) bool {
		return slices.ContainsFunc(n.disk.Debits, func(d Debit) bool { return d.Amount > 0 && !s.node(d.Receiver).up })
	}) {
		seen.stuck++
	}
	if err := s.heal(); err != nil {
		return fmt.Errorf("after healing: %w", err)
	}
	for _, n := range s.nodes {
		seen.transfers += len(n.given)
		seen.repeats -= len(n.given)
	}
	for i := range s.sent {
		if s.sent[i].Kind == Transfer {
			seen.repeats++
		}
	}
	for how, n := range s.ended {
		seen.ended[how] += n
	}
	return nil
}

func (s *sim) chance(thousandths int) bool { return s.r.IntN(1000) < thousandths }

func (s *sim) reaches(m *Message) bool {
	from := slices.IndexFunc(s.nodes, func(n *node) bool { return n.id == m.From })
	to := slices.IndexFunc(s.nodes, func(n *node) bool { return n.id == m.To })
	return s.groups[from] == s.groups[to] && s.nodes[to].up
}

// event lets a random thing happen.
func (s *sim) event() {
	n := s.nodes[s.r.IntN(len(s.nodes))]
	switch {
	case s.chance(s.crash):
		if slices.ContainsFunc(n.flushes, func(f flush) bool { return f.state != nil }) {
			s.seen.undone++
		}
		s.cluster.crash(n)
		s.seen.crashes++
	case !n.up:
		n.up = s.chance(100)
	case s.chance(s.partition):
		for i := range s.groups {
			s.groups[i] = s.r.IntN(2)
		}
	case s.chance(s.partition):
		clear(s.groups)
	case s.lost != "" && n.id != s.lost && s.chance(15):
		s.writeOff(n, s.lost)
		if s.chance(700) {
			s.step(n, Input{})
		}
	case s.chance(s.begin):
		s.ask(n)
	case s.chance(s.serve):
		s.acquire(n)
	case s.chance(s.wake):
		s.tick()
	case len(n.flushes) > 0 && s.chance(700):
		s.sync(n)
	case len(s.sent) > 0 && s.chance(s.repeat):
		// Anything that was ever sent may arrive again.
		s.deliver(s.sent[s.r.IntN(len(s.sent))])
	case len(s.net) > 0:
		i := s.r.IntN(min(len(s.net), 1+s.r.IntN(8)))
		m := s.net[i]
		s.net = slices.Delete(s.net, i, i+1)
		if !s.chance(s.drop) && (m.Kind != s.mute || s.chance(200)) {
			s.deliver(m)
		}
	default:
		// Time passes while disks and network have nothing to do.
		for _, n := range s.nodes {
			if len(n.flushes) > 0 {
				s.sync(n)
				return
			}
		}
		s.tick()
	}
}

func (s *sim) deliver(m Message) {
	if !s.reaches(&m) {
		return
	}
	if out := s.receive(&m); errors.Is(out.Err, errUnacceptable) {
		s.seen.full++
	} else if out.Err != nil {
		s.fail("a message of a site is refused: %s: %w", line(&m), out.Err)
	}
}

// ask begins a round on guesses of the others' tokens, right or wrong.
func (s *sim) ask(n *node) {
	p := &Proposal{Need: 1 + Tokens(s.r.IntN(80))}
	for _, d := range s.nodes {
		if d != n && s.chance(900) {
			p.Donors = append(p.Donors, Donor{d.id, Tokens(s.r.IntN(60) - 20)})
		}
	}
	open := n.m.Open()
	if out := s.step(n, Input{Begin: p}); open != errors.Is(out.Err, errOpen) || !open && out.Err != nil {
		s.fail("a round cannot begin: %+v, %v", p, out.Err)
	}
}

// acquire serves clients, and changes the future behaviour of the books.
func (s *sim) acquire(n *node) {
	take := Tokens(s.r.IntN(40) - 15)
	if take <= n.b.left && take+n.b.net >= 0 {
		n.b.left -= take
		n.b.net += take
	}
	n.b.target = Tokens(s.r.IntN(60) - 5)
	n.b.full = s.chance(100)
	n.flushes = append(n.flushes, flush{state: new(n.m.State().Clone()), books: *n.b})
}

// tick moves the time on, mostly to the next thing due, and wakes a site.
func (s *sim) tick() {
	if s.chance(300) {
		s.now += Tick(s.r.IntN(50))
	} else if at, ok := s.next(); ok {
		s.now = max(s.now, at)
	}
	for _, n := range s.nodes {
		if at, ok := n.m.WakeAt(); n.up && ok && at <= s.now && s.chance(700) {
			s.step(n, Input{})
		}
	}
}

func (s *sim) next() (next Tick, found bool) {
	for _, n := range s.nodes {
		if at, ok := n.m.WakeAt(); n.up && ok && (!found || at < next) {
			next, found = at, true
		}
	}
	return next, found
}

// heal restores all and runs until nothing is under way. Then everything is in
// the books again, and each site can get all that another has.
func (s *sim) heal() error {
	clear(s.groups)
	for _, n := range s.nodes {
		n.up, n.b.full, n.b.target = n.id != s.lost, false, 0
		if n.up && s.lost != "" {
			s.writeOff(n, s.lost)
			s.step(n, Input{})
		}
	}
	if err := s.rest(); err != nil {
		return err
	}
	for i, n := range s.nodes {
		rich := s.nodes[(i+1)%len(s.nodes)]
		need := rich.b.left
		if need == 0 || !n.up || !rich.up {
			continue
		}
		before := n.b.left
		s.step(n, Input{Begin: &Proposal{Need: need, Donors: []Donor{{rich.id, need}}}})
		sent := len(s.sent)
		if err := s.rest(); err != nil {
			return err
		}
		if n.b.left != before+need || rich.b.left != 0 || len(s.sent) != sent+3 {
			return fmt.Errorf("liveness: %s cannot get the %d tokens of %s", n.id, need, rich.id)
		}
	}
	return nil
}

// rest runs until nothing happens any more, and checks that nothing is left.
func (s *sim) rest() error {
	for range 20_000 {
		for _, n := range s.nodes {
			s.syncAll(n)
		}
		if len(s.net) > 0 {
			m := s.net[0]
			s.net = s.net[1:]
			s.deliver(m)
		} else if at, ok := s.next(); ok {
			s.now = max(s.now, at)
			for _, n := range s.nodes {
				if at, ok := n.m.WakeAt(); ok && n.up && at <= s.now {
					s.step(n, Input{})
				}
			}
		} else {
			return s.settled()
		}
		if err := s.check(); err != nil {
			return err
		}
	}
	return fmt.Errorf("liveness: it never comes to rest")
}

func (s *sim) settled() error {
	for _, n := range s.nodes {
		if n.up && (n.m.State().InFlight() > 0 || n.m.Open()) {
			return fmt.Errorf("liveness: %s: stuck: %+v", n.id, *n.m.State())
		}
	}
	return s.check()
}
