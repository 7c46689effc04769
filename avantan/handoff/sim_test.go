package handoff

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

// TestSimulation runs clusters under random schedules with every fault there is, checks
// the invariants after every event, then heals all and checks that each site can leave.
// A seed that fails is replayed with -sim.seed.
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
			if *simSeed != 0 {
				return
			}
			for _, n := range []int{
				seen.left, seen.owed, seen.out, seen.below, seen.items, seen.again, seen.crashes, seen.undone, seen.full, seen.departures,
			} {
				if n == 0 {
					t.Error("something was never seen")
				}
			}
			if size > 2 && (seen.back == 0 || seen.dropped == 0 || seen.refused == 0) {
				t.Error("something among three sites was never seen")
			}
		})
	}
}

// tally counts events by kind, so that a simulation of nothing is noticed.
type tally struct {
	events, crashes int
	// left, owed, out, below and items are the bequests with each of these; again are
	// bequests that came again.
	left, owed, out, below, items, again int
	// undone are crashes that lost a transaction. full are bequests that did not fit, back
	// are bequests with an item frozen at the heir, dropped are bequests to lost sites, and
	// refused are messages of lost sites.
	undone, full, back, dropped, refused int
	// departures are the sites that had nothing any more, after healing.
	departures int
}

type sim struct {
	*cluster
	r *rand.Rand
	// groups is the side of a partition that each site is on.
	groups []int
	// out are the sites that are lost. The others hear of that at different times.
	out  []SiteID
	seen *tally
	// leases counts the leases made.
	leases int
	// faults are the chances, in thousandths, of this run.
	drop, repeat, crash, partition, begin, wake, requests, lose int
	// mute is a kind of message that mostly gets lost.
	mute Kind
}

