package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/replica/replicatest"
	"github.com/samya-db/samya/site/store"
)

// The nodes of a site: see Options.Nodes.
const (
	nodesAlways = "always"
	nodesNever  = "never"
	nodesMixed  = "mixed"
)

// NodesNames are the values of Options.Nodes.
func NodesNames() []string { return []string{nodesMixed, nodesAlways, nodesNever} }

// several are the nodes of a site with the log in a store that all nodes share. A node is
// active: its disk and base are those of the kept. The others follow now and then. After
// the end of the active node any of them takes over; an active node that was only paused
// then tries to go on.
type several struct {
	k *kept
	// r draws all that concerns nodes, so that all else is drawn as without them.
	r      *rand.Rand
	shared *replicatest.Store
	keys   replica.Keys
	all    []*member
	// active is the node that the site runs on, led the node that led last.
	active, led *member
	// log is the log of the active node.
	log  *replica.Log
	runs uint64
	// unknown has the next commit get no answer.
	unknown bool
	// paused, if not nil, is a node that was active and does not know that it is not any
	// more. left is a batch that it has yet to commit.
	paused *paused
	left   *stored.Records
}

// member is a node of a site with several.
type member struct {
	name string
	disk *simdisk.Disk
	base *base
	// store and log are those of a standby that runs.
	store *store.Store
	log   *replica.Log
}

// paused is a node that was active and stands still.
type paused struct {
	*member
	store *store.Store
}

// errUnknown ends a commit with a lost answer.
var errUnknown = errors.New("no answer to a commit, and the site has ended")

// newSeveral draws whether a site has several nodes, and makes them. The first has the
// disk that the site would have alone.
func (k *kept) newSeveral() *several {
	s := k.n.s
	r := rand.New(rand.NewPCG(s.o.Seed, 0xe7cd<<32|uint64(k.n.i)))
	has := r.IntN(3) == 0
	if s.o.Nodes == nodesAlways {
		has = true
	}
	if !has || s.o.Nodes == nodesNever || s.o.Hungry || s.o.Disk != nil {
		return nil
	}
	v := &several{k: k, r: r, shared: replicatest.New(), keys: replica.KeysOf("sim", string(k.n.id))}
	v.all = []*member{{name: "1", disk: k.disk, base: k.base}}
	for i := range 1 + r.IntN(2) {
		m := &member{name: fmt.Sprint(i + 2)}
		v.renew(m)
		v.all = append(v.all, m)
	}
	s.report.Several++
	return v
}

// renew gives a node an empty disk.
func (v *several) renew(m *member) {
	m.disk = simdisk.New(rand.New(rand.NewPCG(v.r.Uint64(), 0xd15c)))
	m.base = &base{disk: m.disk}
}

func (v *several) chance(hundredths int) bool { return v.r.IntN(100) < hundredths }

// fate is the fate of a call to the shared store.
func (v *several) fate(t *replica.Txn) replicatest.Fate {
	s := v.k.n.s
	if v.unknown && t != nil {
		return []replicatest.Fate{replicatest.Unsent, replicatest.Unanswered, replicatest.Late}[v.r.IntN(3)]
	}
	if s.healed || s.byHand || !s.faults.Has(LostReply) {
		return replicatest.Answered
	}
	switch n := v.r.IntN(100); {
	case n < 5:
		return replicatest.Unsent
	case n < 12:
		return replicatest.Unanswered
	case n < 16 && t != nil:
		return replicatest.Late
	}
	return replicatest.Answered
}

// wait is called before a call is repeated.
func (v *several) wait(_ int, failure error) error {
	if v.unknown {
		return fmt.Errorf("%w: %w", errUnknown, failure)
	}
	return nil
}

// choose picks the node on which the site starts next, and makes the data of all nodes
// before the first start.
func (v *several) choose() {
	if v == nil {
		return
	}
	s := v.k.n.s
	if v.active == nil {
		for _, m := range v.all {
			if err := v.follow(m); err != nil {
				s.fail(Recovery, "%s: node %s makes its data: %w", v.k.n.id, m.name, err)
				return
			}
			v.stop(m, false)
		}
	}
	if v.chance(40) {
		for v.shared.Deliver() {
		}
	}
	m := v.all[v.r.IntN(len(v.all))]
	for v.paused != nil && v.paused.member == m {
		m = v.all[v.r.IntN(len(v.all))]
	}
	v.stop(m, false)
	v.active, v.k.disk, v.k.base = m, m.disk, m.base
}

// open opens the data on the chosen node, which takes over.
func (v *several) open() (*store.Store, error) {
	m := v.active
	opened, log, err := v.start(m, true)
	if replica.Behind(err) {
		if err = v.copies(m); err == nil {
			v.k.disk, v.k.base = m.disk, m.base
			opened, log, err = v.start(m, true)
		}
	}
	if err != nil {
		return nil, err
	}
	if v.led != nil && v.led != m {
		v.k.n.s.report.TakeOvers++
	}
	v.log, v.led = log, m
	return opened, nil
}

// start opens a node's data: it follows, or leads and has carried over all commits.
func (v *several) start(m *member, leads bool) (*store.Store, *replica.Log, error) {
	var log *replica.Log
	o := v.k.options
	kv := v.shared.At(v.fate)
	o.Over = func(local *journal.Journal) (journal.Log, error) {
		origin, err := replica.Found(kv, v.keys, replica.Origin{
			Cluster: o.Cluster, Site: string(o.Site), Incarnation: uint64(o.Incarnation),
		}, v.wait)
		if err != nil {
			return nil, err
		}
		log, err = replica.New(local, replica.Options{
			KV: kv, Keys: v.keys, Node: m.name, Origin: origin, Wait: v.wait, PartBytes: 2000,
		})
		if err != nil || !leads {
			return log, err
		}
		return log, v.lead(m, log)
	}
	opened, err := store.OpenOn(logDir{m.disk}, m.base, o)
	return opened, log, err
}

