package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/lab/due"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/policy"
)

// Options describe a run. All but Seed may be left zero.
type Options struct {
	// Seed decides everything that is left to chance.
	Seed uint64
	// Sites is the size of the cluster; 0 lets the seed choose 1 to 5.
	Sites int
	// Protocol is a mode of Modes; empty for the default of a site.
	Protocol string
	// Offer is a name of policy.OfferNames, for all sites; empty lets the seed choose for
	// each.
	Offer string
	// Strategy is a name of policy.StrategyNames, for all sites; empty lets the seed choose
	// for each.
	Strategy string
	// Faults are the faults that may happen; 0 for AllFaults.
	Faults FaultSet
	// Calm leaves out all faults.
	Calm bool
	// Long is the full length: at least two minutes under faults and as many requests as
	// [Report.Trivial] asks for. Else a run takes a fraction of that.
	Long bool
	// Hungry has all clients acquire token by token at a single site and release nothing;
	// it asks for Calm.
	Hungry bool
	// Trees has entities of about half of the seeds stand below others, be moved, and be
	// deleted with all entities below them.
	Trees bool
	// Joins has some sites join while the cluster runs; it needs three sites or more.
	Joins bool
	// Leaves has an administrator drain members, beside sites that join; it needs three
	// sites or more.
	Leaves bool
	// Losses has sites lost for good, beside sites that join, and an administrator who writes
	// them off; it needs three sites or more.
	Losses bool
	// Sessions has clients name requests in sessions, in three of four seeds.
	Sessions bool
	// Rates makes some entities rate quotas, in seeds without trees.
	Rates bool
	// Upgrades has a third of the seeds begin with a cluster of the version before, with
	// builds of two versions, and raise the version. Seeds with a Disk have no upgrade.
	Upgrades bool
	// Nodes says which of the sites with a real store run on several nodes, with their log
	// in a store of keys: a name of NodesNames. Empty is mixed: a third of them.
	Nodes string
	// Bounds, if not 0, is the bound of tables and messages that hold thousands by
	// default; 0 lets the seed choose.
	Bounds int
	// History is how many of the last events the error of a violation tells; 0 for
	// DefaultHistory.
	History int
	// Encoded takes every message through its encoding.
	Encoded bool
	// Disk makes a disk of a site beside the simulated disk; they must agree at every
	// restart. Nil for none.
	Disk func(site core.SiteID) (Disk, error)
}

// Run runs a seed. Its error tells the seed, the broken invariant, and the last events
// before.
func Run(o Options) (Report, error) {
	if err := o.Validate(); err != nil {
		return Report{}, err
	}
	// Keeping the trace of a violation costs more than all else. So a run is told once it
	// has failed, by running it again.
	twice := o.Disk == nil
	s := newSim(o)
	s.tracing = !twice
	report := s.run()
	if s.violation == nil {
		return report, nil
	}
	if twice {
		again := newSim(o)
		again.tracing = true
		if told := again.run(); told != report {
			s.violation.Err = fmt.Errorf("%w (and %s does not hold: run again, it goes another way)", s.violation.Err, Determinism)
		}
		s.trace = again.trace
	}
	s.violation.Trace = s.tail()
	return report, s.violation
}

// MaxSites bounds Options.Sites.
const MaxSites = 9

// Validate returns an error for the first invalid option.
func (o *Options) Validate() error {
	if o.Sites < 0 || o.Sites > MaxSites {
		return fmt.Errorf("sites: %d is not within 0 and %d", o.Sites, MaxSites)
	}
	if o.Bounds < 0 {
		return fmt.Errorf("bounds: %d is below 0", o.Bounds)
	}
	if o.History < 0 {
		return fmt.Errorf("history: %d is below 0", o.History)
	}
	if names := Modes(); o.Protocol != "" && !slices.Contains(names, o.Protocol) {
		return fmt.Errorf("protocol: %w %q; known: %v", policy.ErrUnknownName, o.Protocol, names)
	}
	if names := NodesNames(); o.Nodes != "" && !slices.Contains(names, o.Nodes) {
		return fmt.Errorf("nodes: %w %q; known: %v", policy.ErrUnknownName, o.Nodes, names)
	}
	if names := policy.OfferNames(); o.Offer != "" && !slices.Contains(names, o.Offer) {
		return fmt.Errorf("offer: %w %q; known: %v", policy.ErrUnknownName, o.Offer, names)
	}
	if names := policy.StrategyNames(); o.Strategy != "" && !slices.Contains(names, o.Strategy) {
		return fmt.Errorf("strategy: %w %q; known: %v", policy.ErrUnknownName, o.Strategy, names)
	}
	return nil
}

// run plays the whole run and returns its report.
func (s *sim) run() Report {
	s.start()
	s.runUntil(s.faultsEnd)
	for more := 0; s.o.Long && s.violation == nil && more < extensions && s.short(); more++ {
		s.stretch(more)
		s.runUntil(s.faultsEnd)
	}
	s.heal()
	s.idle()
	s.exactAtRest()
	s.watchersTold()
	for _, n := range s.nodes {
		n.kept.reopen()
		n.countParts()
	}
	s.report.Hash, s.report.Events, s.report.Micros = s.hash, s.events, s.now
	return s.report
}

