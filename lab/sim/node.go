package sim

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/redistribute"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// node is a site: its core and the simulated shell around it.
type node struct {
	s    *sim
	i    int
	id   core.SiteID
	cfg  core.Config
	core *core.Core
	// parts are its partitions, nil if it has none.
	parts *parts
	// speaks is what it tells others of its versions.
	speaks versions.Speaker
	// status is the core's status when it was last stepped or drained.
	status core.Status
	up     bool
	// life counts the starts; work under way in an earlier life is lost.
	life int
	// booted and drift make the site's clock; wall is its offset.
	booted micros
	drift  float64
	wall   int64

	// durable is the disk; drained is the disk once all batches are durable.
	durable, drained *Memory
	// copied is an older copy of durable; stale, if not nil, is the data that the site
	// runs on instead.
	copied, stale *Memory
	// kept, unless nil, is the disk as the site itself uses it. durable is the data that
	// has to be on it.
	kept    *kept
	other   Disk
	flights []*core.Effects
	// notes are what the simulator knows of each of flights.
	notes []note
	spare []*core.Effects
	// leaving are the messages of a batch that leave after the present message.
	leaving []message.Envelope
	// lastSync is when the last batch under way will be durable.
	lastSync micros
	// tearAt, if not 0, is with how many batches under way the site crashes.
	tearAt int
	// fuse, if not 0, is after how many effects of batches the site crashes.
	fuse    int
	wakeSet micros
	// calls are the calls handed over and not answered yet. lines are the acquires among
	// them that wait for tokens, granted the acquires that the last batch grants.
	calls   map[*call]bool
	lines   lines
	granted []*op
	// leases are all leases that it ever granted, claims all claims that it ever made, as
	// far as they are durable.
	leases map[uint64]*lease
	// reserved are the leases of clients that draw that the site durably holds.
	reserved map[uint64]*reservation
	// shares are the leases of share among them that have not ended, endedShares the tokens
	// of those that ended a short while ago.
	shares      []*lease
	endedShares []endedShare
	claims      map[message.ClaimNumber]askedAs
	// blocks are when it answered the requests of each of its blocks.
	blocks map[uint64]micros
	// stepped says that the core knows the time; served is when the site last could not
	// serve.
	stepped bool
	served  micros
	// fed is when the site last got work.
	fed micros
	// swept is when it was last fed before the last batch was drained, with which it
	// forgot old requests. sweeps is when it began to forget in this life; zero before.
	swept, sweeps micros
	// clockStored is when its clock last became durable.
	clockStored micros
	// aheadBy is by how much its calendar was set ahead while it was down, beyond
	// everything that its neighbours show.
	aheadBy int64
	// drainedTo is when it handed over its last batch, drainedWall its calendar then.
	drainedTo   micros
	drainedWall int64
	// jumped is when its calendar was last set.
	jumped micros
	// drainedBefore says that the site knew of its drain before the last batch became durable.
	drainedBefore bool
	// resumes is when the last pause of the site is over, or zero.
	resumes micros
	// freezes is when the first pause of a close series began, with little time for the
	// site between the pauses.
	freezes micros
	// slowUntil is when its disk stops being slow; badSync fails the next sync.
	slowUntil micros
	badSync   bool
	// calendar is the latest time that its calendar has shown since it started.
	calendar int64
	// shown is the latest time that its calendar has ever shown.
	shown int64
	// refusing says that the last batch was followed only by an acquire of more than a
	// limit.
	refusing bool
	// stopping is set once it was told to stop.
	stopping bool
	// told is how many sites are up by the last hint, itself included, and toldAt when it
	// came, in events. drainedAt is when the last batch was drained.
	told              int
	toldAt, drainedAt uint64
	// failed is when it last found no majority, by entity.
	failed map[string]micros
	// replanted is when it last became durable where its entities stand.
	replanted micros
	// out says that it has stopped, as it has no place in the cluster any more.
	out bool
	// struck says that it is lost for good, destroyed that its disk is gone, and apart that
	// no message reaches it or leaves it.
	struck, destroyed, apart bool
	// knew are the lost sites that its last record knew: durable, and handed over.
	knew [2]members
	// opened says that it has told that it serves.
	opened bool
	// openedAt is when it did.
	openedAt micros
	// found is when it last found a surplus, by entity.
	found map[string]micros
}