// lead has a node take over from whoever leads.
func (v *several) lead(m *member, log *replica.Log) error {
	seen, err := log.Leader()
	if err != nil {
		return err
	}
	v.runs++
	won, err := log.Lead(seen, replica.Leader{Node: m.name, Run: v.runs})
	if err == nil && !won {
		err = errors.New("another node leads, and none has tried")
	}
	for err == nil && log.Stats().Through < log.Stats().Number {
		_, err = log.Step()
	}
	return err
}

// follow starts a standby.
func (v *several) follow(m *member) error {
	opened, log, err := v.start(m, false)
	if err == nil {
		m.store, m.log = opened, log
	}
	return err
}

// stop ends a standby, if it runs: the program, or the machine.
func (v *several) stop(m *member, power bool) {
	if m.log == nil {
		return
	}
	m.store, m.log = nil, nil
	if power {
		m.disk.Cut()
		return
	}
	m.disk.Kill()
}

// copies gives a node that is behind the log a copy of the base that is furthest.
func (v *several) copies(m *member) error {
	from := v.all[0]
	for _, o := range v.all {
		if o != m && (from == m || o.base.through > from.base.through) {
			from = o
		}
	}
	v.stop(m, false)
	data := from.base.clone(nil)
	v.renew(m)
	data.disk = m.disk
	m.base = data
	v.k.n.s.report.NodeCopies++
	return journal.Begin(logDir{m.disk}, uint64(v.k.options.Incarnation), data.through)
}

// work does some of the nodes' work in the background. The site is up.
func (v *several) work() {
	if v == nil || v.k.store == nil || !v.chance(8) {
		return
	}
	s := v.k.n.s
	if v.chance(30) {
		v.shared.Deliver()
	}
	if v.chance(20) {
		v.wakes()
	}
	m := v.all[v.r.IntN(len(v.all))]
	if m == v.active || v.paused != nil && v.paused.member == m {
		v.trim()
		return
	}
	if m.disk.Full() {
		v.stop(m, false)
		return
	}
	if m.log == nil {
		// A build that is too old for the data is not started as a standby.
		if err := v.follow(m); err != nil && s.upgrade == nil {
			s.fail(Recovery, "%s: node %s starts: %w", v.k.n.id, m.name, err)
		}
		return
	}
	if !s.healed && v.chance(5) {
		v.stop(m, v.chance(60))
		return
	}
	_, err := m.log.Follow(1 + v.r.IntN(60))
	for range v.r.IntN(6) {
		if err == nil {
			_, err = m.store.Step()
		}
	}
	switch {
	case replica.Behind(err):
		v.stop(m, false)
		if err = v.follow(m); err == nil {
			err = m.log.Tell(replica.Standing{Copies: true})
		}
		if err == nil {
			err = v.copies(m)
		}
	case err == nil:
		err = v.tell(m.log)
	}
	if err != nil {
		s.fail(Recovery, "%s: node %s follows: %w", v.k.n.id, m.name, err)
	}
}

func (v *several) tell(log *replica.Log) error {
	st := log.Stats()
	return log.Tell(replica.Standing{Through: st.Through, Last: st.Number, Time: v.k.n.s.now})
}

// trim has the active node tell how far it is, and trim the log.
func (v *several) trim() {
	err := v.tell(v.log)
	if err == nil {
		_, err = v.log.Trim()
	}
	if err != nil {
		v.k.n.s.fail(Recovery, "%s: trimming the log: %w", v.k.n.id, err)
	}
}

// pause has the active node stand still instead of ending, if its log still works, and
// reports whether it does. A node that was paused before wakes up first.
func (v *several) pause() bool {
	k := v.k
	if k.store != nil {
		v.wakes()
	}
	if v.paused != nil || k.store == nil || k.n.s.byHand || k.disk.Dead() || v.log.Failed() != nil || !v.chance(40) {
		return false
	}
	k.disk.CutIn(0)
	for _, o := range []simdisk.Op{simdisk.Write, simdisk.Sync, simdisk.Other} {
		k.disk.Fail(o, nil)
	}
	v.paused = &paused{v.active, k.store}
	return true
}

// wakes has a paused node go on where it was: its commit and its question whether it leads
// fail. Then it ends.
func (v *several) wakes() {
	p := v.paused
	if p == nil || v.active == p.member {
		return
	}
	s := v.k.n.s
	v.paused = nil
	var what string
	var err error
	if v.left != nil && v.chance(60) {
		what, err = "commits", p.store.Commit(v.left)
	} else {
		what, err = "confirms", p.store.Confirm()
	}
	v.left = nil
	if !errors.Is(err, replica.ErrFenced) {
		s.fail(Recovery, "%s: node %s %s after another has taken over: %w", v.k.n.id, p.name, what, err)
	}
	s.report.Fenced++
	if s.faults.Has(TornWrites) && v.chance(60) {
		p.disk.Cut()
		return
	}
	p.disk.Kill()
}

// leaves notes the batches that were under way at the active node.
func (v *several) leaves(under []*core.Effects) {
	if v == nil || v.paused != nil {
		return
	}
	v.left = nil
	for _, b := range under {
		if !b.Records.Empty() && b.Records.Version == 0 {
			v.left = &b.Records
			return
		}
	}
}

// empty gives all disks space.
func (v *several) empty() {
	for _, m := range v.all {
		m.disk.Fill(false)
	}
}