// micros is simulated time in microseconds since the start of the run.
type micros = int64

const (
	millisecond micros = 1000
	second             = 1000 * millisecond
)

type sim struct {
	o      Options
	r      *rand.Rand
	now    micros
	queue  due.Queue[micros, func()]
	events uint64
	hash   uint64
	// violation is the first violation.
	violation *Violation
	tracing   bool
	trace     []traced
	faults    FaultSet
	// wait says which sites the leaders of majority instances wait for.
	wait    string
	load    load
	report  Report
	chances chances

	nodes []*node
	names []core.SiteID
	// founders are the first names: the sites that the cluster began with.
	founders []core.SiteID
	cut      [][]bool
	latency  [][]micros
	// arrived is when the last message of each link arrives.
	arrived [][]micros
	observe *observer
	clients []*client
	admin   *admin
	// rates are the terms of rate quotas, by name, drawn the entities with clients that draw,
	// draws and drawnKeys the requests of these, and treeLevels the levels of a tree.
	// scarcity is by how much limits of rate quotas are lower than others.
	rates      map[string]rates.Terms
	scarcity   int
	drawn      []string
	draws      int
	drawnKeys  map[attempt.Key]bool
	treeLevels []string
	// reservations are the leases of clients that draw, settles the requests to commit them.
	reservations, settles map[attempt.Key]*reservation
	// operator reconciles entities; nil in most runs.
	operator *operator
	// loser is nil unless sites are lost.
	loser *loser
	// sessions name requests.
	sessions sessions
	// upgrade is nil unless the run has an upgrade.
	upgrade *upgrade
	// switcher is nil unless the mode is Switching.
	switcher *switcher
	ops      int
	// opsByKey finds the requests that sites record, and requests lists them; changes are
	// all other operations.
	opsByKey map[attempt.Key]*op
	requests []*op
	changes  []*op
	// asking are whom to tell the answers to reads and watches of all sites, and watchers
	// the clients that watch.
	asking   map[*call]func(*answer.Answer)
	watchers []*watcher
	// handed counts the requests handed over to sites.
	handed uint64
	// pending is how many operations have clients that still wait.
	pending int
	// faultsEnd is when faults end, unless the run is made longer then.
	faultsEnd micros
	// extended is 1 once the run goes on as it has not done enough, else 0.
	extended int
	// careless has clients also release tokens that no client has.
	careless bool
	lacks    lacks
	healed   bool
	healedAt micros
	// byHand is set in scenarios: a crashed site stays down until it is started. sending,
	// if set, sees every message just before it leaves.
	byHand  bool
	sending func(from *node, e *message.Envelope)
}

// chances are how likely faults are in this run, in thousandths.
type chances struct {
	drop, repeat, delay, lostReply, cancel, mutant, hedge, late, lostAway, underWay int
	// These are how many milliseconds lie between two on average; 0 for none.
	crashes, partitions, disks, pauses, storms int
	sync                                       micros
	depth                                      int
	// far is how many times as far from each other the sites are, as long as
	// there are faults: a leader then often stops waiting too early.
	far micros
}

// load says how many clients there are at least, and how long they pause at
// most, in milliseconds.
type load struct {
	clients, pause int
	// quiet is how long before the faults end clients cease, so that only the
	// administrator has sites learn of each other.
	quiet micros
}

