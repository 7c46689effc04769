package avantan

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

var (
	simSeeds = flag.Int("sim.seeds", 200, "seeds to simulate for each size of cluster")
	simSeed  = flag.Uint64("sim.seed", 0, "simulate this seed only")
)

// TestSimulation runs clusters under random schedules with every fault there
// is, checks the invariants after every event, then heals all and checks that
// nothing stays stuck. A seed that fails is replayed with -sim.seed.
func TestSimulation(t *testing.T) {
	for _, size := range []int{1, 2, 3, 5, 7} {
		t.Run(fmt.Sprintf("sites=%d", size), func(t *testing.T) { simulateAll(t, size, simulate) })
	}
}

// TestSimulationOfViews is TestSimulation with changes of the view at any time: sites
// that join, leave and come back.
func TestSimulationOfViews(t *testing.T) {
	for _, size := range []int{2, 3, 4, 6} {
		t.Run(fmt.Sprintf("sites=%d", size), func(t *testing.T) { simulateAll(t, size, simulateViews) })
	}
}

// simulateAll runs all seeds for a size of cluster.
func simulateAll(t *testing.T, size int, simulate func(size int, seed uint64) (instances int, err error)) {
	t.Helper()
	t.Parallel()
	first, last := uint64(1), uint64(*simSeeds)
	if *simSeed != 0 {
		first, last = *simSeed, *simSeed
	}
	instances := 0
	for seed := first; seed <= last; seed++ {
		n, err := simulate(size, seed)
		if err != nil {
			t.Fatalf("sites=%d seed=%d: %v", size, seed, err)
		}
		instances += n
	}
	if instances == 0 {
		t.Error("nothing was ever decided")
	}
	t.Logf("%d instances decided in %d runs", instances, last-first+1)
}

type sim struct {
	*cluster
	r *rand.Rand
	// groups is the side of a partition that each site is on.
	groups []int
	// views is the chance, in thousandths, that an instance changes the view.
	views int
	// faults are the chances, in thousandths, of this run.
	drop, repeat, crash, partition, begin, wake int
	// limits allows changes of the limit.
	limits bool
}

func simulate(size int, seed uint64) (instances int, err error) {
	s, r := newSim(size, seed, false)
	return s.all(200 + r.IntN(400*size))
}

func simulateViews(size int, seed uint64) (instances int, err error) {
	s, r := newSim(size, seed, true)
	return s.all(200 + r.IntN(400*size))
}

func newSim(size int, seed uint64, views bool) (*sim, *rand.Rand) {
	r := rand.New(rand.NewPCG(seed, uint64(size)))
	left := map[SiteID]Tokens{}
	for i := range size {
		left[SiteID(rune('a'+i))] = Tokens(r.IntN(200))
	}
	random := func(SiteID) Rand { return rand.New(rand.NewPCG(r.Uint64(), 0)) }
	later := map[SiteID]Tokens{}
	for _, site := range slices.Sorted(maps.Keys(left)) {
		if views && len(left) > 1 && r.IntN(2) == 0 {
			later[site] = left[site]
			delete(left, site)
		}
	}
	s := &sim{
		cluster: newCluster(left, random),
		r:       r, groups: make([]int, size),
		drop: r.IntN(150), repeat: r.IntN(200), crash: r.IntN(25), partition: r.IntN(10), begin: 5 + r.IntN(60),
		wake: 1 + r.IntN(30), limits: true,
	}
	s.join(later, random)
	if views {
		s.views = 100 + r.IntN(500)
	}
	if s.chance(300) {
		for _, n := range s.nodes {
			n.cfg.Wait = WaitQuorum
		}
	}
	if s.chance(600) {
		// Calmer: more instances are decided in a row.
		s.drop, s.crash, s.partition = s.drop/5, s.crash/5, s.partition/5
	}
	return s, r
}

// all lets a number of random things happen, then heals all.
func (s *sim) all(events int) (instances int, err error) {
	if err := s.events(events); err != nil {
		return 0, err
	}
	if err := s.heal(); err != nil {
		return 0, fmt.Errorf("after healing: %w", err)
	}
	return len(s.value), nil
}