func simulate(size int, seed uint64, seen *tally) error {
	r := rand.New(rand.NewPCG(seed, uint64(size)))
	left := map[SiteID]Tokens{}
	for i := range size {
		left[SiteID(rune('a'+i))] = Tokens(r.IntN(400) - 60)
	}
	s := &sim{
		cluster: newCluster(left, func(SiteID) avantan.Rand { return rand.New(rand.NewPCG(r.Uint64(), 0)) }),
		r:       r, groups: make([]int, size), seen: seen,
		drop: r.IntN(150), repeat: r.IntN(200), crash: r.IntN(25), partition: r.IntN(10), begin: 5 + r.IntN(100),
		wake: 1 + r.IntN(30), requests: r.IntN(200), mute: Kind(r.IntN(int(3 * Ack))),
	}
	if size > 2 && s.chance(300) {
		s.lose = r.IntN(8)
	}
	if s.chance(600) {
		// Calmer: more bequests are closed.
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
	case s.chance(s.lose):
		s.writeOff(n)
	case s.chance(s.begin):
		s.leave(n)
	case s.chance(s.requests):
		s.client(n)
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

// writeOff loses a site for good, or lets a site hear of a loss. A lost site may go on.
func (s *sim) writeOff(n *node) {
	switch {
	case len(s.out) > 0 && !slices.Contains(s.out, n.id):
		s.hear(n, s.out[s.r.IntN(len(s.out))])
	case len(s.out) < len(s.nodes)/2:
		s.out = append(s.out, n.id)
	}
}

func (s *sim) hear(n *node, site SiteID) {
	open := n.m.State().Open
	if out := s.cluster.lose(n, site); out.Closed {
		if open == nil || open.Heir != site {
			s.fail("%s drops what is not for %s", n.id, site)
		}
		s.seen.dropped++
	}
}

func (s *sim) deliver(m Message) {
	if !s.reaches(&m) {
		return
	}
	n := s.node(m.To)
	if slices.Contains(n.lost, m.From) {
		s.seen.refused++
	}
	last := n.m.State().taken(m.From).Number
	if m.Kind == Bequeath && m.Number <= last {
		s.seen.again++
	}
	out := s.receive(&m)
	switch {
	case errors.Is(out.Err, errFrozen):
		s.seen.back++
	case errors.Is(out.Err, errUnacceptable):
		s.seen.full++
	case out.Err != nil:
		s.fail("a message of a site is refused: %s: %w", line(&m), out.Err)
	case n.m.State().taken(m.From).Number > last:
		s.took(&m)
	}
}

// took counts a bequest by its parts.
func (s *sim) took(m *Message) {
	e := &m.Estate
	for _, part := range []struct {
		counts bool
		n      *int
	}{
		{e.Left > 0, &s.seen.left},
		{e.Owed > 0, &s.seen.owed},
		{e.Net > 0, &s.seen.out},
		{e.Net < 0, &s.seen.below},
		{len(e.Items) > 0, &s.seen.items},
	} {
		if part.counts {
			*part.n++
		}
	}
}

// leave begins a bequest to another site.
func (s *sim) leave(n *node) {
	heir := s.nodes[s.r.IntN(len(s.nodes))]
	if slices.Contains(n.lost, heir.id) {
		return
	}
	open := n.m.Open()
	out := s.step(n, Input{Begin: heir.id})
	switch {
	case open && !errors.Is(out.Err, errOpen), !open && (heir == n) != errors.Is(out.Err, errHeir), !open && heir != n && out.Err != nil:
		s.fail("a bequest of %s to %s, open: %v: %w", n.id, heir.id, open, out.Err)
	}
}

// client serves clients, and changes the future behaviour of the books.
func (s *sim) client(n *node) {
	s.serve(n, func(b *books) {
		take := Tokens(s.r.IntN(80) - 30)
		switch k := s.r.IntN(4); {
		case k == 0 && take > 0 && take <= b.left:
			s.leases++
			b.lend(lease{fmt.Sprint("l", s.leases), take})
		case k == 1 && len(b.leases) > 0:
			if l := b.leases[s.r.IntN(len(b.leases))]; !frozen(n.m.State(), l.id) {
				b.end(l.id)
			}
		case take <= b.left:
			b.acquire(take)
		}
		b.full = s.chance(100)
	})
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

// heal restores all sites that are not lost, and lets all but the last one leave, each
// for the next one.
func (s *sim) heal() error {
	clear(s.groups)
	var stay []*node
	for _, n := range s.nodes {
		n.up, n.b.full = !slices.Contains(s.out, n.id), false
		if n.up {
			stay = append(stay, n)
		}
	}
	for _, n := range stay {
		for _, site := range s.out {
			s.hear(n, site)
		}
	}
	for i, n := range stay[:len(stay)-1] {
		if err := s.depart(n, stay[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// depart lets a site hand all to its heir, in few bequests.
func (s *sim) depart(n, heir *node) error {
	if err := s.rest(); err != nil {
		return err
	}
	for range 5 + len(n.b.leases)/n.cfg.MaxItems {
		out := s.step(n, Input{Begin: heir.id})
		if err := s.rest(); err != nil {
			return err
		}
		if !out.Empty {
			continue
		}
		if n.b.left != 0 || n.b.net != 0 || len(n.b.leases) > 0 {
			return fmt.Errorf("liveness: %s leaves with %d left, %d out and %d leases", n.id, n.b.left, n.b.net, len(n.b.leases))
		}
		s.seen.departures++
		return nil
	}
	return fmt.Errorf("liveness: %s cannot leave: %+v", n.id, *n.b)
}

// rest runs until nothing happens any more, and checks that no bequest is open.
func (s *sim) rest() error {
	for range 20_000 {
		for _, n := range s.nodes {
			for n.up && len(n.flushes) > 0 {
				s.sync(n)
			}
		}
		if len(s.net) > 0 {
			m := s.net[0]
			s.net = s.net[1:]
			s.deliver(m)
		} else if at, ok := s.next(); ok {
			s.now = max(s.now, at)
			for _, n := range s.nodes {
				if at, ok := n.m.WakeAt(); n.up && ok && at <= s.now {
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
		if n.up && n.m.Open() {
			return fmt.Errorf("liveness: %s: stuck: %+v", n.id, *n.m.State())
		}
	}
	return s.check()
}