func newSim(o Options) *sim {
	s := &sim{o: o, r: rand.New(rand.NewPCG(o.Seed, 0x5a3b)), hash: 14695981039346656037}
	s.opsByKey, s.drawnKeys = make(map[attempt.Key]*op), make(map[attempt.Key]bool)
	s.reservations, s.settles = make(map[attempt.Key]*reservation), make(map[attempt.Key]*reservation)
	s.asking = make(map[*call]func(*answer.Answer))
	n := o.Sites
	if n == 0 {
		n = []int{5, 5, 5, 5, 3, 3, 4, 2, 1}[s.r.IntN(9)]
	}
	for i := range n {
		s.names = append(s.names, core.SiteID(string(rune('a'+i))))
	}
	s.founders = s.founding()
	s.wait = "all"
	s.careless = !o.Hungry && o.Seed%carelessOf == 1
	if !o.Hungry && o.Seed%7 == 5 {
		s.wait = quorumWait
	}
	s.observe = newObserver(s)
	s.startSessions()
	s.report.Sites = n
	if s.parted() {
		s.report.Divided = 1
	}
	s.faults = o.Faults
	if s.faults == 0 {
		s.faults = AllFaults
	}
	if o.Calm {
		s.faults = 0
	}
	s.faultsEnd, s.load = micros(15+s.r.IntN(40))*second, load{clients: 6, pause: 250}
	if o.Long {
		s.faultsEnd, s.load = micros(120+s.r.IntN(20))*second, load{clients: 14, pause: 300}
	}
	if o.Leaves {
		// A drain lasts longer than records of requests do.
		s.faultsEnd = max(s.faultsEnd, micros(90+s.r.IntN(90))*second)
		s.load.pause *= 4
	}
	if o.Losses {
		// A write-off takes a while.
		s.faultsEnd = max(s.faultsEnd, micros(50+s.r.IntN(60))*second)
	}
	if s.chance(300) {
		s.load.quiet = 12 * second
	}
	s.chances = chances{sync: micros(1+s.r.IntN(20)) * millisecond, depth: 1 + s.r.IntN(3), mutant: 20, hedge: 60, late: 60, lostAway: 80, far: 1}
	if !o.Calm {
		s.chances.drop, s.chances.repeat, s.chances.delay = s.r.IntN(120), s.r.IntN(100), s.r.IntN(20)
		s.chances.lostReply, s.chances.cancel = s.r.IntN(100), s.r.IntN(150)
		s.chances.crashes, s.chances.partitions = 500+s.r.IntN(6000), 1000+s.r.IntN(8000)
		s.chances.disks, s.chances.pauses = 2000+s.r.IntN(10_000), 2000+s.r.IntN(10_000)
		if s.faults.Has(Overload) {
			s.chances.storms = 15_000 + s.r.IntN(15_000)
		}
		if s.chance(300) {
			s.chances.drop, s.chances.repeat = 0, 0
		}
		// Not both: hardly an instance would come to its end.
		switch {
		case s.chance(200):
			s.chances.sync *= 10
		case s.chance(250):
			s.chances.far = micros(2 + s.r.IntN(2))
		}
	}
	s.cut, s.latency, s.arrived = make([][]bool, n), make([][]micros, n), make([][]micros, n)
	for i := range n {
		s.cut[i], s.latency[i], s.arrived[i] = make([]bool, n), make([]micros, n), make([]micros, n)
	}
	for i := range n {
		for j := range i {
			s.latency[i][j] = micros(1+s.r.IntN(150)) * millisecond * s.chances.far
			s.latency[j][i] = s.latency[i][j]
		}
	}
	if o.Protocol == Switching {
		s.switcher = s.newSwitcher()
	}
	for i, name := range s.names {
		s.nodes = append(s.nodes, s.newNode(i, name))
	}
	s.chooseStrategies()
	s.startUpgrade()
	return s
}

func (s *sim) start() {
	for _, n := range s.nodes {
		n.boot()
	}
	s.startClients()
	s.startJoins()
	s.startLeaves()
	s.startLosses()
	s.every(readPause, s.readSome)
	s.every(exactPause, s.readExact)
	s.startWatchers()
	s.after(second, s.leasesInTime)
	if s.switcher != nil {
		s.every(s.switcher.pause, s.switcher.next)
	}
	if s.chances.crashes > 0 {
		s.every(s.chances.crashes, s.crashSome)
	}
	if s.chances.disks > 0 {
		s.every(s.chances.disks, s.diskFault)
		s.every(s.chances.pauses, s.pauseSome)
	}
	if (s.faults.Has(StaleSnapshot) || s.faults.Has(EmptyBesideOld)) && len(s.nodes) > 1 {
		s.every(copyEvery, s.copySome)
	}
	if s.faults.Has(EmptyBesideOld) {
		s.every(besideEvery, s.loseTwo)
	}
	if s.chances.storms > 0 {
		s.every(s.chances.storms, s.storm)
	}
	if s.chances.partitions > 0 {
		s.every(s.chances.partitions, s.partition)
		s.every(s.chances.partitions/2, s.hint)
	}
}

// copyEvery is how many milliseconds lie between two copies of a site's data on
// average.
const copyEvery = 8000

// readPause is how many milliseconds lie between two reads on average.
const readPause = 300

// every does something again and again, at random intervals of a given mean in
// milliseconds, until the run heals. Nothing that repeats ends at faultsEnd: that is only
// the end of a stretch while the run may still be made longer. Work that ended with a
// stretch would be missing in all further stretches.
func (s *sim) every(mean int, do func()) {
	s.after(micros(1+s.r.IntN(2*mean))*millisecond, func() {
		if !s.healed {
			do()
			s.every(mean, do)
		}
	})
}

func (s *sim) chance(thousandths int) bool { return s.r.IntN(1000) < thousandths }

// after does something later. Things at the same time happen in the order of the calls of
// after.
func (s *sim) after(d micros, do func()) {
	s.queue.Push(s.now+max(d, 0), do)
}

// runUntil lets things happen until a time, or until an invariant is violated.
func (s *sim) runUntil(end micros) {
	for s.violation == nil {
		e, ok := s.queue.Pop(end)
		if !ok {
			break
		}
		s.now = e.At
		s.events++
		s.mix(uint64(e.At))
		s.mix(e.Number)
		e.What()
	}
	s.now = max(s.now, end)
}