func (s *sim) newNode(i int, id core.SiteID) *node {
	pick := func(names []string) string { return names[s.r.IntN(len(names))] }
	n := &node{s: s, i: i, id: id, durable: NewMemory(message.Incarnation(i + 1)), failed: make(map[string]micros), found: make(map[string]micros)}
	n.leases, n.claims = make(map[uint64]*lease), make(map[message.ClaimNumber]askedAs)
	n.reserved = make(map[uint64]*reservation)
	n.blocks = make(map[uint64]micros)
	// The default policy twice, and each new one behind the others: seeds keep their draws.
	policies := []string{"equal-risk", "equal-risk", "demand", "paper"}
	for _, p := range redistribute.Names() {
		if !slices.Contains(policies, p) {
			policies = append(policies, p)
		}
	}
	n.cfg = core.Config{
		Self: id, Members: s.founders,
		Offer: pick([]string{"spare", "spare", "all"}), Policy: pick(policies),
		Forecast:  pick([]string{"mean-rate", "none", "random-walk", "auto"}),
		Admission: pick([]string{"wait", "wait", "wait", "proof", "refuse"}),
		Trigger:   pick([]string{"low-water", "ahead", "paper", "reactive"}),
		Want:      pick([]string{"quantile", "quantile", "paper"}),
		Wait:      s.wait,
		Protocol:  s.configured(),
		// The clocks of two sites may be off in either direction.
		Retention: retention / millisecond, Skew: 2 * clockError / millisecond,
		// A run lasts for minutes, not for days.
		Bin: 1000, ForecastIdle: 20_000, MaxParked: 20_000,
		VouchWait: []core.Tick{1, 500, 2000}[s.o.Seed%3],
	}
	if s.sessions.often > 0 {
		n.cfg.MaxOpen = s.maxOpen()
	}
	if s.chance(250) {
		n.cfg.MaxWaiting = 2 + s.r.IntN(20)
		n.cfg.MaxWaitingAll = n.cfg.MaxWaiting + 1
	}
	if n.cfg.Hold = 1; s.o.Seed%4 == 3 {
		n.cfg.Hold = 1000
	}
	if s.chance(100) {
		n.cfg.MaxClaims = 1 + s.r.IntN(4)
	}
	if s.o.Rates && s.o.Seed%3 == 0 {
		n.cfg.MaxKeys = 2 + s.r.IntN(4)
	}
	s.bounded(&n.cfg)
	s.crowd(&n.cfg)
	if s.o.Offer != "" {
		n.cfg.Offer = s.o.Offer
	}
	if s.o.Hungry {
		// The paper's policy rejects an acquire that it cannot grant whole.
		n.cfg.Policy, n.cfg.Admission, n.cfg.MaxWaiting, n.cfg.MaxWaitingAll = "equal-risk", "wait", 0, 0
	}
	if !slices.Contains(s.founders, id) {
		n.cfg.Members, n.cfg.Joining = []core.SiteID{id}, true
	}
	n.drift = 1
	if s.faults.Has(ClockDrift) {
		n.drift += float64(s.r.IntN(2001)-1000) / 100_000
		s.hit(ClockDrift)
	}
	n.wall = n.clock()
	if s.o.Disk != nil {
		other, err := s.o.Disk(id)
		if err != nil {
			s.fail(Sound, "%s: making a disk: %w", id, err)
			return n
		}
		n.other = other
		// A real disk draws it.
		restored, err := other.Load()
		if err != nil {
			s.fail(Sound, "%s: loading: %w", id, err)
		}
		n.durable.Incarnation = restored.Incarnation
	}
	n.kept = n.newKept()
	return n
}

// clock is a site's calendar at the start of the run, in milliseconds.
func (n *node) clock() int64 {
	return epoch + n.s.r.Int64N(2*clockError/millisecond) - clockError/millisecond
}

// stepAhead is by how much a ClockStep sets a calendar ahead: far above the skew
// allowed. It is never set back: that requests run once rests on it.
const stepAhead = 50 * second

// time is the present time by the site's clocks.
func (n *node) time() input.Now {
	ms := float64(n.s.now-n.booted) / float64(millisecond) * n.drift
	return input.Now{Tick: core.Tick(ms) + 1, Wall: n.wall + n.s.now/millisecond}
}

// has is how many tokens of an entity the site has left and set aside.
func (n *node) has(entity string) core.Tokens {
	e, b := n.drained.Entities[entity], n.drained.Books[entity]
	return holdings(&e, &b) - b.Net
}