// events lets a number of random things happen.
func (s *sim) events(n int) error {
	for event := range n {
		s.event()
		if err := s.check(); err != nil {
			return fmt.Errorf("event %d: %w", event, err)
		}
	}
	return nil
}

// changedView is a change that adds a site to a view or takes one out.
func (s *sim) changedView(v View) []byte {
	site := s.nodes[s.r.IntN(len(s.nodes))].id
	if s.lost[site] && !v.Has(site) {
		return nil
	}
	changed, live := []byte(viewChange), false
	for _, n := range s.nodes {
		if v.Has(n.id) != (n.id == site) || len(v) == 1 && n.id == v[0] {
			changed = fmt.Append(changed, " ", n.id)
			live = live || !s.lost[n.id]
		}
	}
	if !live {
		return nil
	}
	return changed
}

// anyone is a random site that is not lost.
func (s *sim) anyone() *node {
	for {
		if n := s.nodes[s.r.IntN(len(s.nodes))]; !s.lost[n.id] {
			return n
		}
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
	n := s.anyone()
	switch {
	case len(s.lost) > 0 && !n.recovers && s.chance(30):
		s.recovers(n)
	case s.chance(s.crash):
		s.cluster.crash(n)
	case !n.up:
		n.up = s.chance(100)
	case s.chance(s.partition):
		for i := range s.groups {
			s.groups[i] = s.r.IntN(2)
		}
	case s.chance(s.partition):
		clear(s.groups)
	case s.chance(s.begin):
		p := &Proposal{Press: Press(s.r.IntN(2))}
		if s.limits && s.chance(300) {
			p.Change = fmt.Append(nil, s.r.IntN(100)-50)
		}
		if s.views > 0 && s.chance(s.views) {
			p.Change = s.changedView(n.b.view)
			if s.chance(500) {
				p.Press = PressNone
			}
		}
		n.b.want, n.b.half = Tokens(s.r.IntN(50)), Tokens(1+s.r.IntN(3))
		s.step(n, Input{Begin: p})
	case s.chance(s.wake):
		s.tick()
	case s.chance(10):
		s.step(n, Input{Refresh: s.nodes[s.r.IntN(len(s.nodes))].id})
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
		if s.reaches(&m) && !s.chance(s.drop) {
			s.receive(&m)
		}
	default:
		s.tick()
	}
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

// heal restores all and runs until nothing is under way. Then no offer may be set aside.
// After a Refresh of everyone all sites have to be at the same instance, with the same
// limit, and able to decide another.
func (s *sim) heal() error {
	clear(s.groups)
	for n := range s.survivors() {
		n.up = true
		if len(s.lost) > 0 && !n.recovers {
			s.recovers(n)
		}
	}
	if err := s.run(); err != nil {
		return err
	}
	for n := range s.survivors() {
		if n.m.State().Pledge != nil || n.m.Open() {
			return fmt.Errorf("%s: stuck in instance %d: %+v", n.id, n.m.State().Applied+1, *n.m.State())
		}
	}
	if err := s.refresh(); err != nil {
		return err
	}
	if s.dead() {
		return nil
	}
	before := len(s.value)
	for range 60 {
		s.step(s.anyone(), Input{Begin: &Proposal{}})
		if err := s.run(); err != nil {
			return err
		}
		if len(s.value) > before {
			return s.refresh()
		}
	}
	return fmt.Errorf("no further instance is decided")
}

// refresh has all sites ask all others. Then they have to be the same.
func (s *sim) refresh() error {
	for n := range s.survivors() {
		for peer := range s.survivors() {
			s.step(n, Input{Refresh: peer.id})
		}
	}
	if err := s.run(); err != nil {
		return err
	}
	return s.same()
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
			for n := range s.survivors() {
				if at, ok := n.m.WakeAt(); ok && at <= s.now {
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
	return fmt.Errorf("it never comes to rest")
}

func (s *sim) same() error {
	var a *node
	for n := range s.survivors() {
		if a == nil {
			a = n
		}
		if n.m.State().Applied != a.m.State().Applied || n.b.limit != a.b.limit {
			return fmt.Errorf("%s is at %d with limit %d, %s at %d with limit %d",
				a.id, a.m.State().Applied, a.b.limit, n.id, n.m.State().Applied, n.b.limit)
		}
	}
	return nil
}
