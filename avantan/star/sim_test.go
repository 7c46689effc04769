package star

import (
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
// nothing stays stuck. A seed that fails is replayed with -sim.seed.
func TestSimulation(t *testing.T) {
	for _, size := range []int{2, 3, 5} {
		t.Run(fmt.Sprintf("sites=%d", size), func(t *testing.T) {
			t.Parallel()
			first, last := uint64(1), uint64(*simSeeds)
			if *simSeed != 0 {
				first, last = *simSeed, *simSeed
			}
			var seen tally
			for seed := first; seed <= last; seed++ {
				if err := simulate(size, seed, &seen); err != nil {
					t.Fatalf("sites=%d seed=%d: %v", size, seed, err)
				}
			}
			t.Logf("%d runs: %+v", last-first+1, seen)
			if *simSeed == 0 && (seen.decided == 0 || seen.aborted == 0 || seen.failed[FailedNothing] == 0 ||
				seen.failed[FailedBusy] == 0 || seen.failed[FailedAborted] == 0 ||
				seen.concluded == 0 || seen.failed[FailedFull] == 0 && size > 2) {
				t.Error("some outcome was never seen")
			}
		})
	}
}

// tally counts events by kind, so that a simulation of nothing is noticed.
type tally struct {
	events, begun, decided, aborted, concluded, crashes int
	most                                                int
	failed                                              map[Failure]int
}

type sim struct {
	*cluster
	r *rand.Rand
	// groups is the side of a partition that each site is on.
	groups []int
	seen   *tally
	// faults are the chances, in thousandths, of this run.
	drop, repeat, crash, partition, begin, wake, acquire int
	// mute is a kind of message that mostly gets lost.
	mute Kind
	// lost are the sites that are written off, one after the other.
	lost []SiteID
}

func simulate(size int, seed uint64, seen *tally) error {
	r := rand.New(rand.NewPCG(seed, uint64(size)))
	left := map[SiteID]Tokens{}
	for i := range size {
		left[SiteID(rune('a'+i))] = Tokens(r.IntN(200))
	}
	s := &sim{
		cluster: newCluster(left, 2+r.IntN(2)*r.IntN(8), func(SiteID) avantan.Rand { return rand.New(rand.NewPCG(r.Uint64(), 0)) }),
		r:       r, groups: make([]int, size), seen: seen,
		drop: r.IntN(150), repeat: r.IntN(200), crash: r.IntN(25), partition: r.IntN(10), begin: 5 + r.IntN(60),
		wake: 1 + r.IntN(30), acquire: r.IntN(50),
		mute: Kind(r.IntN(int(2 * Ended))),
	}
	if s.chance(400) {
		for _, i := range r.Perm(size)[:1+r.IntN(size-1)] {
			s.lost = append(s.lost, s.nodes[i].id)
		}
	}
	switch {
	case s.chance(200):
		// Long partitions: slices pile up.
		s.partition, s.wake, s.begin = 2, 100, 40
	case s.chance(700):
		// Calmer: more instances are decided in a row.
		s.drop, s.crash, s.partition = s.drop/5, s.crash/5, s.partition/5
	}
	for event := range 200 + r.IntN(400*size) {
		s.event()
		seen.events++
		if err := s.check(); err != nil {
			return fmt.Errorf("event %d: %w", event, err)
		}
	}
	if err := s.heal(); err != nil {
		return fmt.Errorf("after healing: %w", err)
	}
	s.count()
	return nil
}

func (s *sim) count() {
	s.seen.begun += len(s.votes)
	s.seen.decided += len(s.decided)
	for id := range s.values {
		if s.anyAborted(id) {
			s.seen.aborted++
		}
	}
	for _, n := range s.nodes {
		s.seen.concluded += len(n.b.ended)
	}
	if s.seen.failed == nil {
		s.seen.failed = map[Failure]int{}
	}
	for f, n := range s.failed {
		s.seen.failed[f] += n
	}
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
	for _, n := range s.nodes {
		s.seen.most = max(s.seen.most, len(n.m.State().Slices))
	}
	switch {
	case s.chance(s.crash):
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
	case len(s.lost) > 0 && s.chance(15):
		s.learn(n, s.r.IntN(len(s.lost)))
	case s.chance(s.begin):
		s.ask(n)
	case s.chance(s.acquire):
		s.serve(n)
	case s.chance(s.wake):
		s.tick()
	case len(n.flushes) > 0 && s.chance(700):
		s.sync(n)
	case len(s.sent) > 0 && s.chance(s.repeat):
		// Anything that was ever sent may arrive again.
		if m := s.sent[s.r.IntN(len(s.sent))]; s.reaches(&m) {
			s.receive(&m)
		}
	case len(s.net) > 0:
		i := s.r.IntN(min(len(s.net), 1+s.r.IntN(8)))
		m := s.net[i]
		s.net = slices.Delete(s.net, i, i+1)
		if s.reaches(&m) && !s.chance(s.drop) && (m.Kind != s.mute || s.chance(200)) {
			s.receive(&m)
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

// learn has a site learn of a loss, mostly at once and sometimes when it is woken. A site
// that is lost learns of earlier losses alone.
func (s *sim) learn(n *node, i int) {
	if at := slices.Index(s.lost, n.id); at >= 0 && at <= i {
		return
	}
	s.writeOff(n, s.lost[i])
	if s.chance(700) {
		s.step(n, Input{})
	}
}

func (s *sim) ask(n *node) {
	n.b.want, n.b.half = Tokens(s.r.IntN(50)), Tokens(1+s.r.IntN(3))
	n.b.aloof, n.b.refuses = s.chance(100), s.chance(50)
	s.step(n, Input{Begin: &Proposal{Press: avantan.Press(s.r.IntN(2)), Short: Tokens(s.r.IntN(200) - 20)}})
}

// serve uses tokens, or gives some back, and stores the books with the state.
func (s *sim) serve(n *node) {
	amount := Tokens(s.r.IntN(60) - 20)
	if n.b.left < amount {
		return
	}
	n.b.left -= amount
	n.b.net += amount
	n.flushes = append(n.flushes, flush{state: new(n.m.State().Clone()), books: n.b.clone()})
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

// heal restores all and runs until nothing is under way. Then no slice may be
// left, and tokens can still be moved.
func (s *sim) heal() error {
	clear(s.groups)
	for _, n := range s.nodes {
		n.up = !slices.Contains(s.lost, n.id)
		n.b.refuses, n.b.aloof = false, false
		for i := range s.lost {
			if n.up {
				s.learn(n, i)
				s.step(n, Input{})
			}
		}
	}
	if err := s.rest(); err != nil {
		return err
	}
	rich := s.nodes[slices.IndexFunc(s.nodes, func(n *node) bool { return n.up })]
	for _, n := range s.nodes {
		if n.up && n.b.left > rich.b.left {
			rich = n
		}
	}
	if rich.b.left < 2 {
		return nil
	}
	for _, n := range s.nodes {
		if n == rich || !n.up {
			continue
		}
		before := len(s.decided)
		rich.b.half, n.b.half = 1, 1
		s.step(n, Input{Begin: &Proposal{Press: avantan.PressAll, Short: rich.b.left}})
		if err := s.rest(); err != nil {
			return err
		}
		if len(s.decided) != before+1 {
			return fmt.Errorf("liveness: %s cannot redistribute what %s has", n.id, rich.id)
		}
		return nil
	}
	return nil
}

// rest runs until nothing happens any more, and checks that nothing is left.
func (s *sim) rest() error {
	if err := s.run(); err != nil {
		return err
	}
	for _, n := range s.nodes {
		if !n.up {
			continue
		}
		if len(n.m.State().Slices) > 0 || n.m.Open() || n.m.Waits() || n.m.waiting != nil && n.m.lead != nil {
			return fmt.Errorf("liveness: %s: stuck: %+v", n.id, *n.m.State())
		}
	}
	return nil
}

// run delivers everything in order, and moves the time on when nothing is left.
func (s *sim) run() error {
	for range 20_000 {
		for _, n := range s.nodes {
			s.syncAll(n)
		}
		if len(s.net) > 0 {
			m := s.net[0]
			s.net = s.net[1:]
			if s.node(m.To).up {
				s.receive(&m)
			}
		} else if at, ok := s.next(); ok {
			s.now = max(s.now, at)
			for _, n := range s.nodes {
				if at, ok := n.m.WakeAt(); ok && n.up && at <= s.now {
					s.step(n, Input{})
				}
			}
		} else {
			return s.check()
		}
		if err := s.check(); err != nil {
			return err
		}
	}
	return fmt.Errorf("liveness: it never comes to rest")
}