// boot starts the site on the data on its disk.
func (n *node) boot() {
	s := n.s
	restored, err := n.restore()
	if err == nil && n.other != nil {
		err = n.otherSame(restored)
	}
	s.upgrade.follow(n, restored.Version)
	if err != nil {
		s.fail(Sound, "%s: loading: %w", n.id, err)
		return
	}
	if s.violation != nil {
		return
	}
	n.life++
	// Members that do not know of its loss yet may vouch for it, and it serves once more.
	n.out = n.out && !n.writtenOff()
	n.up, n.booted, n.lastSync, n.wakeSet, n.fuse, n.tearAt = true, s.now, s.now, 0, 0, 0
	n.calendar, n.stopping = 0, false
	n.resumes, n.slowUntil, n.badSync, n.told = 0, 0, false, 0
	n.swept, n.sweeps = 0, 0
	n.notes, n.drainedTo, n.drainedWall = nil, s.now, n.time().Wall
	n.flights, n.calls, n.lines = nil, make(map[*call]bool), make(lines)
	n.stepped, n.served = false, s.now
	n.forgetRenewals()
	n.drained = n.durable.Clone()
	cfg := n.cfg
	cfg.Run = n.run()
	cfg.Rand = rand.New(rand.NewPCG(s.o.Seed, uint64(n.i)<<32|uint64(n.life)))
	if n.core, err = core.New(cfg, restored); err != nil {
		s.fail(Sound, "%s: restarting: %w", n.id, err)
		return
	}
	n.speaks = n.core.Status().Versions
	for _, e := range restored.Entities {
		if e.Protocol.Pledge != nil || e.Protocol.Accepted != nil || len(e.Star.Slices) > 0 || e.Transfer.InFlight() > 0 {
			s.report.Recoveries++
		}
	}
	n.status = n.core.Status()
	n.divide()
	if s.tracing {
		s.note("%s starts", n.id)
	}
	n.settle()
}

// restore reads the data that the site starts on.
func (n *node) restore() (stored.Restored, error) {
	if n.stale != nil || n.kept == nil {
		return n.disk().Load()
	}
	return n.kept.take(), nil
}

// otherSame compares the data on both disks.
func (n *node) otherSame(want stored.Restored) error {
	got, err := n.other.Load()
	if err != nil {
		return err
	}
	return sameState(want, got)
}

// sameState compares the data to be stored with the data read back.
func sameState(want, got stored.Restored) error {
	// A state is compared by its encoding's meaning: nil and empty are the same.
	for _, r := range []*stored.Restored{&want, &got} {
		if _, err := r.AllBlocks(); err != nil {
			return err
		}
		for i := range r.Entities {
			if len(r.Entities[i].Results) == 0 {
				r.Entities[i].Results = nil
			}
			trim(&r.Entities[i].Protocol)
			trimTransfers(&r.Entities[i].Transfer)
			trimHandoffs(&r.Entities[i].Handoff)
		}
		if r.Catalogue != nil {
			trim(&r.Catalogue.Protocol)
		}
	}
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if a, b := w.Field(i).Interface(), g.Field(i).Interface(); !reflect.DeepEqual(a, b) {
			return fmt.Errorf("%s: stored %+v, read back %+v", g.Type().Field(i).Name, a, b)
		}
	}
	return nil
}

func trim(st *avantan.State) {
	value := func(v *avantan.Value) {
		if v != nil && len(v.Change) == 0 {
			v.Change = nil
		}
		if v != nil && len(v.Contributions) == 0 {
			v.Contributions = nil
		}
	}
	*st = st.Clone()
	value(st.Accepted)
	if len(st.Exposures) == 0 {
		st.Exposures = nil
	}
	if len(st.Kept) == 0 {
		st.Kept = nil
	}
	for i := range st.Kept {
		value(&st.Kept[i].Value)
	}
}

func trimTransfers(st *transfer.State) {
	if len(st.Debits) == 0 {
		st.Debits = nil
	}
	if len(st.Credits) == 0 {
		st.Credits = nil
	}
}

func trimHandoffs(st *handoff.State) {
	*st = st.Clone()
	if len(st.Given) == 0 {
		st.Given = nil
	}
	if len(st.Taken) == 0 {
		st.Taken = nil
	}
	if st.Open != nil && len(st.Open.Estate.Items) == 0 {
		st.Open.Estate.Items = nil
	}
}

// crash loses all that is not durable.
func (n *node) crash() {
	s := n.s
	if !n.up {
		return
	}
	if n.stale != nil {
		n.putBack()
		return
	}
	s.upgrade.rebuild(n)
	// Batches handed over reach the disk in order, up to some point.
	kept := len(n.flights)
	switch {
	case s.byHand, n.kept.failed(), n.tearAt > 0:
		kept = 0
	case s.faults.Has(LostWrites) && !n.stopping:
		kept = s.r.IntN(kept + 1)
	}
	for i, batch := range n.flights[:kept] {
		if !n.persist(batch) {
			if s.violation != nil {
				return
			}
			// The disk is full.
			kept = i
			break
		}
		n.judgeGrants(i)
	}
	n.kept.stop(n.flights[kept:])
	for found := n.kept.recover(n.flights[kept:]); found > 0; found-- {
		n.judgeGrants(kept)
		kept++
	}
	if s.violation != nil {
		return
	}
	if s.faults.Has(LostWrites) && slices.ContainsFunc(n.flights[kept:], func(b *core.Effects) bool { return !b.Records.Empty() }) {
		s.hit(LostWrites)
	}
	if s.tracing {
		s.note("%s crashes, %d batches are durable, %d lost", n.id, kept, len(n.flights)-kept)
	}
	if s.observe.transfersOf(n) {
		s.report.CrashesUnderWay++
	}
	n.countParts()
	n.up, n.core, n.drained = false, nil, n.durable.Clone()
	s.observe.lost(n)
	n.life++
	n.calls = nil
	if s.fails(ClockJump, 200) {
		n.wall, n.jumped = n.clock()+n.aheadBy, s.now
	}
	if n.aheadBy == 0 && s.fails(ClockStep, 200) {
		n.aheadBy = stepAhead / millisecond
		n.wall, n.jumped = n.wall+n.aheadBy, s.now
	}
	s.observe.checkSite(n)
	if s.byHand {
		return
	}
	n.bootLater()
}

// bootLater starts the site in a while.
func (n *node) bootLater() {
	life := n.life
	n.s.after(micros(n.s.r.IntN(3000))*millisecond, func() {
		// A site that has heard that it is out stays down after healing.
		if !n.up && n.life == life && !n.destroyed && (!n.out || !n.s.healed) {
			n.misplace()
			n.boot()
			if n.s.healed {
				n.hearsOfAll()
			}
		}
	})
}

// step feeds the core an input.
func (n *node) step(in input.Input) {
	if !n.up || n.s.violation != nil {
		return
	}
	if n.paused() {
		n.awake(func() { n.step(in) })
		return
	}
	n.ahead(in)
	n.tell(in)
	n.feed(in)
	n.settle()
}

// feed hands the core an input.
func (n *node) feed(in input.Input) {
	now := n.clocked()
	if !n.stepped && n.stale == nil {
		n.stepped = true
		n.s.observe.leasesStart(n, now)
	}
	n.alone(func() {
		n.core.Step(now, in)
		n.status = n.core.Status()
	})
}

func (n *node) paused() bool { return n.s.now < n.resumes }

// awake does something once the site is not paused.
func (n *node) awake(do func()) {
	if n.paused() {
		n.s.after(n.resumes-n.s.now, func() { n.awake(do) })
		return
	}
	do()
}

// settle drains the core's effects and sees to its next wake.
func (n *node) settle() {
	if n.stopped() {
		return
	}
	n.drain()
	at := n.core.WakeAt()
	if at == 0 {
		return
	}
	late := micros(0)
	if n.s.chance(100) {
		late = micros(n.s.r.IntN(20)) * millisecond
	}
	due := max(n.s.now, n.booted+micros(float64(at)/n.drift*float64(millisecond))+late)
	if n.wakeSet != 0 && n.wakeSet <= due && n.wakeSet > n.s.now {
		return
	}
	n.wakeSet = due
	life := n.life
	n.s.after(due-n.s.now, func() {
		n.awake(func() {
			if n.life == life && n.up && n.s.now >= n.wakeSet {
				n.wake()
			}
		})
	})
}

func (n *node) wake() {
	n.wakeSet = 0
	now := n.time()
	if at := n.core.WakeAt(); at != 0 && at <= now.Tick {
		n.feed(input.Wake{})
		if at := n.core.WakeAt(); at != 0 && at <= now.Tick {
			n.s.fail(Deadline, "%s: woken at %d, wants to be woken at %d again", n.id, now.Tick, at)
		}
	}
	n.settle()
}
